package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tokenizer"
)

type tokenizeCommand struct {
	Model     string  `required:"" help:"Directory of a model with a tokenizer.json, or with the files of an older tokenizer." placeholder:"DIR"`
	File      string  `help:"Read the lines of a file." placeholder:"FILE"`
	JSON      bool    `name:"json" help:"Write a JSON object for each line: ids, tokens, offsets in bytes, type_ids, and texts (0 or 1, −1 for added tokens)."`
	Pair      *string `help:"A second text, which goes with each line." placeholder:"TEXT"`
	NoSpecial bool    `help:"Leave out the tokens that the model wants around a text, such as [CLS]."`
	AsText    bool    `name:"special-as-text" help:"Take special tokens that a text has, such as [SEP], for text."`
	MaxLength int     `help:"Cut to this many tokens, those around a text included. 0 cuts nothing." placeholder:"N"`
	Stride    *int    `help:"Write what --max-length cuts off too, as overflow: further pieces, each with this many tokens of the one before. Needs --json." placeholder:"N"`
	Cut       string  `help:"Which text of a pair --max-length cuts: longest, first or second." enum:"longest,first,second" default:"longest" placeholder:"TEXT"`
	Text      *string `arg:"" optional:"" help:"Text to tokenize; without it or --file, the lines of standard input."`
}

func (tokenizeCommand) Help() string {
	return `Examples:

  attn tokenize --model bert-base-uncased "Attention is all you need"
  attn tokenize --model bert-base-uncased --pair "What is attention?" "It weights keys."
  attn tokenize --model gpt2 --json --file texts.txt > tokens.jsonl
  attn tokenize --model bert-base-uncased --json --max-length 384 --stride 128 --file passages.txt

Without --json, a line has the ids with a space between them. Truncation and padding
that the tokenizer's file asks for are left to whoever runs the model; --max-length cuts
at its side.`
}

// Validate is called by the parser.
func (cmd *tokenizeCommand) Validate() error {
	if cmd.File != "" && cmd.Text != nil {
		return errors.New("--file and a text exclude each other")
	}
	switch {
	case cmd.MaxLength < 0:
		return fmt.Errorf("--max-length is %d, want at least 0", cmd.MaxLength)
	case cmd.Stride != nil && *cmd.Stride < 0:
		return fmt.Errorf("--stride is %d, want at least 0", *cmd.Stride)
	case cmd.Stride != nil && (cmd.MaxLength == 0 || !cmd.JSON):
		return errors.New("--stride goes with --max-length and --json")
	case cmd.Cut != "longest" && (cmd.MaxLength == 0 || cmd.Pair == nil):
		return errors.New("--cut goes with --max-length and --pair")
	}
	return nil
}

func (cmd *tokenizeCommand) touches() touched {
	return touched{reads: []place{{"--file", cmd.File}, {"--model", cmd.Model}}, stdin: cmd.File == "" && cmd.Text == nil}
}

func (cmd *tokenizeCommand) Run(ctx context.Context, c console) error {
	t, err := tokenizer.Load(cmd.Model)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(c.out)
	if cmd.Text != nil {
		if err := cmd.write(out, t, *cmd.Text); err != nil {
			return &seq2seq.InputError{Name: "argument", Reason: err.Error()}
		}
		return out.Flush()
	}
	in, name := c.in, "standard input"
	if cmd.File != "" {
		file, err := os.Open(cmd.File)
		if err != nil {
			return err
		}
		defer file.Close()
		in, name = file, cmd.File
	} else {
		c.invite("type texts to tokenize, one per line; " + endOfInput() + " ends the input")
	}
	return cmd.lines(ctx, in, name, out, t)
}

// lines writes a line for each line of an input. It is written out when nothing more
// is at hand, since somebody may be typing.
func (cmd *tokenizeCommand) lines(ctx context.Context, in io.Reader, name string, out *bufio.Writer, t *tokenizer.Tokenizer) error {
	rows := readRows(ctx, in)
	for number := 1; ; number++ {
		var r row
		select {
		case <-ctx.Done():
			return errors.Join(out.Flush(), ctx.Err())
		case r = <-rows:
		}
		if r.err == io.EOF && r.text == "" {
			return out.Flush()
		}
		if r.err != nil && r.err != io.EOF {
			return errors.Join(out.Flush(), r.err)
		}
		text := strings.TrimSuffix(strings.TrimSuffix(r.text, "\n"), "\r")
		if err := cmd.write(out, t, text); err != nil {
			return errors.Join(out.Flush(), &seq2seq.InputError{Name: name, Line: number, Reason: err.Error()})
		}
		if r.last {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// row is a line of an input with its end, or what came in its place.
type row struct {
	text string
	err  error
	last bool // nothing more is at hand
}

// readRows reads lines of any length in the background, so that an interruption need
// not wait for the next.
func readRows(ctx context.Context, in io.Reader) <-chan row {
	rows := make(chan row, 64)
	go func() {
		lines := bufio.NewReaderSize(in, 1<<16)
		for {
			text, err := lines.ReadString('\n')
			select {
			case rows <- row{text, err, lines.Buffered() == 0}:
			case <-ctx.Done():
				return
			}
			if err != nil && text == "" {
				return
			}
		}
	}()
	return rows
}

// tokenized is a line of --json.
type tokenized struct {
	IDs      []int       `json:"ids"`
	Tokens   []string    `json:"tokens"`
	Offsets  [][2]int    `json:"offsets"`
	TypeIDs  []int       `json:"type_ids"`
	Texts    []int       `json:"texts"`
	Overflow []tokenized `json:"overflow,omitempty"`
}

// newTokenized returns the line of an encoding.
func newTokenized(e *tokenizer.Encoding) tokenized {
	line := tokenized{IDs: e.IDs, Tokens: e.Tokens, Offsets: make([][2]int, len(e.Offsets)), TypeIDs: e.TypeIDs, Texts: e.Texts}
	for i, at := range e.Offsets {
		line.Offsets[i] = [2]int{at.Start, at.End}
	}
	for _, more := range e.Overflow {
		line.Overflow = append(line.Overflow, newTokenized(more))
	}
	return line
}

// options say how texts are encoded.
func (cmd *tokenizeCommand) options() tokenizer.Options {
	o := tokenizer.Options{NoSpecial: cmd.NoSpecial, NoPadding: true, SpecialAsText: cmd.AsText, MaxLength: cmd.MaxLength, NoTruncation: cmd.MaxLength == 0}
	if cmd.MaxLength > 0 {
		o.Strategy = map[string]tokenizer.Strategy{"longest": tokenizer.LongestFirst, "first": tokenizer.OnlyFirst, "second": tokenizer.OnlySecond}[cmd.Cut]
	}
	if cmd.Stride != nil {
		o.Overflow, o.Stride = true, *cmd.Stride
	}
	return o
}

// write writes the tokens of a text.
func (cmd *tokenizeCommand) write(w io.Writer, t *tokenizer.Tokenizer, text string) error {
	var e *tokenizer.Encoding
	var err error
	if cmd.Pair != nil {
		e, err = t.EncodePair(text, *cmd.Pair, cmd.options())
	} else {
		e, err = t.Encode(text, cmd.options())
	}
	if err != nil {
		return err
	}
	if !cmd.JSON {
		_, err := fmt.Fprintln(w, strings.Trim(fmt.Sprint(e.IDs), "[]"))
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(newTokenized(e))
}
