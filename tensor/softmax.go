package tensor

import (
	"math"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Softmax returns exp(x_j)/Σ exp(x_j) along the last axis. An element of −Inf is 0, and so is
// a row of nothing else.
//
// Gradients: dx_j = y_j·(dy_j − Σ y_j'·dy_j'), exactly zero where y_j is zero.
func Softmax(t *Tape, x *Tensor) *Tensor {
	n, width := rows("Softmax", x)
	y := t.Make(x.shape...)
	chunk := rowsPerChunk(width)
	par.For(n, chunk, func(from, to int) {
		for r := from; r < to; r++ {
			softmaxRow(y.data[r*width:(r+1)*width], x.data[r*width:(r+1)*width])
		}
	})
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx, fresh := t.gradOf(x)
			par.For(n, chunk, func(from, to int) {
				clearIf(fresh, dx[from*width:to*width])
				for r := from; r < to; r++ {
					if dy := dy[r*width : (r+1)*width]; !zero(dy) {
						simd.SoftmaxGrad(dx[r*width:(r+1)*width], dy, y.data[r*width:(r+1)*width])
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

// zero reports whether x is zero throughout: an upstream gradient that
// contributes nothing, even where the rest of its row is not finite.
func zero(x []float32) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}

var negInf = float32(math.Inf(-1))

// rowsPerChunk cuts work on rows into pieces of about a grain of elements.
func rowsPerChunk(width int) int { return max(1, grain/2/max(width, 1)) }

// LogSumExp returns log Σ exp(x_j) along the last axis, which the result lacks.
// Its gradient is the softmax.
func LogSumExp(t *Tape, x *Tensor) *Tensor {
	n, width := rows("LogSumExp", x)
	y := t.Make(x.shape[:x.Rank()-1]...)
	soft := t.Floats(len(x.data))
	par.For(n, rowsPerChunk(width), func(from, to int) {
		for r := from; r < to; r++ {
			y.data[r] = logSumExpRow(soft[r*width:(r+1)*width], x.data[r*width:(r+1)*width])
		}
	})
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx := t.GradOf(x)
			par.For(n, rowsPerChunk(width), func(from, to int) {
				for r := from; r < to; r++ {
					if d := dy[r]; d != 0 {
						simd.Axpy(d, soft[r*width:(r+1)*width], dx[r*width:(r+1)*width])
					}
				}
			})
		})
	}
	return y
}

// logSumExpRow returns log Σ exp(x_j) and writes the softmax of x to soft.
func logSumExpRow(soft, x []float32) float32 {
	m := simd.Max(x)
	if math.IsInf(float64(m), 0) { // ±Inf: the sum is its largest term
		clear(soft)
		return m
	}
	sum := simd.ExpSum(soft, x, m)
	simd.Scale(soft, 1/sum, soft)
	return m + float32(math.Log(float64(sum)))
}

// LogSoftmax returns x_j − log Σ exp(x_j') along the last axis.
func LogSoftmax(t *Tape, x *Tensor) *Tensor {
	n, width := rows("LogSoftmax", x)
	y := t.Make(x.shape...)
	soft := t.Floats(len(x.data))
	par.For(n, rowsPerChunk(width), func(from, to int) {
		for r := from; r < to; r++ {
			x, y := x.data[r*width:(r+1)*width], y.data[r*width:(r+1)*width]
			lse := logSumExpRow(soft[r*width:(r+1)*width], x)
			for j, v := range x {
				y[j] = v - lse
			}
		}
	})
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx := t.GradOf(x)
			par.For(n, rowsPerChunk(width), func(from, to int) {
				for r := from; r < to; r++ { // dx_j += dy_j − softmax_j·Σ dy
					dx, dy := dx[r*width:(r+1)*width], dy[r*width:(r+1)*width]
					if zero(dy) {
						continue
					}
					simd.Axpy(-simd.Sum(dy), soft[r*width:(r+1)*width], dx)
					simd.Add(dx, dx, dy)
				}
			})
		})
	}
	return y
}
