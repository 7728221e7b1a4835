package tensor

import (
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
	unit := t.Floats(len(x.data)) // x normalised, before gain and shift
	inv := t.Floats(n)            // 1/√(variance + eps)
	chunk := rowsPerChunk(d)
	par.For(n, chunk, func(from, to int) {
		for r := from; r < to; r++ {
			x, u, y := x.data[r*d:(r+1)*d], unit[r*d:(r+1)*d], y.data[r*d:(r+1)*d]
			var mean float32
			if shift != nil {
				mean = simd.Sum(x) / float32(d)
			}
			for i, v := range x {
				u[i] = v - mean
			}
			inv[r] = float32(1 / math.Sqrt(float64(simd.SumSquares(u)/float32(d)+eps)))
			simd.Scale(u, inv[r], u)
			simd.Mul(y, u, gain.data)
			if shift != nil {
				simd.Add(y, y, shift.data)
			}
		}
	})
	if t.Needs(x, gain, shift) {
		t.Record(y, func(dy []float32) {
			// With g = gain·dy and u the unit vector:
			//	dx += inv·(g − mean(g) − u·mean(g·u)), without mean(g) for RMSNorm.
			if dx := t.GradOf(x); dx != nil {
				scratch := t.Floats(len(dy))
				par.For(n, chunk, func(from, to int) {
					for r := from; r < to; r++ {
						g, u, dy := scratch[r*d:(r+1)*d], unit[r*d:(r+1)*d], dy[r*d:(r+1)*d]
						if zero(dy) {
							continue
						}
						simd.Mul(g, gain.data, dy)
						var mean float32
						if shift != nil {
							mean = simd.Sum(g) / float32(d)
						}
						along := simd.Dot(g, u) / float32(d)
						for i, v := range g {
							dx[r*d+i] += inv[r] * (v - mean - u[i]*along)
						}
					}
				})
			}
			if dgain := t.GradOf(gain); dgain != nil {
				par.For(d, 64, func(lo, hi int) { // columns are independent
					for r := range n {
						add := simd.MulAdd
						if !(inv[r] > 0) { // x, and so unit, may not be finite
							add = addProduct
						}
						add(dgain[lo:hi], dy[r*d+lo:r*d+hi], unit[r*d+lo:r*d+hi])
					}
				})
			}
			if dshift := t.GradOf(shift); dshift != nil {
				addRows(dshift, dy)
			}
		})
	}
	return y
}

// Normalize returns x/max(‖x‖, eps) for each vector along the last axis.
func Normalize(t *Tape, x *Tensor, eps float32) *Tensor {
	n, d := rows("Normalize", x)
	y := t.Make(x.shape...)
	inv := t.Floats(n)
	for r := range n {
		v := x.data[r*d : (r+1)*d]
		inv[r] = 1 / max(float32(math.Sqrt(float64(simd.SumSquares(v)))), eps)
		simd.Scale(y.data[r*d:(r+1)*d], inv[r], v)
	}
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx := t.GradOf(x)
			for r := range n {
				dx, dy, y := dx[r*d:(r+1)*d], dy[r*d:(r+1)*d], y.data[r*d:(r+1)*d]
				var along float32
				if inv[r] < 1/eps { // below eps the divisor is a constant
					for i, v := range dy {
						if v != 0 {
							along += v * y[i]
						}
					}
				}
				for i, v := range dy {
					if v != 0 || along != 0 {
						dx[i] += inv[r] * (v - y[i]*along)
					}
				}
			}
		})
	}
	return y
}
