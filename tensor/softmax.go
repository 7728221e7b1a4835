package tensor

import (
	"math"
	"slices"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Softmax returns exp(x_j)/Σ exp(x_j) along the last axis. An element of −Inf gives 0; a row of only −Inf gives
// zeros.
//
// Gradients: dx_j = y_j·(dy_j − Σ y_j'·dy_j'), exactly zero where y_j is zero.
func Softmax(t *Tape, x *Tensor) *Tensor {
	n, width := rows("Softmax", x)
	return rowwise(t, x, t.Make(x.shape...), n, width, 0,
		func(y, x, _ []float32) { softmaxRow(y, x) },
		func(dx, dy, _, y, _ []float32) { simd.SoftmaxGrad(dx, dy, y) })
}

// rowwise implements functions of vectors: f computes a row of y from a row of x, and back adds to the gradient,
// unless dy is all zeros. f can pass kept numbers per row to back.
func rowwise(
	t *Tape, x, y *Tensor, n, width, kept int, f func(y, x, kept []float32), back func(dx, dy, x, y, kept []float32),
) *Tensor {
	memory := t.Floats(n * kept)
	row := func(a []float32, r int) []float32 { return a[r*len(a)/n : (r+1)*len(a)/n] } // row r of n
	chunk := par.Chunk(n, width*costExp)
	par.For(n, chunk, func(from, to int) {
		for r := from; r < to; r++ {
			f(row(y.data, r), row(x.data, r), row(memory, r))
		}
	})
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx, fresh := t.FreshGradOf(x)
			par.For(n, chunk, func(from, to int) {
				clearIf(fresh, dx[from*width:to*width])
				for r := from; r < to; r++ {
					if dy := row(dy, r); !zero(dy) {
						back(row(dx, r), dy, row(x.data, r), row(y.data, r), row(memory, r))
					}
				}
			})
		})
	}
	return y
}

// softmaxRow writes one row of Softmax.
func softmaxRow(y, x []float32) {
	m := simd.Max(x)
	if m == negInf {
		clear(y)
		return
	}
	sum := simd.ExpSum(y, x, m)
	simd.Scale(y, 1/sum, y)
}

// zero reports whether all of x is zero: such an upstream gradient contributes nothing, even if the rest of its row
// is not finite.
func zero(x []float32) bool {
	return !slices.ContainsFunc(x, func(v float32) bool { return v != 0 })
}

var negInf = float32(math.Inf(-1))

// LogSumExp returns log Σ exp(x_j) along the last axis and removes that axis. Its gradient is the softmax; in a row
// with +Inf it is therefore NaN.
func LogSumExp(t *Tape, x *Tensor) *Tensor {
	n, width := rows("LogSumExp", x)
	y := t.Make(x.shape[:x.Rank()-1]...)
	return rowwise(t, x, y, n, width, width,
		func(y, x, soft []float32) { y[0] = logSumExpRow(soft, x) },
		func(dx, dy, _, _, soft []float32) { simd.Axpy(dy[0], soft, dx) })
}

// logSumExpRow returns log Σ exp(x_j) and writes the softmax of x to soft.
func logSumExpRow(soft, x []float32) float32 {
	m := simd.Max(x)
	if m == negInf {
		clear(soft)
		return m
	}
	sum := simd.ExpSum(soft, x, m)
	simd.Scale(soft, 1/sum, soft)
	if math.IsInf(float64(m), 1) { // sum is NaN, but every other term is 0
		return m
	}
	return m + float32(math.Log(float64(sum)))
}

// LogSoftmax returns x_j − log Σ exp(x_j') along the last axis.
func LogSoftmax(t *Tape, x *Tensor) *Tensor {
	n, width := rows("LogSoftmax", x)
	return rowwise(t, x, t.Make(x.shape...), n, width, width, func(y, x, soft []float32) {
		lse := logSumExpRow(soft, x)
		for j, v := range x {
			y[j] = v - lse
		}
	}, func(dx, dy, _, _, soft []float32) { // dx_j += dy_j − softmax_j·Σ dy
		simd.Axpy(-simd.Sum(dy), soft, dx)
		simd.Add(dx, dx, dy)
	})
}
