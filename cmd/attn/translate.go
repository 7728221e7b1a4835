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
	Beam  int      `default:"1" help:"Beam size; 1 is greedy search." placeholder:"N"`
	Map   bool     `help:"Draw what the decoder attends to in each translation."`
	Color string   `default:"auto" enum:"auto,truecolor,256,16,none" help:"Colours of the map: auto, truecolor, 256, 16 or none." placeholder:"NAME"`
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

func (cmd *translateCommand) touches() touched {
	return touched{models: []place{{"--model", cmd.Model}}, stdin: len(cmd.Text) == 0}
}

// Lines are translated in groups, so that the output of a long input does not
// wait for its end.
const linesAtOnce = 256

func (cmd *translateCommand) Run(ctx context.Context, c console) error {
	m, err := loadTranslator(cmd.Model)
	if err != nil {
		return err
	}
	unknown := newUnknown(c.err)
	if len(cmd.Text) > 0 {
		for i, text := range cmd.Text {
			if err := checkText("argument", i+1, text); err != nil {
				return err
			}
		}
		return cmd.translate(ctx, c.out, m, unknown, cmd.Text)
	}
	c.invite("type texts to translate, one per line; " + endOfInput() + " ends the input")
	groups := readLines(c.in)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case g, open := <-groups:
			if !open {
				return nil
			}
			if err := cmd.translate(ctx, c.out, m, unknown, g.texts); err != nil {
				return err
			}
			if g.err != nil {
				return g.err
			}
		}
	}
}

// lineGroup is some lines of the input, and what is wrong behind them.
type lineGroup struct {
	texts []string
	err   error
}

// readLines reads lines in the background, so that an interruption need not
// wait until somebody has typed one. The last group may carry an error.
func readLines(r io.Reader) <-chan lineGroup {
	groups := make(chan lineGroup)
	go func() {
		defer close(groups)
		lines := bufio.NewReaderSize(r, longestText+len("\r\n"))
		for number := 0; ; {
			var g lineGroup
			for len(g.texts) < linesAtOnce {
				number++
				text, err := readLine(lines, number)
				if err != nil {
					g.err = err
					break
				}
				g.texts = append(g.texts, text)
				if lines.Buffered() == 0 {
					break // somebody may be typing
				}
			}
			end := g.err != nil
			if g.err == io.EOF {
				g.err = nil
			}
			groups <- g
			if end {
				return
			}
		}
	}()
	return groups
}

// readLine returns the next line without its end, or io.EOF.
func readLine(r *bufio.Reader, number int) (string, error) {
	slice, err := r.ReadSlice('\n')
	switch {
	case err == io.EOF && len(slice) > 0: // a last line without an end
	case err == bufio.ErrBufferFull:
		return "", checkText("standard input", number, string(slice))
	case err != nil:
		return "", err
	}
	text := strings.TrimRight(string(slice), "\r\n")
	if strings.Contains(text, "\r") { // of many lines we would make one
		return "", &seq2seq.InputError{Name: "standard input", Line: number, Reason: "carriage return inside the line, want lines that end in LF or CRLF"}
	}
	return text, checkText("standard input", number, text)
}

// checkText returns an error for a text that cannot be translated.
func checkText(name string, number int, text string) error {
	bad := func(reason string) error { return &seq2seq.InputError{Name: name, Line: number, Reason: reason} }
	switch {
	case len(text) > longestText:
		return bad(fmt.Sprintf("longer than %d bytes", longestText))
	case !utf8.ValidString(text):
		return bad("invalid UTF-8")
	}
	return nil
}

// translate writes the translations of texts, one a line.
func (cmd *translateCommand) translate(ctx context.Context, w io.Writer, m *seq2seq.Translator, unknown *unknowns, texts []string) error {
	unknown.source(m, texts...)
	translations, err := m.Translate(ctx, texts, seq2seq.Decoding{Beam: cmd.Beam})
	if err != nil {
		return err
	}
	for i, t := range translations {
		if _, err := fmt.Fprintln(w, t); err != nil {
			return err
		}
		if cmd.Map {
			if err := drawAlignment(w, terminalOf(w, cmd.Color, nil, false), m, texts[i], t); err != nil {
				return err
			}
		}
	}
	return nil
}
