package train

import (
	"context"
	"math"

	"github.com/attn-go/attn/internal/strictjson"
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
	// BLEU is the corpus BLEU, 0 to 100; see CorpusBLEU.
	BLEU Number `json:"bleu"`
	// Sources is the number of different sources. Pairs with the same source count as one
	// source with several correct translations.
	Sources int `json:"sources"`
}

// Evaluate translates the sources of pairs and compares the results with their targets. If
// ctx ends, Evaluate returns the context's error.
func Evaluate(ctx context.Context, m *seq2seq.Translator, pairs []seq2seq.Pair, d seq2seq.Decoding) (Metrics, error) {
	loss, err := m.Loss(ctx, pairs)
	if err != nil {
		return Metrics{}, err
	}
	sources, references := Group(pairs)
	translations, err := m.Translate(ctx, sources, d)
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
