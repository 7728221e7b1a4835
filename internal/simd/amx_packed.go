//go:build amd64 && !purego

package simd

import (
	"sync"
	"unsafe"

	"github.com/attn-go/attn/internal/par"
)

// multiplyOnTiles is Multiply on tile units, of weights without scales.
func (w *Packed) multiplyOnTiles(c, a Mat, m, j0, j1 int, bias []float32, after int) {
	if m > FewRows && w.Width == panelWidth() {
		x := inputs.Get().(*Inputs)
		x.reserve(a, m, w.K)
		x.cutStrips(0, len(x.strips))
		w.MultiplyInputs(c, x, j0, j1, bias, after)
		x.Release()
		inputs.Put(x)
		return
	}
	x := storedProduct{b: &w.StoredPanels, k1: w.K, bias: bias, block: limbDepth}
	if after >= 0 && after < w.N {
		x.next = w.address(w.At(0, after-after%w.Width))
	}
	x.compute(c.from(0, j0), a, m, j0, j1)
	w.mendTiny(c.from(0, j0), a, m, j0, j1, bias)
}

var inputs = sync.Pool{New: func() any { return new(Inputs) }}

// Inputs are rows that several products with packed weights share, cut into limbs once.
type Inputs struct {
	a      Mat
	m, k   int
	mem    []float32
	strips []limbs
	cut    func(lo, hi int)
}

// Set makes x of m rows of a, of k elements, on all processors.
func (x *Inputs) Set(a Mat, m, k int) {
	if x.cut == nil {
		x.cut = x.cutStrips
	}
	x.reserve(a, m, k)
	par.For(len(x.strips), max(1, tileTask/16/(stripHeight*max(k, 1))), x.cut)
}

// Release lets go of the caller's memory.
func (x *Inputs) Release() {
	x.a = Mat{}
	clear(x.strips)
}

func (x *Inputs) reserve(a Mat, m, k int) {
	x.a, x.m, x.k = a, m, k
	x.strips = grow(x.strips, (m+stripHeight-1)/stripHeight)
	x.mem = grow(x.mem, len(x.strips)*stripFloats(k))
}

func (x *Inputs) cutStrips(lo, hi int) {
	s, size := scratches.Get().(*scratch), stripFloats(x.k)
	for i := lo; i < hi; i++ {
		at := i * stripHeight
		x.strips[i] = packStrip(x.mem[i*size:][:size], x.a.from(at, 0), min(stripHeight, x.m-at), x.k, s)
	}
	s.free()
}

// part returns elements k0 to k1 of rows, k0 a multiple of limbStep.
func (x limbs) part(rows, k0, k1 int) limbs {
	part := limbs{data: x.data[k0/limbStep*stepFloats:], depth: k1 - k0}
	if x.whole != nil {
		part.whole = make([]float32, rows*part.depth)
		CopyRows(part.whole, part.depth, x.whole[k0:], x.depth, rows, part.depth)
	}
	return part
}

// MultiplyInputs is Multiply on tile units.
func (w *Packed) MultiplyInputs(c Mat, x *Inputs, j0, j1 int, bias []float32, after int) {
	s := scratches.Get().(*scratch)
	var ahead Ahead
	// A block of the rows stays in a cache while it meets all panels.
	for k := 0; k < w.K; k += limbDepth {
		depth := min(limbDepth, w.K-k)
		for j := j0; j < j1; j += w.Width {
			next, nextK := j+w.Width, k
			if next >= j1 {
				next, nextK = j0, k+depth
			}
			if nextK >= w.K {
				next, nextK = after, 0
			}
			w.askFor(&ahead, nextK, next)
			start, begin := startC, []float32(nil)
			if k == 0 {
				start = startZero
				if bias != nil {
					start, begin = startBias, bias[j:]
				}
			}
			cols := min(w.Width, j1-j)
			panels := w.limbs(k, j, depth, cols, s)
			for i, strip := range x.strips {
				at := i * stripHeight
				rows := min(stripHeight, x.m-at)
				multiplyLimbs(c.from(at, j), rows, cols, strip.part(rows, k, k+depth), panels, 0, depth, start, begin, sides{}, &ahead, s)
			}
		}
	}
	s.free()
	w.mendTiny(c.from(0, j0), x.a, x.m, j0, j1, bias)
}

// mendTiny computes elements next to 0 of columns j0 to j1 again, by vectors.
func (w *Packed) mendTiny(c, a Mat, m, j0, j1 int, bias []float32) {
	if !HasTiny(c.Data, c.Row, m, j1-j0) {
		return
	}
	again := RowMajor(make([]float32, m*(j1-j0)), j1-j0)
	for i := 0; bias != nil && i < m; i++ {
		copy(again.Data[i*again.Row:], bias[j0:j1])
	}
	MultiplyStored(again, a, m, &w.StoredPanels, 0, w.K, j0, j1, bias != nil)
	ReplaceTiny(c.Data, c.Row, again.Data, again.Row, m, j1-j0)
}

// limbs makes panels of elements k to k+depth of the columns j to j+cols of one panel.
func (w *Packed) limbs(k, j, depth, cols int, s *scratch) []limbs {
	size, count, at := stripFloats(depth), (cols+limbWidth-1)/limbWidth, w.At(k, j)
	floats := w.Float32
	if floats == nil {
		s.b = grow(s.b, depth*w.Width)
		w.floats(s.b, at)
		floats, at = s.b, 0
	}
	s.limbs, s.panelLimbs = grow(s.limbs, count*size), grow(s.panelLimbs, count)
	for i := range s.panelLimbs {
		from := Mat{Data: floats[at+i*limbWidth:], Row: w.Width, Col: 1}
		s.panelLimbs[i] = packLimbs(s.limbs[i*size:][:size], from, depth, min(limbWidth, cols-i*limbWidth), s)
		s.panelLimbs[i].top = w.BFloat16 != nil
	}
	return s.panelLimbs
}

// askFor has products ask for a block of the panel of column j, if there is one.
func (w *Packed) askFor(ahead *Ahead, k, j int) {
	ahead.Reset()
	if j < 0 || j >= w.N {
		return
	}
	n := min(limbDepth, w.K-k) * w.Width
	from := w.address(w.At(k, j-j%w.Width))
	ahead.pieces = append(ahead.pieces, unsafe.Slice((*float32)(from.at), n*from.size/4))
}
