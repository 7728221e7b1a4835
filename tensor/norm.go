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
	return norm(t, "LayerNorm", x, gain, shift, eps, residual{})
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
	return norm(t, "RMSNorm", x, gain, nil, eps, residual{})
}

// AddLayerNorm returns sum = x + Dropout(y) and its LayerNorm, computed in one pass.
//
// Shapes:
//
//	x, y, sum, out  [… D]
//	gain, shift     [D]
func AddLayerNorm(t *Tape, x, y *Tensor, p float32, gain, shift *Tensor, eps float32) (sum, out *Tensor) {
	const op = "AddLayerNorm"
	operand(op, "shift", shift)
	r := addDropout(t, op, x, y, p)
	return r.z, norm(t, op, r.z, gain, shift, eps, r)
}

// AddRMSNorm returns sum = x + Dropout(y) and its RMSNorm, computed in one pass.
//
// Shapes:
//
//	x, y, sum, out  [… D]
//	gain            [D]
func AddRMSNorm(t *Tape, x, y *Tensor, p float32, gain *Tensor, eps float32) (sum, out *Tensor) {
	const op = "AddRMSNorm"
	r := addDropout(t, op, x, y, p)
	return r.z, norm(t, op, r.z, gain, nil, eps, r)
}

// norm is LayerNorm, or RMSNorm if shift is nil. before, unless it is empty, computes x.
func norm(t *Tape, op string, x, gain, shift *Tensor, eps float32, before residual) *Tensor {
	n, d := rows(op, x)
	width := x.shape[x.Rank()-1:]
	sameShape(op, "gain", gain, width)
	if shift != nil {
		sameShape(op, "shift", shift, width)
	}
	m := normalization{
		n: n, d: d, eps: eps, x: x, gain: gain, shift: shift, y: t.Make(x.shape...),
		mean: t.Floats(n), inv: t.Floats(n), before: before, cost: d * costNorm,
	}
	if before.z != nil {
		m.cost += d * before.cost()
	}
	if shift == nil {
		m.zeros = zeros[:min(d, len(zeros))]
		if d > len(zeros) {
			m.zeros = make([]float32, d)
		}
	}
	switch {
	case n > par.Chunk(n, m.cost):
		m.computeLong()
	case n > 0: // without a closure, as in unary
		m.compute(0, n)
	}
	if t.Needs(x, gain, shift) || before.z != nil && t.Needs(before.x, before.y) {
		m.record(t)
	}
	return m.y
}

// zeros are the shift of RMSNorm. They must not change.
var zeros [1 << 13]float32

// normalization is a call of norm.
type normalization struct {
	n, d, cost     int // rows, their length and their cost
	eps            float32
	x, gain, shift *Tensor
	y              *Tensor
	mean, inv      []float32 // of each row; inv is 1/√(variance + eps)
	zeros          []float32 // for RMSNorm
	before         residual  // which computes x, or nothing
}

func (m normalization) computeLong() {
	par.For(m.n, par.Chunk(m.n, m.cost), func(lo, hi int) { m.compute(lo, hi) })
}

// compute computes rows lo to hi.
func (m *normalization) compute(lo, hi int) {
	d := m.d
	if m.before.z != nil {
		m.before.fill(lo*d, hi*d)
	}
	if m.shift != nil {
		simd.LayerNorm(m.y.data[lo*d:hi*d], m.x.data[lo*d:hi*d], m.gain.data, m.shift.data, m.mean[lo:hi], m.inv[lo:hi], m.eps)
		return
	}
	for r := lo; r < hi; r++ {
		x := m.x.data[r*d : (r+1)*d]
		m.mean[r] = 0
		m.inv[r] = float32(1 / math.Sqrt(float64(simd.SumSquares(x)/float32(d)+m.eps)))
		simd.Norm(m.y.data[r*d:(r+1)*d], x, m.gain.data, m.zeros, 0, m.inv[r])
	}
}

// record records the call, with the residual before it. The step of the norm also does the step of the residual if it
// runs: the gradient of the sum is then complete, as every other operation on the sum is later.
func (m normalization) record(t *Tape) {
	done := false
	if r := m.before; r.z != nil && t.Needs(r.x, r.y) {
		t.Record(r.z, func(dz []float32) {
			if !done {
				r.back(t, dz)
			}
			done = false
		})
	}
	if !t.Needs(m.x, m.gain, m.shift) {
		return
	}
	t.Record(m.y, func(dy []float32) {
		if dx, fresh := t.FreshGradOf(m.x); dx != nil {
			var before *residualGrads
			if m.before.z != nil && m.x.needs {
				before, done = m.before.grads(t, dx), true
			}
			par.For(m.n, par.Chunk(m.n, m.cost), func(lo, hi int) {
				clearIf(fresh, dx[lo*m.d:hi*m.d])
				m.back(dx, dy, lo, hi)
				if before != nil {
					before.add(lo*m.d, hi*m.d)
				}
			})
		}
		dgain, dshift := t.GradOf(m.gain), t.GradOf(m.shift)
		if m.n == 0 || dgain == nil && dshift == nil {
			return
		}
		if dgain == nil {
			dgain = t.Floats(m.d) // not used
		}
		if dshift == nil {
			dshift = t.Floats(m.d)
		}
		blocks(1, m.d, m.n*costAdd, func(_, _, lo, hi int) { // columns are independent
			simd.NormGains(dgain[lo:hi], dshift[lo:hi], dy[lo:], m.x.data[lo:], m.mean, m.inv, m.d)
		})
	})
}

// back adds rows lo to hi of the gradient. With g = gain·dy and u = (x − mean)·inv:
//
//	dx += inv·(g − mean(g) − u·mean(g·u)), without mean(g) for RMSNorm.
func (m *normalization) back(dx, dy []float32, lo, hi int) {
	d := m.d
	if m.shift != nil {
		simd.LayerNormGrad(dx[lo*d:hi*d], dy[lo*d:hi*d], m.x.data[lo*d:hi*d], m.gain.data, m.mean[lo:hi], m.inv[lo:hi])
		return
	}
	for r := lo; r < hi; r++ {
		dx, dy, x := dx[r*d:(r+1)*d], dy[r*d:(r+1)*d], m.x.data[r*d:(r+1)*d]
		if !zero(dy) {
			_, along := simd.NormSums(dy, x, m.gain.data, 0, m.inv[r])
			simd.NormGrad(dx, dy, x, m.gain.data, 0, m.inv[r], 0, along/float32(d))
		}
	}
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
