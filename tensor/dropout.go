package tensor

import (
	"fmt"
	"math"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Dropout sets each element to zero with probability p and multiplies the rest
// by 1/(1−p). On a tape that is not in mode Train it returns x itself.
//
// The dropped elements depend only on the tape's seed and step, on the number of random operations since Seed, and on
// each element's index. The backward pass therefore recomputes them instead of storing them.
//
// It panics with a *ValueError if p is outside [0, 1), or if it would drop elements on a tape without a seed.
//
// Source: Srivastava et al., "Dropout", 2014, JMLR 15.
func Dropout(t *Tape, x *Tensor, p float32) *Tensor {
	operand("Dropout", "x", x)
	d, some := t.drop("Dropout", p)
	if !some {
		return x
	}
	return d.sum(t, nil, x)
}

// AddDropout returns x + Dropout(y), computed in one pass: the sum at the end of a residual block. The operands must
// have the same shape.
func AddDropout(t *Tape, x, y *Tensor, p float32) *Tensor {
	operand("AddDropout", "x", x)
	sameShape("AddDropout", "y", y, x.shape)
	d, some := t.drop("AddDropout", p)
	if !some {
		return Add(t, x, y)
	}
	return d.sum(t, x, y)
}

// sum returns x plus the kept elements of y; a nil x counts as zeros.
func (d drops) sum(t *Tape, x, y *Tensor) *Tensor {
	z := t.Make(y.shape...)
	par.For(len(y.data), grain, func(lo, hi int) {
		if x == nil {
			d.set(z.data, y.data, lo, hi)
		} else {
			d.add(z.data, x.data, y.data, lo, hi)
		}
	})
	if t.Needs(x, y) {
		t.Record(z, func(dz []float32) {
			dx, freshX := t.gradOf(x)
			dy, freshY := t.gradOf(y) // the same as dx if y is x
			par.For(len(dz), grain, func(lo, hi int) {
				switch {
				case freshX:
					copy(dx[lo:hi], dz[lo:hi])
				case dx != nil:
					simd.Add(dx[lo:hi], dx[lo:hi], dz[lo:hi])
				}
				switch {
				case freshY:
					d.set(dy, dz, lo, hi)
				case dy != nil:
					d.add(dy, dy, dz, lo, hi)
				}
			})
		})
	}
	return z
}

// drops describes the elements that an operation drops.
type drops struct {
	key       uint64
	threshold uint32
	keep      float32 // factor of the kept elements
}

// drop starts an operation that drops with probability p. some is false if this tape drops nothing.
func (t *Tape) drop(op string, p float32) (d drops, some bool) {
	if !(p >= 0 && p < 1) {
		badValue(op, "p", fmt.Sprint(p), "a probability in [0, 1)")
	}
	if !t.Training() || p == 0 {
		return d, false
	}
	return drops{t.Stream(), uint32(math.Round(float64(p) * (1 << 32))), 1 / (1 - p)}, true
}

// set sets elements lo to hi of y to the kept elements of x, and 0 elsewhere.
func (d drops) set(y, x []float32, lo, hi int) {
	simd.Dropout(y[lo:hi], x[lo:hi], d.key, lo, d.threshold, d.keep)
}

// add sets elements lo to hi of z to x plus the kept elements of y.
func (d drops) add(z, x, y []float32, lo, hi int) {
	simd.DropoutAdd(z[lo:hi], x[lo:hi], y[lo:hi], d.key, lo, d.threshold, d.keep)
}
