package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/cells"
	"github.com/attn-go/attn/internal/filter"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/tokenizer"
)

type tokenizeCommand struct {
	Model     string  `required:"" help:"Directory of a model with a tokenizer.json, or with the files of an older tokenizer." placeholder:"DIR"`
	File      string  `help:"Read the lines of a file." placeholder:"FILE" stdin:"" excludes:"text"`
	JSON      bool    `name:"json" help:"Write a JSON object for each line: ids, tokens, offsets in bytes, type_ids, and texts (0 or 1, −1 for added tokens)." xor:"form"`
	TSV       bool    `name:"tsv" help:"Write two columns, the ids and the error." xor:"form"`
	Strict    bool    `help:"Stop at the first line that cannot be tokenized."`
	Pair      *string `help:"A second text, which goes with each line." placeholder:"TEXT"`
	NoSpecial bool    `help:"Leave out the tokens that the model wants around a text, such as [CLS]."`
	AsText    bool    `name:"special-as-text" help:"Take special tokens that a text has, such as [SEP], for text."`
	MaxLength int     `help:"Cut to this many tokens, those around a text included. 0 cuts nothing." placeholder:"N" want:"at least 0"`
	Stride    *int    `help:"Write what --max-length cuts off too, as overflow: further pieces, each with this many tokens of the one before. Needs --json." placeholder:"N" want:"at least 0" needs:"max-length,json" excludes:"max-length=0"`
	Cut       string  `help:"Which text of a pair --max-length cuts: longest, first or second." enum:"longest,first,second" default:"longest" placeholder:"TEXT" needs:"max-length,pair"`
	Text      *string `arg:"" optional:"" help:"Text to tokenize; without it or --file, the lines of standard input." stdin:""`

	columns int // of the terminal on which each token is shown above its id; 0 writes ids
}

func (tokenizeCommand) Help() string {
	return `Examples:

  attn tokenize --model bert-base-uncased "Attention is all you need"
  attn tokenize --model bert-base-uncased --pair "What is attention?" "It weights keys."
  attn tokenize --model gpt2 --json --file texts.txt > tokens.jsonl
  attn tokenize --model bert-base-uncased --json --max-length 384 --stride 128 --file passages.txt

Without --json, a line has the ids with a space between them; on a terminal each token is
above its id. Truncation and padding that the tokenizer's file asks for are left to
whoever runs the model; --max-length cuts at its side.

One line out for each line in, in the same order, whatever the line holds: one that cannot
be tokenized becomes {"error": "…"}, or ends the run with --strict. docs/scale.md has more.`
}

func (cmd *tokenizeCommand) Run(ctx context.Context, c console) error {
	if isTerminal(c.out) && !cmd.JSON && !cmd.TSV { // and not where attn shards writes files
		cmd.columns = columns(c.out)
	}
	if cmd.Text == nil {
		return runLines(ctx, c, cmd, cmd.File, "type texts to tokenize, one per line")
	}
	encode, err := cmd.encoder(c)
	if err != nil {
		return err
	}
	x, err := encode(*cmd.Text)
	if err != nil {
		return &input.Error{Name: "argument", Err: err}
	}
	return cmd.filter(encode).Write(c.out, &filter.Line[string]{Number: 1, Value: x})
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
	encode, err := cmd.encoder(c)
	if err != nil {
		return nil, err
	}
	return newStream(cmd.filter(encode), c), nil
}

// tokenized is what a line becomes with --json.
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

// encoder loads the tokenizer and returns what makes of a text what is written of it.
func (cmd *tokenizeCommand) encoder(c console) (func(text string) (string, error), error) {
	t, err := loadTokenizer(c, cmd.Model)
	if err != nil {
		return nil, err
	}
	o := cmd.options()
	encode := func(text string) (*tokenizer.Encoding, error) { return t.Encode(text, o) }
	if cmd.Pair != nil {
		encode = func(text string) (*tokenizer.Encoding, error) { return t.EncodePair(text, *cmd.Pair, o) }
	}
	return func(text string) (string, error) {
		e, err := encode(text)
		switch {
		case err != nil:
			return "", err
		case cmd.columns > 0:
			return tokenRows(e, cmd.columns), nil
		case !cmd.JSON:
			return spaced(e.IDs), nil
		}
		var b strings.Builder
		err = filter.JSON(&b, &filter.Line[tokenized]{Value: newTokenized(e)})
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
	switch {
	case cmd.columns > 0:
		f.Write = func(w io.Writer, l *filter.Line[string]) error {
			if l.Err != nil {
				return filter.JSON(w, l)
			}
			if l.Number > 1 {
				l.Value = "\n" + l.Value
			}
			_, err := fmt.Fprintln(w, l.Value)
			return err
		}
	case cmd.TSV:
		f.Write = filter.TSV(1, func(x string) []string { return []string{x} })
	}
	return f
}

// tokenRows returns rows of tokens that fit the columns of a terminal, each with its ids below.
func tokenRows(e *tokenizer.Encoding, columns int) string {
	const gap = 2
	var rows []string
	var tokens, ids string
	used := 0
	for i, id := range e.IDs {
		token, number := shownToken(e.Tokens[i]), strconv.Itoa(id)
		wide, digits := cells.Width(token), len(number)
		cell := max(wide, digits)
		if used > 0 && used+cell > columns {
			rows = append(rows, strings.TrimRight(tokens, " ")+"\n"+strings.TrimRight(ids, " "))
			tokens, ids, used = "", "", 0
		}
		tokens += token + strings.Repeat(" ", cell+gap-wide)
		ids += number + strings.Repeat(" ", cell+gap-digits)
		used += cell + gap
	}
	rows = append(rows, strings.TrimRight(tokens, " ")+"\n"+strings.TrimRight(ids, " "))
	return strings.Join(rows, "\n\n")
}

// shownToken returns a token with its spaces in sight, and escapes for what would move the cursor.
func shownToken(token string) string {
	quoted := strconv.Quote(token)
	return strings.NewReplacer(`\"`, `"`, " ", "␣").Replace(quoted[1 : len(quoted)-1])
}

// spaced returns numbers with a space between them.
func spaced(ids []int) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = strconv.Itoa(id)
	}
	return strings.Join(words, " ")
}
