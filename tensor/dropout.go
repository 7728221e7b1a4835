package tensor

import (
	"math"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Dropout sets each element to zero with probability p and multiplies the rest
// by 1/(1−p). On a tape that is not in mode Train it returns x itself.
//
// Which elements are dropped is a function of the tape's seed, of how many
// random operations the tape has run since Seed, and of the element's index alone,
// so the backward pass works it out again instead of keeping it.
//
// Source: Srivastava et al., "Dropout", 2014, JMLR 15.
func Dropout(t *Tape, x *Tensor, p float32) *Tensor {
	if !(p >= 0 && p < 1) {
		panic("tensor: Dropout: p is outside [0, 1)")
	}
	if !t.Training() || p == 0 {
		return x
	}
	key := t.stream()
	threshold := uint32(math.Round(float64(p) * (1 << 32)))
	keep := 1 / (1 - p)
	y := t.Make(x.shape...)
	par.For(len(x.data), grain, func(lo, hi int) {
		simd.Dropout(y.data[lo:hi], x.data[lo:hi], key, lo, threshold, keep)
	})
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx, fresh := t.gradOf(x)
			par.For(len(dx), grain, func(lo, hi int) {
				if fresh {
					simd.Dropout(dx[lo:hi], dy[lo:hi], key, lo, threshold, keep)
				} else {
					simd.DropoutAdd(dx[lo:hi], dx[lo:hi], dy[lo:hi], key, lo, threshold, keep)
				}
			})
		})
	}
	return y
}
