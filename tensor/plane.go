package tensor

import (
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// A plane is a rectangle of elements that two arrays have in common: element (i, j) is at index to + i·toRow +
// j·toCol in the first and at index from + i·fromRow + j·fromCol in the second.
type plane struct {
	rows, cols             int
	to, toRow, toCol       int
	from, fromRow, fromCol int
}

// swapped exchanges the two arrays.
func (p plane) swapped() plane {
	p.to, p.toRow, p.toCol, p.from, p.fromRow, p.fromCol = p.from, p.fromRow, p.fromCol, p.to, p.toRow, p.toCol
	return p
}

// copy copies the elements.
func (p plane) copy(dst, src []float32) {
	if p.toCol == 1 && p.fromCol == 1 {
		simd.CopyRows(dst[p.to:], p.toRow, src[p.from:], p.fromRow, p.rows, p.cols)
		return
	}
	p.squares(func(to, from, rows, cols int) {
		for i := range rows {
			for j := range cols {
				dst[to+i*p.toRow+j*p.toCol] = src[from+i*p.fromRow+j*p.fromCol]
			}
		}
	})
}

// add adds the elements of src to the elements of dst. Several elements of src may map to one element of dst.
func (p plane) add(dst, src []float32) {
	switch {
	case p.toCol == 1 && p.fromCol == 1 && p.toRow == 0:
		simd.SumRows(dst[p.to:][:p.cols], src[p.from:], p.rows, p.fromRow)
		return
	case p.toCol == 1 && p.fromCol == 1:
		simd.AddRows(dst[p.to:], p.toRow, src[p.from:], p.fromRow, p.rows, p.cols)
		return
	case p.toCol == 0 && p.fromCol == 1:
		for i := range p.rows {
			dst[p.to+i*p.toRow] += simd.Sum(src[p.from+i*p.fromRow:][:p.cols])
		}
		return
	}
	p.squares(func(to, from, rows, cols int) {
		for i := range rows {
			for j := range cols {
				dst[to+i*p.toRow+j*p.toCol] += src[from+i*p.fromRow+j*p.fromCol]
			}
		}
	})
}

// squares divides the plane into pieces small enough that their cache lines stay in the cache, even in the array that
// is traversed across its lines.
func (p plane) squares(do func(to, from, rows, cols int)) {
	const side = 32
	for i := 0; i < p.rows; i += side {
		for j := 0; j < p.cols; j += side {
			do(p.to+i*p.toRow+j*p.toCol, p.from+i*p.fromRow+j*p.fromCol, min(side, p.rows-i), min(side, p.cols-j))
		}
	}
}

// strides returns the strides of a dense array, in the tape's memory.
func strides(t *Tape, shape []int) []int {
	s := t.list(len(shape))
	for a, step := len(shape)-1, 1; a >= 0; a-- {
		s[a] = step
		step *= shape[a]
	}
	return s
}

// spread calls visit, on all processors, for planes that together cover two arrays of a shape with the given strides.
// If the second array repeats an element, all its copies are visited one after another, in their order in the first
// array.
func spread(shape, to, from []int, visit func(plane)) {
	n := size(shape)
	if n == 0 {
		return
	}
	axis, length := -1, 0
	for a, d := range shape {
		if from[a] != 0 && d > length && length < 16 { // splitting an inner axis would make planes too small
			axis, length = a, d
		}
	}
	if axis < 0 {
		planes(shape, to, from, -1, 0, 0, visit)
		return
	}
	par.For(length, par.Chunk(length, 2*costAdd*n/length), func(lo, hi int) { planes(shape, to, from, axis, lo, hi, visit) })
}

// planes visits the part of the arrays from lo to hi along axis.
func planes(shape, to, from []int, axis, lo, hi int, visit func(plane)) {
	p := plane{rows: 1, cols: 1}
	extent := func(a int) int {
		if a == axis {
			return hi - lo
		}
		return shape[a]
	}
	if axis >= 0 {
		p.to, p.from = lo*to[axis], lo*from[axis]
	}
	outer := len(shape) - 2
	if a := len(shape) - 1; a >= 0 {
		p.cols, p.toCol, p.fromCol = extent(a), to[a], from[a]
	}
	if a := outer; a >= 0 {
		p.rows, p.toRow, p.fromRow = extent(a), to[a], from[a]
	}
	var few [8]int
	index := few[:]
	if outer > len(few) {
		index = make([]int, outer)
	}
	for {
		visit(p)
		a := outer - 1
		for ; a >= 0; a-- {
			index[a]++
			p.to += to[a]
			p.from += from[a]
			if index[a] < extent(a) {
				break
			}
			p.to -= to[a] * index[a]
			p.from -= from[a] * index[a]
			index[a] = 0
		}
		if a < 0 {
			return
		}
	}
}

// blocks calls do, on all processors, for blocks that together cover a matrix: n rows from r, columns lo to hi. cost is
// that of an element.
func blocks(rows, cols, cost int, do func(r, n, lo, hi int)) {
	if rows == 0 || cols == 0 {
		return
	}
	if chunk := par.Chunk(rows, cols*cost); chunk > 1 {
		par.For(rows, chunk, func(lo, hi int) { do(lo, hi-lo, 0, cols) })
		return
	}
	width := par.ChunkOfNumbers(cols, cost)
	across := (cols + width - 1) / width
	par.For(rows*across, 1, func(from, to int) {
		for b := from; b < to; b++ {
			lo := b % across * width
			do(b/across, 1, lo, min(lo+width, cols))
		}
	})
}

// small reports whether adding n numbers is too little work for several chunks.
func small(n int) bool { return n <= par.ChunkOfNumbers(n, costAdd) }

// rowsKernel is simd.CopyRows or simd.AddRows.
type rowsKernel func(dst []float32, dstStride int, x []float32, stride, rows, cols int)

// onRows runs the kernel on all processors.
func onRows(do rowsKernel, dst []float32, dstStride int, x []float32, stride, rows, cols int) {
	if small(rows * cols) {
		do(dst, dstStride, x, stride, rows, cols)
		return
	}
	blocks(rows, cols, costAdd, func(r, n, lo, hi int) {
		do(dst[r*dstStride+lo:], dstStride, x[r*stride+lo:], stride, n, hi-lo)
	})
}

// sumRows adds every row of x to sum, in order.
func sumRows(sum, x []float32) {
	switch n := len(sum); {
	case len(x) == 0:
	case small(len(x)):
		simd.SumRows(sum, x, len(x)/n, n)
	default:
		blocks(1, n, len(x)/n*costAdd, func(_, _, lo, hi int) { simd.SumRows(sum[lo:hi], x[lo:], len(x)/n, n) })
	}
}
