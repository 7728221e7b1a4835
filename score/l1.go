package score

import (
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// L1 is the score −‖(q − k)∘w‖₁. With it, attention is kernel regression with a Laplace kernel of
// width 1/w. Compared with the Gaussian, distant keys get larger weights.
//
// The score is not differentiable where a feature of the query equals that of the key. The
// gradient is 0 there, which is between the gradients on both sides.
//
// Source: Kim et al., "Attentive Neural Processes", 2019,
// https://arxiv.org/abs/1901.05761, section 3.
type L1 struct {
	// W is one factor for all features, [1], or one per feature, [E]. It is trained if it is a
	// parameter. Nil means 1.
	W *tensor.Tensor
}

// Form returns −‖(q − k)∘w‖₁ as a Given function.
func (s *L1) Form() attn.Form {
	return attn.Form{Given: func(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
		w, e := s.W, q.Dim(-1)
		if w == nil {
			w = tensor.Full(1, 1)
		}
		wantSize("key", k, e)
		wantShape("w of the L1 score", w, w.Len() == e || w.Len() == 1, "[1] or [E=%d]", e)
		return l1Scores(t, q, k, tensor.BroadcastTo(t, tensor.Reshape(t, w, w.Len()), e))
	}}
}

// Params returns "w", or nothing if W is nil.
func (s *L1) Params() nn.Params { return nn.Vars{{Name: "w", Tensor: s.W}}.Params() }

// WithParams returns an L1 with the given "w".
func (s *L1) WithParams(p map[string]*tensor.Tensor) attn.Score { return &L1{W: p["w"]} }

// l1Kind is the table entry of L1. The distance of two random vectors varies with √E, so the
// initial w is 1/√E. The scores then vary as much as those of ScaledDot.
var l1Kind = Kind{
	Name: "l1", Formula: "−‖(q − k)∘w‖₁", Score: &L1{},
	Params: []Param{{Name: "w", Axes: []string{"E"}, Optional: true, New: func(s Sizes, _ *rand.Rand) *tensor.Tensor {
		return tensor.Full(float32(1/math.Sqrt(float64(s.Query))), s.Query).Param()
	}}},
}

// l1Scores computes L1 with w [E].
func l1Scores(t *tensor.Tape, q, k, w *tensor.Tensor) *tensor.Tensor {
	b, heads, lq, e := q.Dim(0), q.Dim(1), q.Dim(2), q.Dim(3)
	lk := k.Dim(2)
	out := t.Make(b, heads, lq, lk)
	par.For(b*heads*lq, 1, func(lo, hi int) {
		par.Check(t.Context())
		w := w.Data()
		for r := lo; r < hi; r++ {
			qr, keys := q.Data()[r*e:][:e], k.Data()[r/lq*lk*e:][:lk*e]
			for j, row := 0, out.Data()[r*lk:][:lk]; j < lk; j++ {
				var sum float32
				for f, v := range keys[j*e:][:e] {
					sum += float32(math.Abs(float64((qr[f] - v) * w[f])))
				}
				row[j] = -sum
			}
		}
	})
	if t.Needs(q, k, w) {
		t.Record(out, func(ds []float32) {
			// Heads run concurrently, so each adds to a separate dw; these are summed in order.
			dq, dk, dws := gradOr(t, q), gradOr(t, k), t.Floats(b*heads*e)
			clear(dws)
			par.For(b*heads, 1, func(lo, hi int) {
				for z := lo; z < hi; z++ {
					par.Check(t.Context())
					l1Grads(z, lq, lk, ds, q.Data(), k.Data(), w.Data(), dq, dk, dws[z*e:][:e])
				}
			})
			if dw := t.GradOf(w); dw != nil {
				for z := range b * heads {
					simd.Add(dw, dw, dws[z*e:][:e])
				}
			}
		})
	}
	return out
}

// l1Grads adds the gradients of head z, given ds. With u = (q−k)∘w:
//
//	dq −= ds·sign(u)∘w   dk += ds·sign(u)∘w   dw −= ds·sign(u)∘(q−k)
func l1Grads(z, lq, lk int, ds, q, k, w, dq, dk, dw []float32) {
	e := len(w)
	for r := z * lq; r < (z+1)*lq; r++ {
		for j := range lk {
			d := ds[r*lk+j]
			if d == 0 {
				continue // hidden, or without influence
			}
			c := (z*lk + j) * e
			for f, x := range w {
				diff := q[r*e+f] - k[c+f]
				switch u := diff * x; {
				case u > 0:
					dq[r*e+f] -= float32(d * x)
					dk[c+f] += float32(d * x)
					dw[f] -= float32(d * diff)
				case u < 0:
					dq[r*e+f] += float32(d * x)
					dk[c+f] -= float32(d * x)
					dw[f] += float32(d * diff)
				}
			}
		}
	}
}

// gradOr returns the gradient of x, or, if x needs none, scratch memory of the same size that is
// not read.
func gradOr(t *tensor.Tape, x *tensor.Tensor) []float32 {
	if g := t.GradOf(x); g != nil {
		return g
	}
	return t.Floats(x.Len())
}
