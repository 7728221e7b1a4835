package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/filter"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/train"
)

type translateCommand struct {
	Model  string   `required:"" help:"Directory of the model." placeholder:"DIR"`
	Beam   int      `default:"1" help:"Beam size; 1 is greedy search." placeholder:"N" want:"1 to 1000"`
	Map    bool     `help:"Draw the decoder's attention weights for each translation." excludes:"json,tsv"`
	Color  string   `default:"auto" enum:"auto,truecolor,256,16,none" help:"Colours of the map: auto, truecolor, 256, 16 or none." placeholder:"NAME"`
	JSON   bool     `name:"json" help:"Write a JSON object for each line, with its translation." xor:"form"`
	TSV    bool     `name:"tsv" help:"Write two columns, the translation and the error." xor:"form"`
	Strict bool     `help:"Stop at the first line that cannot be translated."`
	Text   []string `arg:"" optional:"" help:"Texts to translate; without any, the lines of standard input." stdin:""`
}

func (translateCommand) Help() string {
	return `Examples:

  attn translate --model runs/dates "tuesday 5 march 2019"
  attn translate --model runs/dates --map "le 5 mars 2019"
  attn translate --model runs/fra.run --beam 4 < english.txt > french.txt
  attn translate --model t5-small "translate English to German: How are you?"

DIR contains a model of attn train or a pretrained encoder-decoder with a tokenizer.json.
Some pretrained models, such as T5, expect an instruction in the text. The output of a
pretrained model is limited to 20 plus twice the number of input tokens.

The output has one line per input line, in the same order. A line that cannot be translated
becomes {"error": "…"}; with --strict, it ends the run. Results do not depend on how the
input is split. See docs/scale.md for details.`
}

// translation is what a line becomes.
type translation struct {
	Text string `json:"translation"`
}

func (cmd *translateCommand) Run(ctx context.Context, c console) error {
	if len(cmd.Text) == 0 {
		return runLines(ctx, c, cmd, "", "type texts to translate, one per line")
	}
	for i, text := range cmd.Text {
		if err := checkText("argument", i+1, text, train.LongestText); err != nil {
			return err
		}
	}
	f, err := cmd.filter(c)
	if err != nil {
		return err
	}
	f.Name = "argument"
	return f.Texts(ctx, cmd.Text, c.out)
}

func (cmd *translateCommand) streams() error {
	if cmd.Map || len(cmd.Text) > 0 {
		return errNotLines
	}
	return nil
}

func (cmd *translateCommand) modelDir() string { return cmd.Model }

func (cmd *translateCommand) modelFiles() ([]string, error) {
	if isPretrained(cmd.Model) {
		return pretrainedFiles(cmd.Model, true)
	}
	return models.TranslatorFiles(), nil
}

func (cmd *translateCommand) stream(c console) (lineStream, error) {
	f, err := cmd.filter(c)
	return newStream(f, c), err
}

// filter loads the model.
func (cmd *translateCommand) filter(c console) (f filter.Filter[translation], err error) {
	f = filter.Filter[translation]{MaxBytes: train.LongestText, Strict: cmd.Strict}
	switch {
	case cmd.JSON:
		f.Write = filter.JSON[translation]
	case cmd.TSV:
		f.Write = filter.TSV(1, func(t translation) []string { return []string{t.Text} })
	default:
		f.Write = filter.Text(func(t translation) string { return t.Text })
	}
	m, err := cmd.load(c)
	if err != nil {
		return f, err
	}
	if write := f.Write; cmd.Map {
		f.Write = func(w io.Writer, l *filter.Line[translation]) error {
			if err := write(w, l); err != nil || l.Err != nil {
				return err
			}
			return drawAlignment(w, terminalOf(c.out, cmd.Color, nil, false), m, l.Text, l.Value.Text)
		}
	}
	unknown := newUnknown(c.err)
	f.Work = func(ctx context.Context, batch []*filter.Line[translation]) error {
		return cmd.translate(ctx, m, batch, unknown)
	}
	return f, nil
}

// load loads the model.
func (cmd *translateCommand) load(c console) (*models.Model, error) {
	if cmd.Map && isPretrained(cmd.Model) {
		return nil, usage("--map requires a model of attn train, and %s is a pretrained one", quoted(cmd.Model))
	}
	m, err := loadModel(cmd.Model, c, models.Options{Weights: tensor.Float32})
	if err != nil || m.Translator != nil {
		return m, err
	}
	if m.Sizes().Decoder == nil {
		return nil, input.Errorf(cmd.Model,
			"is a %s model, want an encoder-decoder, such as Marian or T5, or a model of attn train", m.Family.Name)
	}
	_, err = m.Tokenizer()
	return m, err
}

// translate translates a batch of lines.
func (cmd *translateCommand) translate(
	ctx context.Context, m *models.Model, batch []*filter.Line[translation], unknown *unknowns,
) error {
	var sources [][]int
	var of []*filter.Line[translation]
	var texts []string
	for _, l := range batch {
		if m.Translator == nil && strings.TrimSpace(l.Text) == "" {
			continue
		}
		e, err := m.Encode(l.Text, "")
		if err != nil { // which is about the text
			l.Err = err
			continue
		}
		sources, of, texts = append(sources, e.IDs), append(of, l), append(texts, l.Text)
	}
	if m.Translator != nil {
		unknown.source(m, texts...)
	}
	written, err := m.Write(ctx, sources, models.Generation{Beam: cmd.Beam})
	for i, ids := range written {
		of[i].Value.Text = m.Decode(ids)
	}
	return err
}

// checkText returns an error for a text that a model is not given: one that has more than so
// many bytes, or is no text.
func checkText(name string, number int, text string, longest int) error {
	bad := func(reason string) error { return &input.Error{Name: name, Line: number, Err: errors.New(reason)} }
	switch {
	case len(text) > longest:
		return bad(fmt.Sprintf("longer than %d bytes", longest))
	case !utf8.ValidString(text):
		return bad("invalid UTF-8")
	}
	return nil
}
