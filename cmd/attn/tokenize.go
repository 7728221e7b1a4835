package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/filter"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tokenizer"
)

type tokenizeCommand struct {
	Model     string  `required:"" help:"Directory of a model with a tokenizer.json, or with the files of an older tokenizer." placeholder:"DIR"`
	File      string  `help:"Read the lines of a file." placeholder:"FILE"`
	JSON      bool    `name:"json" help:"Write a JSON object for each line: ids, tokens, offsets in bytes, type_ids, and texts (0 or 1, −1 for added tokens)." xor:"form"`
	TSV       bool    `name:"tsv" help:"Write two columns, the ids and the error." xor:"form"`
	Strict    bool    `help:"Stop at the first line that cannot be tokenized."`
	Pair      *string `help:"A second text, which goes with each line." placeholder:"TEXT"`
	NoSpecial bool    `help:"Leave out the tokens that the model wants around a text, such as [CLS]."`
	Text      *string `arg:"" optional:"" help:"Text to tokenize; without it or --file, the lines of standard input."`
}

func (tokenizeCommand) Help() string {
	return `Examples:

  attn tokenize --model bert-base-uncased "Attention is all you need"
  attn tokenize --model bert-base-uncased --pair "What is attention?" "It weights keys."
  attn tokenize --model gpt2 --json --file texts.txt > tokens.jsonl

Without --json, a line has the ids with a space between them. Truncation and padding
that the tokenizer's file asks for are left to whoever runs the model.

One line out for each line in, in the same order, whatever the line holds: one that cannot
be tokenized becomes {"error": "…"}, or ends the run with --strict. docs/scale.md has more.`
}

// Validate is called by the parser.
func (cmd *tokenizeCommand) Validate() error {
	if cmd.File != "" && cmd.Text != nil {
		return errors.New("--file and a text exclude each other")
	}
	return nil
}

func (cmd *tokenizeCommand) touches() touched {
	return touched{reads: []place{{"--file", cmd.File}, {"--model", cmd.Model}}, stdin: cmd.File == "" && cmd.Text == nil}
}

func (cmd *tokenizeCommand) Run(ctx context.Context, c console) error {
	if cmd.Text == nil {
		return runLines(ctx, c, cmd, cmd.File, "type texts to tokenize, one per line")
	}
	encode, err := cmd.encoder()
	if err != nil {
		return err
	}
	x, err := encode(*cmd.Text)
	if err != nil {
		return &seq2seq.InputError{Name: "argument", Reason: err.Error()}
	}
	return cmd.filter(encode).Write(c.out, &filter.Line[string]{Value: x})
}

func (cmd *tokenizeCommand) streams() error {
	if cmd.File != "" || cmd.Text != nil {
		return errNotLines
	}
	return nil
}

func (cmd *tokenizeCommand) modelDir() string { return cmd.Model }

func (cmd *tokenizeCommand) modelFiles() ([]string, error) {
	return pretrainedFiles(cmd.Model, false)
}

func (cmd *tokenizeCommand) stream(c console) (lineStream, error) {
	encode, err := cmd.encoder()
	if err != nil {
		return nil, err
	}
	return newStream(cmd.filter(encode), c), nil
}

// tokenized is what a line becomes with --json.
type tokenized struct {
	IDs     []int    `json:"ids"`
	Tokens  []string `json:"tokens"`
	Offsets [][2]int `json:"offsets"`
	TypeIDs []int    `json:"type_ids"`
	Texts   []int    `json:"texts"`
}

// encoder loads the tokenizer and returns what makes of a text what is written of it.
func (cmd *tokenizeCommand) encoder() (func(text string) (string, error), error) {
	t, err := tokenizer.Load(cmd.Model)
	if err != nil {
		return nil, err
	}
	o := tokenizer.Options{NoSpecial: cmd.NoSpecial, NoTruncation: true, NoPadding: true}
	encode := func(text string) (*tokenizer.Encoding, error) { return t.Encode(text, o) }
	if cmd.Pair != nil {
		encode = func(text string) (*tokenizer.Encoding, error) { return t.EncodePair(text, *cmd.Pair, o) }
	}
	return func(text string) (string, error) {
		e, err := encode(text)
		switch {
		case err != nil:
			return "", err
		case !cmd.JSON:
			return spaced(e.IDs), nil
		}
		x := tokenized{IDs: e.IDs, Tokens: e.Tokens, Offsets: make([][2]int, len(e.Offsets)), TypeIDs: e.TypeIDs, Texts: e.Texts}
		for i, at := range e.Offsets {
			x.Offsets[i] = [2]int{at.Start, at.End}
		}
		var b strings.Builder
		err = filter.JSON(&b, &filter.Line[tokenized]{Value: x})
		return strings.TrimSuffix(b.String(), "\n"), err
	}, nil
}

// filter keeps what is written of a line and not its tokens, which need much more memory.
func (cmd *tokenizeCommand) filter(encode func(text string) (string, error)) filter.Filter[string] {
	f := filter.Filter[string]{Strict: cmd.Strict, Write: filter.Text(func(x string) string { return x })}
	f.Work = func(_ context.Context, batch []*filter.Line[string]) error {
		for _, l := range batch {
			l.Value, l.Err = encode(l.Text)
		}
		return nil
	}
	if cmd.TSV {
		f.Write = filter.TSV(1, func(x string) []string { return []string{x} })
	}
	return f
}

// spaced returns numbers with a space between them.
func spaced(ids []int) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(id)
	}
	return strings.Join(words, " ")
}
