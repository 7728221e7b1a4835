package seq2seq

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Metrics is the quality of a translator on pairs that it may not have seen.
type Metrics struct {
	// Loss is the mean cross entropy of the target tokens, end marks included,
	// given those before; unit: nats.
	Loss float64 `json:"loss"`
	// Perplexity is exp(Loss).
	Perplexity float64 `json:"perplexity"`
	// ExactMatch is the share of sources whose translation is one of their
	// targets to the letter.
	ExactMatch float64 `json:"exact_match"`
	// BLEU is that of the corpus, 0 to 100; see CorpusBLEU.
	BLEU float64 `json:"bleu"`
	// Sources is the number of different sources. Pairs with the same source
	// are one source with several right translations.
	Sources int `json:"sources"`
}

// Evaluate translates the sources of pairs and compares with their targets. If
// ctx ends it returns the context's error.
func (m *Translator) Evaluate(ctx context.Context, pairs []Pair, d Decoding) (Metrics, error) {
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
		Loss: loss, Perplexity: math.Exp(loss), ExactMatch: judged.Exact(),
		BLEU: judged.BLEU(), Sources: len(sources),
	}, nil
}

// Loss returns the mean cross entropy of the target tokens, in nats.
func (m *Translator) Loss(ctx context.Context, pairs []Pair) (float64, error) {
	t := tensor.NewTape(tensor.Infer)
	sum, count := 0.0, 0
	for _, batch := range m.batches(pairs) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		t.Reset()
		logits, write := m.logits(t, batch, hooks{})
		sum += float64(nn.CrossEntropy(t, logits, write, Pad, 0).Item()) * float64(len(write))
		count += len(write)
	}
	return sum / float64(count), nil
}

// batches returns pairs as examples, in batches of similar lengths.
func (m *Translator) batches(pairs []Pair) [][]example {
	examples := make([]example, len(pairs))
	for i, p := range pairs {
		examples[i] = m.example(p)
	}
	slices.SortStableFunc(examples, func(a, b example) int {
		return cmp.Or(cmp.Compare(len(a.src), len(b.src)), cmp.Compare(len(a.write), len(b.write)))
	})
	return slices.Collect(batched(examples, func(e example) int { return max(len(e.src), len(e.write)) }))
}
