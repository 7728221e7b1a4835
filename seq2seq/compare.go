package seq2seq

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Reference is what a translator predicts for the targets of pairs, for other
// translators to be compared with it.
//
// It keeps what the decoder says of each target token in front of its last map,
// Width numbers of 4 bytes, and refers to the translator, which must stay as it
// is. A Reference may be used by several goroutines at once.
type Reference struct {
	model   *Translator
	batches [][]example
	vectors []*tensor.Tensor // [tokens Width], of each batch
}

// NewReference runs m over pairs: sources and, beside them, targets. It returns an
// error if there are no pairs; if ctx ends, the context's.
func NewReference(ctx context.Context, m *Translator, pairs []Pair) (*Reference, error) {
	if len(pairs) == 0 {
		return nil, errors.New("seq2seq: NewReference: no pairs")
	}
	r := &Reference{model: m, batches: m.batches(pairs)}
	t := tensor.NewTape(tensor.Infer)
	for _, batch := range r.batches {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t.Reset()
		x, _ := m.vectors(t, batch, hooks{})
		r.vectors = append(r.vectors, x.Clone())
	}
	return r, nil
}

// each calls visit with the predictions of the reference and of another
// translator, batch by batch: logits [N TargetVocab] of N target tokens.
func (r *Reference) each(ctx context.Context, other *Translator, visit func(t *tensor.Tape, p, q *tensor.Tensor, write []int)) error {
	if !other.Source.equal(r.model.Source) || !other.Target.equal(r.model.Target) {
		return errors.New("seq2seq: the translators to compare have different vocabularies")
	}
	t := tensor.NewTape(tensor.Infer)
	for i, batch := range r.batches {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.Reset()
		p := r.model.net.logits(t, r.vectors[i])
		q, write := other.logits(t, batch, hooks{})
		visit(t, p, q, write)
	}
	return nil
}

// Compare returns the mean over the target tokens of the other translator's cross
// entropy, as Translator.Loss has it, and of how far its predictions are from the
// reference's, both in nats:
//
//	kl = Σ_c p_c·ln(p_c/q_c)
//
// p are the probabilities of the reference, q those of the other. kl is 0 if the
// predictions are the same, and never negative but for rounding.
//
// Errors: other vocabularies; if ctx ends, the context's.
//
// Source: Kullback and Leibler, "On Information and Sufficiency", 1951.
func (r *Reference) Compare(ctx context.Context, other *Translator) (loss, kl float64, err error) {
	tokens := 0
	err = r.each(ctx, other, func(t *tensor.Tape, p, q *tensor.Tensor, write []int) {
		loss += float64(nn.CrossEntropy(t, q, write, Pad, 0).Item()) * float64(len(write))
		for _, d := range nn.KLDivergence(t, p, q).Data() {
			kl += float64(d)
		}
		tokens += len(write)
	})
	return loss / float64(tokens), kl / float64(tokens), err
}

// Difference returns the largest absolute difference between a logit of the other
// translator and the reference's, and the largest absolute logit of both, for a
// check that two forms of a translator agree. If any of the logits is not finite,
// both results are NaN, which no comparison takes for agreement.
//
// Errors are those of Compare.
func (r *Reference) Difference(ctx context.Context, other *Translator) (largest, scale float64, err error) {
	finite := true
	err = r.each(ctx, other, func(_ *tensor.Tape, p, q *tensor.Tensor, _ []int) {
		for i, v := range p.Data() {
			a, b := float64(v), float64(q.Data()[i])
			finite = finite && math.Abs(a) <= math.MaxFloat32 && math.Abs(b) <= math.MaxFloat32
			largest = max(largest, math.Abs(a-b))
			scale = max(scale, math.Abs(a), math.Abs(b))
		}
	})
	if err != nil {
		return 0, 0, err
	}
	if !finite {
		return math.NaN(), math.NaN(), nil
	}
	return largest, scale, nil
}

// equal reports whether two vocabularies are the same.
func (v *Vocabulary) equal(w *Vocabulary) bool {
	return v == w || v.units == w.units && slices.Equal(v.pieces, w.pieces) && slices.Equal(v.merges, w.merges)
}
