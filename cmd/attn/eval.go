package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/app/shards"
	"github.com/attn-go/attn/internal/app/texts"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

type evalCommand struct {
	settingFlag
	Model   string `required:"" help:"Directory of the model." placeholder:"DIR"`
	Data    string `help:"Tab-separated pairs, one per line (with --per-line, default standard input)." placeholder:"FILE" unless:"per-line" stdin:""`
	Beam    int    `default:"1" help:"Beam size; 1 is greedy search." placeholder:"N" want:"1 to 1000" excludes:"per-line"`
	JSON    bool   `name:"json" help:"Write a JSON object; with --per-line, one for each line."`
	PerLine bool   `help:"Write only the loss of each line: nats, tokens and, for a line that cannot be processed, the error."`
	Strict  bool   `help:"With --per-line, stop at the first line that cannot be processed." needs:"per-line"`
	languageFlags
}

func (evalCommand) Help() string {
	return `Examples:

  attn eval --model runs/fra.run --data valid.tsv
  attn eval --model runs/fra.run --data valid.tsv --json
  attn eval --model runs/fra.run --per-line < corpus.tsv > losses.tsv

Pairs with the same source count as one source with several correct translations.
BLEU is the corpus score, 0 to 100, with 13a tokenisation.`
}

func (cmd *evalCommand) Run(ctx context.Context, c console) error {
	if cmd.PerLine {
		return runLines(ctx, c, cmd, cmd.Data, "type pairs, source, tab, target, one per line")
	}
	m, err := cmd.load(c)
	if err != nil {
		return err
	}
	pairs, err := train.LoadTest(cmd.Data)
	if err != nil {
		return err
	}
	unknown := texts.NewUnknown(m, c.err).Pairs(pairs)
	metrics, err := train.Evaluate(ctx, m, pairs, cmd.Beam)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return json.NewEncoder(c.out).Encode(evaluated{metrics, unknown})
	}
	_, err = fmt.Fprintf(c.out, "loss         %.4f nats per token\nperplexity   %.4f\nexact match  %.2f%%\nBLEU         %.2f\nsources      %d\n",
		metrics.Loss, metrics.Perplexity, 100*metrics.ExactMatch, metrics.BLEU, metrics.Sources)
	return err
}

func (cmd *evalCommand) streams() bool { return cmd.PerLine && cmd.Data == "" }

func (cmd *evalCommand) model() (string, bool) { return cmd.Model, true }

func (cmd *evalCommand) stream(c console) (shards.Stream, error) {
	m, err := cmd.load(c)
	if err != nil {
		return nil, err
	}
	f := texts.Losses(m, c.err)
	f.Strict = cmd.Strict
	if cmd.JSON {
		f.Write = filter.JSON[texts.Loss]
	}
	return newStream(f, c), nil
}

func (cmd *evalCommand) load(c console) (*models.Model, error) {
	return loadTranslator(c, cmd.Model, models.Options{Trainable: true, Allowed: cmd.AllowSetting}, cmd.languageFlags)
}

// evaluated is the JSON object without --per-line.
type evaluated struct {
	train.Metrics
	Unknown []string `json:"unknown,omitempty"` // pieces that the vocabularies lack
}
