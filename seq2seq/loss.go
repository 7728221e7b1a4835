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
	type numbered struct {
		example
		pair int
	}
	examples := make([]numbered, len(pairs))
	for i, p := range pairs {
		examples[i] = numbered{m.example(p), i}
	}
	slices.SortStableFunc(examples, func(a, b numbered) int { return a.compare(b.example) })
	losses := make([]PairLoss, len(pairs))
	t := tensor.NewTape(tensor.Infer)
	for batch := range batched(examples, func(n numbered) int { return n.longest() }) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		list := make([]example, len(batch))
		for i, n := range batch {
			list[i] = n.example
		}
		t.Reset()
		logits, write := m.logits(t, list, hooks{})
		logp := tensor.LogSoftmax(t, logits).Data()
		vocabulary := logits.Dim(-1)
		for _, n := range batch {
			tokens := len(n.write)
			losses[n.pair] = PairLoss{crossEntropy(logp[:tokens*vocabulary], write[:tokens]), tokens}
			logp, write = logp[tokens*vocabulary:], write[tokens:]
		}
	}
	return losses, nil
}

// crossEntropy returns that of some tokens, whose logarithms of probabilities are logp, a
// row for each.
func crossEntropy(logp []float32, tokens []int) (nats float64) {
	vocabulary := len(logp) / max(len(tokens), 1)
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
	}
	slices.SortStableFunc(examples, example.compare)
	return slices.Collect(batched(examples, example.longest))
}

// compare orders examples by their lengths.
func (e example) compare(o example) int {
	return cmp.Or(cmp.Compare(len(e.src), len(o.src)), cmp.Compare(len(e.write), len(o.write)))
}

// longest returns the number of tokens of the longer side.
func (e example) longest() int { return max(len(e.src), len(e.write)) }
