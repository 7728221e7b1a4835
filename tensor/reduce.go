package tensor

import (
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Sum returns the sum of all elements, as a tensor without axes.
func Sum(t *Tape, x *Tensor) *Tensor {
	operand("Sum", "x", x)
	return total(t, x, 1)
}

// Mean returns the mean of all elements, as a tensor without axes.
func Mean(t *Tape, x *Tensor) *Tensor {
	operand("Mean", "x", x)
	if len(x.data) == 0 {
		badShape("Mean", "x", x.shape, "at least one element")
	}
	return total(t, x, 1/float32(len(x.data)))
}

// total returns s·Σx.
func total(t *Tape, x *Tensor, s float32) *Tensor {
	y := t.Make()
	y.data[0] = s * simd.Sum(x.data)
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			d := s * dy[0]
			dx := t.GradOf(x)
			par.For(len(dx), par.ChunkOfNumbers(len(dx), costAdd), func(lo, hi int) {
				for i := range dx[lo:hi] {
					dx[lo+i] += d
				}
			})
		})
	}
	return y
}

// MeanAxis returns the mean over one axis and removes that axis.
func MeanAxis(t *Tape, x *Tensor, axis int) *Tensor {
	checkAxis("MeanAxis", x, axis)
	n := x.shape[axis]
	if n == 0 {
		badShape("MeanAxis", "x", x.shape, "at least one element along axis %d", axis)
	}
	return Scale(t, SumAxis(t, x, axis), 1/float32(n))
}

// SumAxis returns the sum over one axis and removes that axis.
func SumAxis(t *Tape, x *Tensor, axis int) *Tensor {
	checkAxis("SumAxis", x, axis)
	outer, n, inner := split(x.shape, axis)
	y := t.Make(append(append(make([]int, 0, 8), x.shape[:axis]...), x.shape[axis+1:]...)...)
	if inner == 1 {
		par.For(outer, par.Chunk(outer, n*costAdd), func(lo, hi int) {
			for o := lo; o < hi; o++ {
				y.data[o] = simd.Sum(x.data[o*n : (o+1)*n])
			}
		})
	} else {
		blocks(outer, inner, n*costAdd, func(o, count, lo, hi int) {
			for ; count > 0; o, count = o+1, count-1 {
				sum := y.data[o*inner+lo : o*inner+hi]
				clear(sum)
				if n > 0 {
					simd.SumRows(sum, x.data[o*n*inner+lo:], n, inner)
				}
			}
		})
	}
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx := t.GradOf(x)
			par.For(outer*n, par.Chunk(outer*n, inner*costAdd), func(lo, hi int) {
				for r := lo; r < hi; r++ {
					d, to := dy[r/n*inner:][:inner], dx[r*inner:(r+1)*inner]
					if inner == 1 {
						to[0] += d[0]
					} else {
						simd.Add(to, to, d)
					}
				}
			})
		})
	}
	return y
}
