package main

import (
	"context"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/app/shards"
	"github.com/attn-go/attn/internal/app/texts"
)

type tokenizeCommand struct {
	Model string `required:"" help:"Directory of a model with a tokenizer.json, or with the files of an older tokenizer format." placeholder:"DIR"`
	File  string `help:"Read the lines of a file." placeholder:"FILE" stdin:"" excludes:"text"`
	texts.Tokens
	Text *string `arg:"" optional:"" help:"Text to tokenize; without it or --file, the lines of standard input." stdin:""`
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
		cmd.Columns = c.width()
	}
	if cmd.Text == nil {
		return runLines(ctx, c, cmd, cmd.File, "type texts to tokenize, one per line")
	}
	f, err := cmd.filter(c)
	if err != nil {
		return err
	}
	f.Name = "argument"
	return f.Texts(ctx, []string{*cmd.Text}, c.out)
}

func (cmd *tokenizeCommand) streams() bool { return cmd.File == "" && cmd.Text == nil }

func (cmd *tokenizeCommand) model() (string, bool) { return cmd.Model, false }

func (cmd *tokenizeCommand) stream(c console) (shards.Stream, error) {
	f, err := cmd.filter(c)
	return newStream(f, c), err
}

// filter loads the tokenizer.
func (cmd *tokenizeCommand) filter(c console) (filter.Filter[string], error) {
	t, err := loadTokenizer(c, cmd.Model)
	return cmd.Filter(t), err
}
