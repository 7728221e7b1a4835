package models

import (
	"context"
	"math"

	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
)

// Reference is what a probe predicts, for others to be compared with it: probes of the
// same model with fewer heads, or of another model on the same examples.
type Reference struct {
	probe  *Probe
	states []*tensor.Tensor // of the first batches, as many as there is room for
}

// mostStates bounds the numbers that a Reference keeps. Those of other batches are computed
// again.
const mostStates = 1 << 26

// NewReference runs a probe over its examples. If ctx ends, it returns ctx.Err().
func NewReference(ctx context.Context, p *Probe) (*Reference, error) {
	return newReference(ctx, p, mostStates)
}

// newReference is NewReference with room for so many numbers.
func newReference(ctx context.Context, p *Probe, room int) (*Reference, error) {
	r := &Reference{probe: p}
	return r, p.each(ctx, func(t *tensor.Tape, i int) {
		if len(r.states) < i {
			return // there was no room for the last one
		}
		x := p.states(t, i, prune.Pass{})
		if room -= x.Len(); room >= 0 {
			r.states = append(r.states, x.Clone())
		}
	})
}

// Predicted is what a probe has made of an example.
type Predicted struct {
	Terms int     // of the loss
	Loss  float64 // of all its terms
	Right int     // terms for which nothing is likelier than what is right
	// KL is how far the probabilities q are from those of the reference, p, in nats, of
	// all terms: Σ p·ln(p/q). It is NaN where there are none.
	KL     float64
	Cosine float64 // of the vectors of a pair of texts, else NaN
}

// each calls visit with the states of the reference and of another probe, batch by batch.
func (r *Reference) each(ctx context.Context, other *Probe, visit func(t *tensor.Tape, whole, x *tensor.Tensor, b *probeBatch)) error {
	own := *other // on these examples, by its own head
	own.batches = r.probe.batches
	return own.each(ctx, func(t *tensor.Tape, i int) {
		var whole *tensor.Tensor
		if i < len(r.states) {
			whole = r.states[i]
		} else {
			whole = r.probe.states(t, i, prune.Pass{})
		}
		visit(t, whole, own.states(t, i, prune.Pass{}), &own.batches[i])
	})
}

// Compare returns what another probe predicts of the examples of the reference, in the order
// in which they were given. If ctx ends, it returns ctx.Err().
func (r *Reference) Compare(ctx context.Context, other *Probe) ([]Predicted, error) {
	n := 0
	for _, b := range r.probe.batches {
		n += len(b.examples)
	}
	list := make([]Predicted, n)
	err := r.each(ctx, other, func(t *tensor.Tape, whole, x *tensor.Tensor, b *probeBatch) {
		r.probe.aim.predicted(t, other.aim.outputs(t, x), r.probe.aim.outputs(t, whole), b, list)
	})
	return list, err
}

// Difference returns the largest absolute difference between a number that another probe
// puts out, a logit or a cosine, and the reference's, and the largest absolute one of both.
// If any is not finite, both are NaN. If ctx ends, it returns ctx.Err().
func (r *Reference) Difference(ctx context.Context, other *Probe) (largest, scale float64, err error) {
	err = r.each(ctx, other, func(t *tensor.Tape, whole, x *tensor.Tensor, _ *probeBatch) {
		p, q := r.probe.aim.outputs(t, whole), other.aim.outputs(t, x)
		for i, v := range p.Data() {
			a, b := float64(v), float64(q.Data()[i])
			largest, scale = max(largest, math.Abs(a-b)), max(scale, math.Abs(a), math.Abs(b))
		}
	})
	if math.IsInf(scale, 0) || math.IsNaN(scale) {
		largest, scale = math.NaN(), math.NaN()
	}
	return largest, scale, err
}
