package tensor

import (
	"math"
	"sync"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Mask says which columns of each row a masked operation uses. It may be made before the
// shape is known that it is used with: an attn.Mask is one.
type Mask interface {
	// Visible returns the visible columns of each row of a tensor of the given shape,
	// or nil if all are visible. It panics with a *ShapeError if the mask does not
	// fit.
	Visible(shape []int) Visible
}

// Visible says which columns of each row of a tensor are visible; the others are hidden.
// Row r counts the vectors along the last axis in row-major order.
type Visible interface {
	// Row returns the interval [lo, hi) of columns outside of which everything in row r
	// is hidden. If some columns inside are hidden as well, holes is true and Row has
	// set visible[lo:hi]: true for a visible column. len(visible) is the number of
	// columns. Row is called concurrently.
	Row(r int, visible []bool) (lo, hi int, holes bool)
}

// Softmax returns exp(x_j)/Σ exp(x_j) along the last axis.
func Softmax(t *Tape, x *Tensor) *Tensor { return MaskedSoftmax(t, x, nil) }

// MaskedSoftmax returns the softmax along the last axis over the columns that
// the mask leaves visible in each row:
//
//	y_j = exp(x_j) / Σ_visible exp(x_j')   where column j is visible, 0 elsewhere
//
// A row without a visible column is zero. Whatever x holds at a hidden column, NaN
// included, has no influence. A nil mask hides nothing.
//
// It panics with a *ShapeError if the mask does not fit x.
//
// Gradients: dx_j = y_j·(dy_j − Σ y_j'·dy_j'), exactly zero where y_j is zero.
func MaskedSoftmax(t *Tape, x *Tensor, mask Mask) *Tensor {
	n, width := rows("MaskedSoftmax", x)
	var visible Visible
	if mask != nil {
		visible = mask.Visible(x.shape)
	}
	y := t.Make(x.shape...)
	chunk := rowsPerChunk(width)
	par.For(n, chunk, func(from, to int) {
		s := seenPool.Get().(*seenBuffer)
		defer seenPool.Put(s)
		for r := from; r < to; r++ {
			softmaxRow(y.data[r*width:(r+1)*width], x.data[r*width:(r+1)*width], visible, r, s)
		}
	})
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx, fresh := t.gradOf(x)
			par.For(n, chunk, func(from, to int) {
				clearIf(fresh, dx[from*width:to*width])
				for r := from; r < to; r++ {
					softmaxRowBack(dx[r*width:(r+1)*width], dy[r*width:(r+1)*width], y.data[r*width:(r+1)*width])
				}
			})
		})
	}
	return y
}

// softmaxRow writes one row of MaskedSoftmax.
func softmaxRow(y, x []float32, visible Visible, r int, s *seenBuffer) {
	lo, hi, holes := 0, len(x), false
	var seen []bool
	if visible != nil {
		seen = s.sized(len(x))
		lo, hi, holes = visible.Row(r, seen)
	}
	if lo >= hi {
		clear(y)
		return
	}
	clear(y[:lo])
	clear(y[hi:])
	if x, y = x[lo:hi], y[lo:hi]; holes {
		// A hidden column becomes −Inf, whose exponential is zero.
		seen = seen[lo:hi]
		for j, ok := range seen {
			if ok {
				y[j] = x[j]
			} else {
				y[j] = negInf
			}
		}
		x = y
	}
	m := simd.Max(x)
	if m == negInf { // no visible column, or only scores of −Inf
		clear(y)
		return
	}
	sum := simd.ExpSum(y, x, m)
	simd.Scale(y, 1/sum, y)
	if holes && sum != sum { // a visible NaN has made everything NaN, even what is hidden
		for j, ok := range seen {
			if !ok {
				y[j] = 0
			}
		}
	}
}

// softmaxRowBack adds one row of the gradient of MaskedSoftmax. Hidden columns
// are recognised by their zero weight, so that NaN in dy there stays there.
func softmaxRowBack(dx, dy, y []float32) {
	if !zero(dy) {
		simd.SoftmaxGrad(dx, dy, y)
	}
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

// seenBuffer is a worker's scratch row for Visible.Row.
type seenBuffer struct{ seen []bool }

func (s *seenBuffer) sized(n int) []bool {
	if len(s.seen) < n {
		s.seen = make([]bool, n)
	}
	return s.seen[:n]
}

var seenPool = sync.Pool{New: func() any { return new(seenBuffer) }}

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
