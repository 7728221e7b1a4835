package attn

import (
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// The operations here could be written with those of package tensor but for one
// thing: their gradients are exactly zero wherever that of the result is. Scores
// under a mask have a gradient of zero, and may themselves be NaN.

// grain is the number of scores that one thread takes at a time.
const grain = 1 << 13

// softCap returns limit·tanh(x/limit).
func softCap(t *tensor.Tape, x *tensor.Tensor, limit float32) *tensor.Tensor {
	y := t.Make(x.Shape()...)
	par.For(x.Len(), grain, func(lo, hi int) {
		y := y.Data()[lo:hi]
		simd.Scale(y, 1/limit, x.Data()[lo:hi])
		simd.Tanh(y, y)
		simd.Scale(y, limit, y)
	})
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx := t.GradOf(x)
			par.For(len(dx), grain, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					if dy[i] != 0 {
						tanh := y.Data()[i] / limit
						dx[i] += dy[i] * (1 - tanh*tanh)
					}
				}
			})
		})
	}
	return y
}

// times returns s·x, where s has one element.
func times(t *tensor.Tape, x, s *tensor.Tensor) *tensor.Tensor {
	factor := s.Item()
	y := t.Make(x.Shape()...)
	par.For(x.Len(), grain, func(lo, hi int) { simd.Scale(y.Data()[lo:hi], factor, x.Data()[lo:hi]) })
	if t.Needs(x, s) {
		t.Record(y, func(dy []float32) {
			if dx := t.GradOf(x); dx != nil {
				par.For(len(dx), grain, func(lo, hi int) { simd.Axpy(factor, dy[lo:hi], dx[lo:hi]) })
			}
			if ds := t.GradOf(s); ds != nil {
				var sum float64 // over all scores of a batch, which may be millions
				for i, d := range dy {
					if d != 0 {
						sum += float64(d) * float64(x.Data()[i])
					}
				}
				ds[0] += float32(sum)
			}
		})
	}
	return y
}
