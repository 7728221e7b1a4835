package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/seq2seq"
)

type evalCommand struct {
	Model string `required:"" help:"Directory of the model." placeholder:"DIR"`
	Data  string `required:"" help:"Tab-separated pairs, one per line." placeholder:"FILE"`
	Beam  int    `default:"1" help:"Beam size; 1 is greedy search." placeholder:"N"`
	JSON  bool   `name:"json" help:"Write a JSON object."`
}

func (evalCommand) Help() string {
	return `Examples:

  attn eval --model runs/fra.run --data valid.tsv
  attn eval --model runs/fra.run --data valid.tsv --json

Pairs with the same source count as one source with several right translations.
BLEU is the corpus score, 0 to 100, with 13a tokenisation.`
}

// Validate is called by the parser.
func (cmd *evalCommand) Validate() error {
	if cmd.Beam < 1 || cmd.Beam > 1000 {
		return fmt.Errorf("--beam %d, want 1 to 1000", cmd.Beam)
	}
	return nil
}

func (cmd *evalCommand) touches() touched {
	return touched{models: []place{{"--model", cmd.Model}}, reads: []place{{"--data", cmd.Data}}}
}

func (cmd *evalCommand) Run(ctx context.Context, c console) error {
	m, err := loadTranslator(cmd.Model)
	if err != nil {
		return err
	}
	pairs, err := loadTest(cmd.Data)
	if err != nil {
		return err
	}
	unknown := newUnknown(c.err).pairs(m, pairs)
	metrics, err := m.Evaluate(ctx, pairs, seq2seq.Decoding{Beam: cmd.Beam})
	if err != nil {
		return err
	}
	if cmd.JSON {
		return json.NewEncoder(c.out).Encode(evaluated{newMeasured(metrics), unknown})
	}
	_, err = fmt.Fprintf(c.out, "loss         %.4f nats per token\nperplexity   %.4f\nexact match  %.2f%%\nBLEU         %.2f\nsources      %d\n",
		metrics.Loss, metrics.Perplexity, 100*metrics.ExactMatch, metrics.BLEU, metrics.Sources)
	return err
}

// measured is seq2seq.Metrics in the form for programs.
type measured struct {
	Loss       number `json:"loss"`
	Perplexity number `json:"perplexity"`
	ExactMatch number `json:"exact_match"`
	BLEU       number `json:"bleu"`
	Sources    int    `json:"sources"`
}

func newMeasured(m seq2seq.Metrics) measured {
	return measured{number(m.Loss), number(m.Perplexity), number(m.ExactMatch), number(m.BLEU), m.Sources}
}

// evaluated is what attn eval tells programs.
type evaluated struct {
	measured
	Unknown []string `json:"unknown,omitempty"` // what the vocabularies do not have
}

// number is a number in JSON, which knows no infinities and no NaN: the loss of
// a broken model is null.
type number = reports.Number
