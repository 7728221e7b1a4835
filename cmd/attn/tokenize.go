package main

import (
	"context"

	"github.com/attn-go/attn/internal/texts"
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
	tokens, err := cmd.tokens(c)
	if err != nil {
		return err
	}
	f := tokens.Filter()
	f.Name = "argument"
	return f.Texts(ctx, []string{*cmd.Text}, c.out)
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
	tokens, err := cmd.tokens(c)
	return newStream(tokens.Filter(), c), err
}

// tokens loads the tokenizer.
func (cmd *tokenizeCommand) tokens(c console) (texts.Tokens, error) {
	t, err := loadTokenizer(c, cmd.Model)
	return texts.Tokens{
		Tokenizer: t, Options: cmd.options(), Pair: cmd.Pair,
		JSON: cmd.JSON, TSV: cmd.TSV, Columns: cmd.columns, Strict: cmd.Strict,
	}, err
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
