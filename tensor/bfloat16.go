package tensor

import (
	"fmt"
	"math"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// BFloat16 is a matrix [Out In] of weights that are held in bfloat16, for inference: in half
// of the memory, of which a step of a decoder reads every byte. It lies in the order in
// which products read it.
//
// Products are those of the same numbers as float32, to the bit, unless tile units are
// used.
type BFloat16 struct{ panels simd.StoredPanels }

// NewBFloat16 returns a matrix of zeros.
func NewBFloat16(out, in int) *BFloat16 {
	if out < 1 || in < 1 {
		badShape("NewBFloat16", "matrix", []int{out, in}, "positive sizes")
	}
	layout := simd.NewPanelLayout(in, out)
	return &BFloat16{simd.StoredPanels{PanelLayout: layout, BFloat16: make([]uint16, layout.Len())}}
}

// Shape returns [Out In].
func (w *BFloat16) Shape() []int { return []int{w.panels.N, w.panels.K} }

// SetRows sets the weights of the outputs from i on, of which x has one row behind the other,
// rounded to the nearest bfloat16.
func (w *BFloat16) SetRows(i int, x []float32) {
	in, width := w.panels.K, w.panels.Width
	n := len(x) / in
	if i < 0 || i+n > w.panels.N || n*in != len(x) {
		panic(&ShapeError{
			Op: "tensor: BFloat16.SetRows", Arg: "rows", What: "first and number of elements", Got: []int{i, len(x)},
			Want: fmt.Sprintf("rows of %d within 0 to %d", in, w.panels.N-1),
		})
	}
	first, last := i/width, (i+n+width-1)/width // panels
	par.For(last-first, max(1, grain/(in*width)), func(lo, hi int) {
		for p := first + lo; p < first+hi; p++ {
			from, to := max(p*width, i), min((p+1)*width, i+n)
			at := w.panels.At(0, from)
			for k := range in { // in the order of what is written
				for j := range to - from {
					w.panels.BFloat16[at+j] = simd.BFloat16(x[(from-i+j)*in+k])
				}
				at += width
			}
		}
	})
}

// SetColumn sets the weights of input k, rounded to the nearest bfloat16.
func (w *BFloat16) SetColumn(k int, column []float32) {
	if k < 0 || k >= w.panels.K || len(column) != w.panels.N {
		panic(&ShapeError{
			Op: "tensor: BFloat16.SetColumn", Arg: "vector", What: "number and length", Got: []int{k, len(column)},
			Want: fmt.Sprintf("number 0 to %d of length %d", w.panels.K-1, w.panels.N),
		})
	}
	for i, v := range column {
		w.panels.BFloat16[w.panels.At(k, i)] = simd.BFloat16(v)
	}
}

// Rows returns rows of the matrix: an embedding.
//
// Shapes: out [len(index) In].
//
// It panics with a *ShapeError if there is no such row.
func (w *BFloat16) Rows(t *Tape, index []int) *Tensor {
	out := t.Make(len(index), w.panels.K)
	for n, i := range index {
		if i < 0 || i >= w.panels.N {
			panic(&ShapeError{Op: "tensor: BFloat16.Rows", Arg: "index", What: "row", Got: []int{i}, Want: fmt.Sprintf("0 to %d", w.panels.N-1)})
		}
		row, at := out.data[n*w.panels.K:][:w.panels.K], w.panels.At(0, i)
		for k := range row {
			row[k] = math.Float32frombits(uint32(w.panels.BFloat16[at+k*w.panels.Width]) << 16)
		}
	}
	return out
}

// Linear returns x·wᵀ + b, as the function Linear does. b is nil for none.
//
// Shapes: x [… In], out [… Out].
//
// It panics with a *ValueError if a gradient would have to flow to x.
func (w *BFloat16) Linear(t *Tape, x, b *Tensor) *Tensor {
	const op = "BFloat16.Linear"
	n, in := rows(op, x)
	if in != w.panels.K {
		badShape(op, "x", x.shape, "[… In=%d]", w.panels.K)
	}
	if t.Needs(x, b) {
		badValue(op, "tape", "one that records", "nil or one of mode Infer, as no gradient passes through weights in bfloat16")
	}
	width := w.panels.N
	out := t.makeRows(x.shape, width)
	if b != nil {
		sameShape(op, "b", b, []int{width})
		for i := range n {
			copy(out.data[i*width:], b.data)
		}
	}
	step := w.panels.Width
	each := max(1, taskProducts/max(1, n*in*step))
	par.For((width+step-1)/step, each, func(lo, hi int) {
		j0, j1 := lo*step, min(hi*step, width)
		c := simd.Mat{Data: out.data[min(j0, len(out.data)):], Row: width, Col: 1}
		simd.MultiplyStored(c, simd.RowMajor(x.data, in), n, &w.panels, 0, in, j0, j1, b != nil)
	})
	return out
}

// taskProducts is how many products a task has, some microseconds' worth.
const taskProducts = 1 << 18
