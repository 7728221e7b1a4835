package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/seq2seq"
)

type translateCommand struct {
	Model string   `required:"" help:"Directory of the model." placeholder:"DIR"`
	Beam  int      `default:"1" help:"Translations kept at each step; 1 is greedy." placeholder:"N"`
	Map   bool     `help:"Draw where the decoder looked for each translation."`
	Text  []string `arg:"" optional:"" help:"Texts to translate; without any, the lines of standard input."`
}

func (translateCommand) Help() string {
	return `Examples:

  attn translate --model runs/dates "tuesday 5 march 2019"
  attn translate --model runs/dates --map "le 5 mars 2019"
  attn translate --model runs/fra.run --beam 4 < english.txt > french.txt`
}

// Validate is called by the parser.
func (cmd *translateCommand) Validate() error {
	if cmd.Beam < 1 || cmd.Beam > 1000 {
		return fmt.Errorf("--beam %d, want 1 to 1000", cmd.Beam)
	}
	return nil
}

// Lines are translated in groups, so that the output of a long input does not
// wait for its end.
const linesAtOnce = 256

// longestText is the number of bytes of the longest text that is translated.
// Attention needs memory with the square of the length.
const longestText = 10_000

func (cmd *translateCommand) Run(ctx context.Context, c console) error {
	m, err := seq2seq.Load(cmd.Model)
	if err != nil {
		return err
	}
	if len(cmd.Text) > 0 {
		for i, text := range cmd.Text {
			if err := checkText("argument", i+1, text); err != nil {
				return err
			}
		}
		return cmd.translate(ctx, c.out, m, cmd.Text)
	}
	lines := bufio.NewReader(c.in)
	for number := 0; ; {
		var texts []string
		for len(texts) < linesAtOnce {
			line, err := lines.ReadString('\n')
			if err == io.EOF && line == "" {
				break
			}
			if err != nil && err != io.EOF {
				return err
			}
			number++
			line = strings.TrimRight(line, "\r\n")
			if err := checkText("standard input", number, line); err != nil {
				return err
			}
			texts = append(texts, line)
			if lines.Buffered() == 0 {
				break // somebody may be typing
			}
		}
		if len(texts) == 0 {
			return nil
		}
		if err := cmd.translate(ctx, c.out, m, texts); err != nil {
			return err
		}
	}
}

// checkText returns an error for a text that cannot be translated.
func checkText(name string, number int, text string) error {
	bad := func(reason string) error { return &seq2seq.InputError{Name: name, Line: number, Reason: reason} }
	switch {
	case !utf8.ValidString(text):
		return bad("invalid UTF-8")
	case len(text) > longestText:
		return bad(fmt.Sprintf("%d bytes long, want at most %d", len(text), longestText))
	}
	return nil
}

// translate writes the translations of texts, one a line.
func (cmd *translateCommand) translate(ctx context.Context, w io.Writer, m *seq2seq.Translator, texts []string) error {
	translations, err := m.Translate(ctx, texts, seq2seq.Decoding{Beam: cmd.Beam})
	if err != nil {
		return err
	}
	for i, t := range translations {
		if _, err := fmt.Fprintln(w, t); err != nil {
			return err
		}
		if cmd.Map {
			if err := drawAlignment(w, m, texts[i], t); err != nil {
				return err
			}
		}
	}
	return nil
}
