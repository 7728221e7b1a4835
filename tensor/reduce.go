package tensor

import "github.com/attn-go/attn/internal/simd"

// Sum returns the sum of all elements, as a tensor without axes.
func Sum(t *Tape, x *Tensor) *Tensor { return total(t, x, 1) }

// Mean returns the mean of all elements, as a tensor without axes.
func Mean(t *Tape, x *Tensor) *Tensor {
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
			for i := range dx {
				dx[i] += d
			}
		})
	}
	return y
}

// SumAxis returns the sum over one axis, which the result lacks.
func SumAxis(t *Tape, x *Tensor, axis int) *Tensor { return totalAxis(t, "SumAxis", x, axis, false) }

// MeanAxis returns the mean over one axis, which the result lacks.
func MeanAxis(t *Tape, x *Tensor, axis int) *Tensor { return totalAxis(t, "MeanAxis", x, axis, true) }

func totalAxis(t *Tape, op string, x *Tensor, axis int, mean bool) *Tensor {
	checkAxis(op, x, axis)
	outer, n, inner := split(x.shape, axis)
	s := float32(1)
	if mean {
		if n == 0 {
			badShape(op, "x", x.shape, "at least one element along axis %d", axis)
		}
		s = 1 / float32(n)
	}
	y := t.Make(append(append(make([]int, 0, 8), x.shape[:axis]...), x.shape[axis+1:]...)...)
	clear(y.data)
	for o := range outer {
		sum := y.data[o*inner : (o+1)*inner]
		for i := range n {
			simd.Axpy(s, x.data[(o*n+i)*inner:(o*n+i+1)*inner], sum)
		}
	}
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx := t.GradOf(x)
			for o := range outer {
				for i := range n {
					simd.Axpy(s, dy[o*inner:(o+1)*inner], dx[(o*n+i)*inner:(o*n+i+1)*inner])
				}
			}
		})
	}
	return y
}
