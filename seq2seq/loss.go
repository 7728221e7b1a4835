package seq2seq

import (
	"cmp"
	"context"
	"slices"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

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

// PairLoss is the cross entropy of a target, given its source.
type PairLoss struct {
	Nats   float64 // of all its tokens
	Tokens int     // with the mark at its end
}

// Losses returns the cross entropy of each pair. It is the same to the bit whatever the
// other pairs are.
func (m *Translator) Losses(ctx context.Context, pairs []Pair) ([]PairLoss, error) {
	losses := make([]PairLoss, len(pairs))
	t := tensor.NewTape(tensor.Infer)
	for _, batch := range m.batches(pairs) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t.Reset()
		logits, _ := m.logits(t, batch, hooks{})
		logp, vocabulary := tensor.LogSoftmax(t, logits).Data(), logits.Dim(-1)
		for _, e := range batch {
			losses[e.pair] = PairLoss{crossEntropy(logp, e.write, vocabulary), len(e.write)}
			logp = logp[len(e.write)*vocabulary:]
		}
	}
	return losses, nil
}

// crossEntropy returns that of tokens, whose logarithms of probabilities are the first rows
// of logp.
func crossEntropy(logp []float32, tokens []int, vocabulary int) (nats float64) {
	for i, token := range tokens {
		nats -= float64(logp[i*vocabulary+token])
	}
	return nats
}

// batches returns pairs as examples, in batches of similar lengths.
func (m *Translator) batches(pairs []Pair) [][]example {
	examples := make([]example, len(pairs))
	for i, p := range pairs {
		examples[i] = m.example(p)
		examples[i].pair = i
	}
	slices.SortStableFunc(examples, func(a, b example) int {
		return cmp.Or(cmp.Compare(len(a.src), len(b.src)), cmp.Compare(len(a.write), len(b.write)))
	})
	return slices.Collect(batched(examples, func(e example) int { return max(len(e.src), len(e.write)) }))
}
