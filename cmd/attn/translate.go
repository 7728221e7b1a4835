package main

import (
	"context"
	"io"
	"strings"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/app/shards"
	"github.com/attn-go/attn/internal/app/texts"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

type translateCommand struct {
	Model  string `required:"" help:"Directory of the model." placeholder:"DIR"`
	Beam   int    `default:"1" help:"Beam size; 1 is greedy search." placeholder:"N" want:"1 to 1000"`
	Map    bool   `help:"Draw the decoder's attention weights for each translation." excludes:"json,tsv"`
	Color  string `default:"auto" enum:"auto,truecolor,256,16,none" help:"Colours of the map: auto, truecolor, 256, 16 or none." placeholder:"NAME"`
	JSON   bool   `name:"json" help:"Write a JSON object for each line, with its translation." xor:"form"`
	TSV    bool   `name:"tsv" help:"Write two columns, the translation and the error." xor:"form"`
	Strict bool   `help:"Stop at the first line that cannot be translated."`
	formatFlag
	languageFlags
	Text []string `arg:"" optional:"" help:"Texts to translate; without any, the lines of standard input." stdin:""`
}

func (translateCommand) Help() string {
	return `Examples:

  attn translate --model runs/dates "tuesday 5 march 2019"
  attn translate --model runs/dates --map "le 5 mars 2019"
  attn translate --model runs/fra.run --beam 4 < english.txt > french.txt
  attn translate --model t5-small "translate English to German: How are you?"
  attn translate --model nllb-200-distilled-600M --to fra_Latn "How are you?"

DIR contains a model of attn train or another encoder-decoder with a tokenizer, such as Marian,
NLLB or T5. T5 expects an instruction in the text, NLLB a language (--to). The output is limited
to 20 plus twice the number of input tokens.

The output has one line per input line, in the same order. A line that cannot be translated
becomes {"error": "…"}; with --strict, it ends the run. A blank line stays blank. Results do not depend on how the
input is split. See docs/scale.md for details.`
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

func (cmd *translateCommand) streams() bool { return !cmd.Map && len(cmd.Text) == 0 }

func (cmd *translateCommand) model() (string, bool) { return cmd.Model, true }

func (cmd *translateCommand) stream(c console) (shards.Stream, error) {
	f, err := cmd.filter(c)
	return newStream(f, c), err
}

// filter loads the model.
func (cmd *translateCommand) filter(c console) (f filter.Filter[texts.Translation], err error) {
	m, err := cmd.load(c)
	if err != nil {
		return f, err
	}
	f = texts.Translations(m, cmd.Beam, c.err)
	f.Strict = cmd.Strict
	switch write := f.Write; {
	case cmd.JSON:
		f.Write = filter.JSON[texts.Translation]
	case cmd.TSV:
		f.Write = texts.WriteTranslation
	case cmd.Map:
		f.Write = func(w io.Writer, l *filter.Line[texts.Translation]) error {
			if err := write(w, l); err != nil || l.Err != nil || strings.TrimSpace(l.Text) == "" {
				return err
			}
			return drawAlignment(w, terminalOf(c.out, cmd.Color, nil, false), m, l.Text, l.Value.Text)
		}
	}
	return f, nil
}

func (cmd *translateCommand) load(c console) (*models.Model, error) {
	return loadTranslator(c, cmd.Model, cmd.options(), cmd.languageFlags)
}
