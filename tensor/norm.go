package tensor

import (
	"fmt"
	"math"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// LayerNorm returns gain·(x − mean)/√(variance + eps) + shift, with mean and
// (biased) variance of each vector along the last axis.
//
// Shapes:
//
//	x            [… D]
//	gain, shift  [D]
//
// Source: Ba, Kiros and Hinton, "Layer Normalization", 2016,
// https://arxiv.org/abs/1607.06450.
func LayerNorm(t *Tape, x, gain, shift *Tensor, eps float32) *Tensor {
	operand("LayerNorm", "shift", shift)
	return norm(t, "LayerNorm", x, gain, shift, eps)
}

// RMSNorm returns gain·x/√(mean square + eps) for each vector along the last
// axis: LayerNorm without a mean.
//
// Shapes:
//
//	x     [… D]
//	gain  [D]
//
// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019,
// https://arxiv.org/abs/1910.07467.
func RMSNorm(t *Tape, x, gain *Tensor, eps float32) *Tensor {
	return norm(t, "RMSNorm", x, gain, nil, eps)
}

// norm is LayerNorm, or RMSNorm if shift is nil.
func norm(t *Tape, op string, x, gain, shift *Tensor, eps float32) *Tensor {
	n, d := rows(op, x)
	sameShape(op, "gain", gain, []int{d})
	if shift != nil {
		sameShape(op, "shift", shift, []int{d})
	}
	y := t.Make(x.shape...)
	mean, inv := t.Floats(n), t.Floats(n) // inv is 1/√(variance + eps)
	centred := shift != nil
	var to []float32
	if centred {
		to = shift.data
	} else {
		to = t.Floats(d)
		clear(to)
	}
	chunk := rowsPerChunk(d)
	par.For(n, chunk, func(lo, hi int) {
		if centred {
			simd.LayerNorm(y.data[lo*d:hi*d], x.data[lo*d:hi*d], gain.data, to, mean[lo:hi], inv[lo:hi], eps)
			return
		}
		for r := lo; r < hi; r++ {
			x := x.data[r*d : (r+1)*d]
			mean[r] = 0
			inv[r] = float32(1 / math.Sqrt(float64(simd.SumSquares(x)/float32(d)+eps)))
			simd.Norm(y.data[r*d:(r+1)*d], x, gain.data, to, 0, inv[r])
		}
	})
	if t.Needs(x, gain, shift) {
		t.Record(y, func(dy []float32) {
			// With g = gain·dy and u = (x − mean)·inv:
			//	dx += inv·(g − mean(g) − u·mean(g·u)), without mean(g) for RMSNorm.
			if dx, fresh := t.gradOf(x); dx != nil {
				par.For(n, chunk, func(lo, hi int) {
					clearIf(fresh, dx[lo*d:hi*d])
					if centred {
						simd.LayerNormGrad(dx[lo*d:hi*d], dy[lo*d:hi*d], x.data[lo*d:hi*d], gain.data, mean[lo:hi], inv[lo:hi])
						return
					}
					for r := lo; r < hi; r++ {
						dx, dy, x := dx[r*d:(r+1)*d], dy[r*d:(r+1)*d], x.data[r*d:(r+1)*d]
						if !zero(dy) {
							_, along := simd.NormSums(dy, x, gain.data, 0, inv[r])
							simd.NormGrad(dx, dy, x, gain.data, 0, inv[r], 0, along/float32(d))
						}
					}
				})
			}
			dgain, dshift := t.GradOf(gain), t.GradOf(shift)
			if n == 0 || dgain == nil && dshift == nil {
				return
			}
			if dgain == nil {
				dgain = t.Floats(d) // not used
			}
			if dshift == nil {
				dshift = t.Floats(d)
			}
			blocks(1, d, n, func(_, _, lo, hi int) { // columns are independent
				simd.NormGains(dgain[lo:hi], dshift[lo:hi], dy[lo:], x.data[lo:], mean, inv, d)
			})
		})
	}
	return y
}

// Normalize returns x/max(‖x‖, eps) for each vector along the last axis. A vector of
// zeros stays zero.
//
// ‖x‖ may be as large or as small as float32 allows: squares neither overflow nor underflow.
//
// The gradient is that of x/‖x‖ where ‖x‖ is at least eps, and that of x/eps elsewhere. With an eps of 0, the
// gradient of a vector of zeros is zero.
//
// Normalize panics with a *ValueError if eps is negative or not finite.
func Normalize(t *Tape, x *Tensor, eps float32) *Tensor {
	const op = "Normalize"
	n, d := rows(op, x)
	if !(eps >= 0 && eps <= math.MaxFloat32) {
		badValue(op, "eps", fmt.Sprint(eps), "a number of at least 0")
	}
	// Each row stores 1/max(‖x‖, eps), or 0 if the row must be computed in float64.
	return rowwise(t, x, t.Make(x.shape...), n, d, 1, func(y, x, inv []float32) {
		if squares := simd.SumSquares(x); squares > leastSquares && squares < mostSquares {
			inv[0] = 1 / max(float32(math.Sqrt(float64(squares))), eps)
			simd.Scale(y, inv[0], x)
			return
		}
		inv[0] = 0
		normalizeExactly(y, x, eps)
	}, func(dx, dy, x, y, inv []float32) {
		if inv[0] > 0 {
			normalizeBack(dx, dy, y, inv[0], inv[0] < 1/eps)
		} else {
			normalizeBackExactly(dx, dy, x, eps)
		}
	})
}

// Between these sums of squares, float32 loses no square that matters, and the inverse of the length is
// representable.
const (
	leastSquares = 1e-28
	mostSquares  = 1e36
)

// normalizeBack adds one row of the gradient of Normalize. Below eps the divisor is a constant, so the component of
// dy along y is not subtracted.
func normalizeBack(dx, dy, y []float32, inv float32, long bool) {
	var along float32
	if long {
		for i, v := range dy {
			if v != 0 {
				along += float32(v * y[i])
			}
		}
	}
	for i, v := range dy {
		if v != 0 || along != 0 {
			dx[i] += float32(inv * (v - float32(y[i]*along)))
		}
	}
}

// length returns ‖x‖. No x overflows or underflows in float64.
func length(x []float32) float64 {
	var squares float64
	for _, v := range x {
		squares += float64(float64(v) * float64(v))
	}
	return math.Sqrt(squares)
}

// normalizeExactly writes one row of Normalize, in float64.
func normalizeExactly(y, x []float32, eps float32) {
	by := max(length(x), float64(eps))
	if by == 0 {
		clear(y)
		return
	}
	for i, v := range x {
		y[i] = float32(float64(v) / by)
	}
}

// normalizeBackExactly is normalizeBack in float64.
func normalizeBackExactly(dx, dy, x []float32, eps float32) {
	size, floor := length(x), float64(eps)
	by := max(size, floor)
	if by == 0 {
		return
	}
	var along float64
	if size > floor {
		for i, v := range dy {
			if v != 0 {
				along += float64(float64(v) * (float64(x[i]) / by))
			}
		}
	}
	for i, v := range dy {
		if v != 0 || along != 0 {
			dx[i] += float32((float64(v) - float64(float64(x[i])/by*along)) / by)
		}
	}
}
