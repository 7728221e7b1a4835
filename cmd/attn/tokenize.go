package main

import (
	"context"

	"github.com/attn-go/attn/internal/shards"
	"github.com/attn-go/attn/internal/texts"
	"github.com/attn-go/attn/tokenizer"
)

type tokenizeCommand struct {
	Model     string  `required:"" help:"Directory of a model with a tokenizer.json, or with the files of an older tokenizer format." placeholder:"DIR"`
	File      string  `help:"Read the lines of a file." placeholder:"FILE" stdin:"" excludes:"text"`
	JSON      bool    `name:"json" help:"Write a JSON object for each line: ids, tokens, offsets in bytes, type_ids, and texts (0 or 1, −1 for added tokens)." xor:"form"`
	TSV       bool    `name:"tsv" help:"Write two columns, the ids and the error." xor:"form"`
	Strict    bool    `help:"Stop at the first line that cannot be tokenized."`
	Pair      *string `help:"Second text of the pair with each line." placeholder:"TEXT"`
	NoSpecial bool    `help:"Do not add special tokens around a text, such as [CLS]."`
	AsText    bool    `name:"special-as-text" help:"Tokenize special tokens in a text, such as [SEP], as plain text."`
	MaxLength int     `help:"Truncate to this many tokens, including special tokens; 0 does not truncate." placeholder:"N" want:"at least 0"`
	Stride    *int    `help:"Also write the truncated rest, as overflow: further pieces, each of which repeats this many tokens of the piece before. Requires --json." placeholder:"N" want:"at least 0" needs:"max-length,json" excludes:"max-length=0"`
	Cut       string  `help:"Text of a pair to truncate: longest, first or second." enum:"longest,first,second" default:"longest" placeholder:"TEXT" needs:"max-length,pair"`
	Text      *string `arg:"" optional:"" help:"Text to tokenize; without it or --file, the lines of standard input." stdin:""`

	columns int // width of the terminal, to show each token above its id; 0 writes ids only
}

func (tokenizeCommand) Help() string {
	return `Examples:

  attn tokenize --model bert-base-uncased "Attention is all you need"
  attn tokenize --model bert-base-uncased --pair "What is attention?" "It weights keys."
  attn tokenize --model gpt2 --json --file texts.txt > tokens.jsonl
  attn tokenize --model bert-base-uncased --json --max-length 384 --stride 128 --file passages.txt

Without --json, a line contains the ids separated by spaces; a terminal shows each token
above its id. The truncation and padding settings of the tokenizer's file are ignored; use
--max-length to truncate, on the side that the file sets.

The output has one line per input line, in the same order. A line that cannot be tokenized
becomes {"error": "…"}; with --strict, it ends the run. See docs/scale.md for details.`
}

func (cmd *tokenizeCommand) Run(ctx context.Context, c console) error {
	if !cmd.JSON && !cmd.TSV { // attn shards does not run this: its files contain ids
		cmd.columns = c.width()
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

func (cmd *tokenizeCommand) streams() bool { return cmd.File == "" && cmd.Text == nil }

func (cmd *tokenizeCommand) model() (string, bool) { return cmd.Model, false }

func (cmd *tokenizeCommand) stream(c console) (shards.Stream, error) {
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

// options returns the options of the tokenizer.
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
