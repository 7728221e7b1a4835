package probe

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
)

// Reference is the predictions of a probe, with which other probes are compared: probes of the
// same model with fewer heads, or of another model on the same examples.
type Reference struct {
	probe  *Probe
	states []*tensor.Tensor // of the first batches, as far as they fit in memory
}

// mostStates limits the numbers that a Reference keeps. The states of other batches are
// recomputed.
const mostStates = 1 << 26

// NewReference runs a probe over its examples. If ctx ends, it returns ctx.Err().
func NewReference(ctx context.Context, p *Probe) (*Reference, error) {
	return newReference(ctx, p, mostStates)
}

// newReference is NewReference with room for the given number of states.
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

// Predicted is the result of a probe for an example.
type Predicted struct {
	Terms int     // of the loss
	Loss  float64 // of all its terms
	Right int     // terms for which no class is more likely than the target
	// KL is the divergence of the probabilities q from the reference's, p, in nats, summed over
	// all terms: Σ p·ln(p/q). It is NaN if the task has no probabilities.
	KL     float64
	Cosine float64 // of the vectors of a pair of texts, or of a text and its target; otherwise NaN
}

// each calls visit with the states of the reference and of another probe, batch by batch.
func (r *Reference) each(ctx context.Context, other *Probe, visit func(t *tensor.Tape, whole, x *tensor.Tensor, b *batch)) error {
	own := other.On(r.probe)
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

// Compare returns the predictions of another probe for the examples of the reference, in the
// order given to its constructor. If ctx ends, it returns ctx.Err().
func (r *Reference) Compare(ctx context.Context, other *Probe) ([]Predicted, error) {
	list := make([]Predicted, r.probe.examples())
	err := r.each(ctx, other, func(t *tensor.Tape, whole, x *tensor.Tensor, b *batch) {
		r.probe.aim.predicted(t, other.aim.outputs(t, x), r.probe.aim.outputs(t, whole), b, list)
	})
	return list, err
}

// Difference compares the outputs of another probe, logits or cosines, with the reference's. It
// returns their largest absolute difference and the largest absolute value of either. If any
// output is not finite, both are NaN. If ctx ends, it returns ctx.Err().
func (r *Reference) Difference(ctx context.Context, other *Probe) (largest, scale float64, err error) {
	err = r.each(ctx, other, func(t *tensor.Tape, whole, x *tensor.Tensor, _ *batch) {
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

// Moved returns how far the weights of another probe's heads are from those of the same heads of the reference: the
// Jensen–Shannon divergence in nats (see heads.Divergence), 0 to ln 2, averaged over the queries of all examples; signed weights count with their shares of a row. Values
// are by layer and remaining head of the other probe, and NaN for a head that never attends.
//
// Errors: a head that the reference lacks; if ctx ends, ctx.Err().
func (r *Reference) Moved(ctx context.Context, other *Probe) (map[string][]float64, error) {
	return r.moved(ctx, other, mostStates)
}

// moved is Moved with room for the given number of weights. It runs the models again for further layers.
func (r *Reference) moved(ctx context.Context, other *Probe, room int) (map[string][]float64, error) {
	own := other.On(r.probe)
	mine, its := r.probe.numbers(), own.numbers()
	sums, counts, signed := map[string][]float64{}, map[string][]float64{}, map[string]bool{}
	for _, l := range own.layers {
		signed[l.Name] = l.Signed
	}
	for name, list := range its {
		if i := slices.IndexFunc(list, func(n int) bool { return !slices.Contains(mine[name], n) }); i >= 0 {
			return nil, fmt.Errorf("probe: Moved: the reference lacks head %d of layer %s", list[i], quote.Text(name))
		}
		sums[name], counts[name] = make([]float64, len(list)), make([]float64, len(list))
	}
	err := own.each(ctx, func(t *tensor.Tape, i int) {
		b := &own.batches[i]
		longest := slices.Max(append(b.x.Lens(), lens(b.x.Targets)...))
		for from := 0; from < len(own.layers); {
			before, used := map[string][]*tensor.Tensor{}, 0 // by layer and call: a recurrent decoder attends step by step
			for ; from < len(own.layers); from++ {
				name := own.layers[from].Name
				size := len(b.x.IDs) * len(mine[name]) * longest * longest
				if used > 0 && used+size > room {
					break
				}
				before[name], used = nil, used+size
			}
			t.Reset()
			r.probe.states(t, i, prune.Pass{Observe: func(layer string, w *tensor.Tensor) {
				if list, ok := before[layer]; ok {
					before[layer] = append(list, shares(w.Clone(), signed[layer]))
				}
			}})
			t.Reset()
			done := map[string]int{}
			own.states(t, i, prune.Pass{Observe: func(layer string, w *tensor.Tensor) {
				list := before[layer]
				if len(list) == 0 {
					return
				}
				before[layer], w = list[1:], shares(w, signed[layer])
				for s, n := range b.queries(layer) {
					rows := min(w.Dim(2), max(0, n-done[layer]))
					for h, number := range its[layer] {
						was := rowsOf(list[0], s, slices.Index(mine[layer], number), rows)
						if d := heads.Divergence(was, rowsOf(w, s, h, rows), rows); !math.IsNaN(d) {
							sums[layer][h] += float64(d * float64(rows))
							counts[layer][h] += float64(rows)
						}
					}
				}
				done[layer] += w.Dim(2)
			}})
		}
	})
	for name, list := range sums {
		for h := range list {
			list[h] /= counts[name][h]
		}
	}
	return sums, err
}

// shares replaces weights by their shares of a row if they are signed, as measures of heads do.
func shares(w *tensor.Tensor, signed bool) *tensor.Tensor {
	if signed {
		for row := range slices.Chunk(w.Data(), max(1, w.Dim(3))) {
			heads.ToShares(row)
		}
	}
	return w
}

// numbers returns the numbers of the remaining heads of each layer in the unpruned model.
func (p *Probe) numbers() map[string][]int {
	kept := p.Kept()
	for name, list := range kept {
		kept[name] = stats.Pick(p.model.HeadNumbers(name), list)
	}
	return kept
}

// rowsOf returns the first rows of the weights [B H Lq Lk] of a head.
func rowsOf(w *tensor.Tensor, sequence, head, rows int) []float32 {
	keys := w.Dim(3)
	return w.Data()[(sequence*w.Dim(1)+head)*w.Dim(2)*keys:][:rows*keys]
}
