package train

import (
	"context"
	"math"

	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/seq2seq"
)

// Number is a number whose JSON is null if it is infinite or NaN, such as the loss of a broken
// model.
type Number = strictjson.Number

// Metrics is the quality of a translator on pairs, usually unseen ones.
type Metrics struct {
	// Loss is the mean cross entropy of the target tokens including end marks, given the
	// tokens before; unit: nats.
	Loss Number `json:"loss"`
	// Perplexity is exp(Loss).
	Perplexity Number `json:"perplexity"`
	// ExactMatch is the fraction of sources whose translation equals one of their targets
	// exactly.
	ExactMatch Number `json:"exact_match"`
	// BLEU is the corpus BLEU, 0 to 100; see MetricBLEU.
	BLEU Number `json:"bleu"`
	// Sources is the number of different sources. Pairs with the same source count as one
	// source with several correct translations.
	Sources int `json:"sources"`
}

// Evaluate translates the sources of pairs, by beam search if beam is more than 1, and compares
// the results with their targets. If ctx ends, Evaluate returns the context's error.
func Evaluate(ctx context.Context, m *models.Model, pairs []seq2seq.Pair, beam int) (Metrics, error) {
	loss, err := Loss(ctx, m, pairs)
	if err != nil {
		return Metrics{}, err
	}
	sources, references := Group(pairs)
	translations, err := m.Translate(ctx, sources, beam)
	if err != nil {
		return Metrics{}, err
	}
	judged, err := Judge(translations, references)
	if err != nil {
		return Metrics{}, err
	}
	return Metrics{
		Loss: Number(loss), Perplexity: Number(math.Exp(loss)), ExactMatch: Number(judged.Exact()),
		BLEU: Number(judged.Value(MetricBLEU)), Sources: len(sources),
	}, nil
}

// Probe returns m with pairs as examples, to measure the importance of its heads and to prune them
// (package prune). Its loss is the mean cross entropy of the target tokens with teacher forcing:
// each token is predicted from the source and the true tokens before it.
//
// Errors: m is not an encoder-decoder, pairs is empty, or a text is invalid.
func Probe(m *models.Model, pairs []seq2seq.Pair) (*probe.Probe, error) {
	examples := make([]probe.Example, len(pairs))
	for i, p := range pairs {
		var err error
		if examples[i], err = probe.TranslationExample(m, p.Source, p.Target); err != nil {
			return nil, err
		}
	}
	return probe.New(m, examples)
}

// Loss returns the mean cross entropy of the target tokens, in nats.
func Loss(ctx context.Context, m *models.Model, pairs []seq2seq.Pair) (float64, error) {
	p, err := Probe(m, pairs)
	if err != nil {
		return 0, err
	}
	return p.Loss(ctx)
}
