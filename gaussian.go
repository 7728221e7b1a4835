package attn

import (
	"fmt"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Gaussian is the score −½‖(q − k)∘w‖². With it, attention is kernel regression
// with a Gaussian kernel of width 1/w, and the values of the nearest keys count
// most.
//
// Source: Nadaraya, 1964; Watson, 1964; as attention pooling in Zhang et al.,
// "Dive into Deep Learning", https://d2l.ai, chapter 11.
type Gaussian struct {
	// W is one factor for all features [1] or one for each [E], learnt if it
	// is a parameter. Nil means 1.
	W *tensor.Tensor
}

func (*Gaussian) rowwise() {}

// Scores returns −½‖(q − k)∘w‖² for all pairs. It takes differences first and
// squares them, so that a query close to a key far from the origin is exact.
func (s *Gaussian) Scores(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
	e := q.Dim(-1)
	wantSize("key", k, e)
	w := s.W
	if w == nil {
		w = tensor.Full(1, 1)
	}
	switch w.Len() {
	case e:
	case 1: // one factor for all features
		w = tensor.BroadcastTo(t, w, e)
	default:
		panic(&tensor.ShapeError{Op: "attn: Attend", Arg: "w of the Gaussian score", Got: w.Shape(), Want: fmt.Sprintf("[1] or [E=%d]", e)})
	}
	wantSameHeads(q, k)
	return gaussianScores(t, q, k, w)
}

// Params returns "w" where there is one.
func (s *Gaussian) Params() nn.Params { return nn.Vars{{Name: "w", Tensor: s.W}}.Params() }

// gaussianScores is Gaussian with w [E].
func gaussianScores(t *tensor.Tape, q, k, w *tensor.Tensor) *tensor.Tensor {
	b, heads, lq, e := q.Dim(0), q.Dim(1), q.Dim(2), q.Dim(3)
	lk := k.Dim(2)
	out := t.Make(b, heads, lq, lk)
	par.For(b*heads*lq, 1, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			qr, keys := q.Data()[r*e:][:e], k.Data()[r/lq*lk*e:][:lk*e]
			for j := range lk {
				var sum float32
				for f, v := range keys[j*e:][:e] {
					d := (qr[f] - v) * w.Data()[f]
					sum += float32(d * d)
				}
				out.Data()[r*lk+j] = -0.5 * sum
			}
		}
	})
	if t.Needs(q, k, w) {
		t.Record(out, func(ds []float32) {
			// With u = (q−k)∘w: dq −= ds·u∘w, dk += ds·u∘w, dw −= ds·u∘(q−k).
			dq, dk := gradOr(t, q), gradOr(t, k)
			eachHead(t, b*heads, w, func(z int, dw []float32) {
				for r := z * lq; r < (z+1)*lq; r++ {
					for j := range lk {
						d := ds[r*lk+j]
						if d == 0 {
							continue // hidden, or without influence
						}
						c := (z*lk + j) * e
						for f := range e {
							diff := q.Data()[r*e+f] - k.Data()[c+f]
							g := d * diff * w.Data()[f]
							dq[r*e+f] -= float32(g * w.Data()[f])
							dk[c+f] += float32(g * w.Data()[f])
							dw[f] -= float32(g * diff)
						}
					}
				}
			})
		})
	}
	return out
}
