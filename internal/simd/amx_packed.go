//go:build amd64 && !purego

package simd

import "unsafe"

// multiplyOnTiles is Multiply on tile units, of weights without scales.
func (w *Packed) multiplyOnTiles(c, a Mat, m, j0, j1 int, bias []float32, after int) {
	if m <= FewRows || w.Width != panelWidth() {
		x := storedProduct{b: &w.StoredPanels, k1: w.K, bias: bias, block: limbDepth}
		if after >= 0 && after < w.N {
			x.next = w.address(w.At(0, after-after%w.Width))
		}
		x.compute(c.from(0, j0), a, m, j0, j1)
		w.mendTiny(c.from(0, j0), a, m, j0, j1, bias)
		return
	}
	s := scratches.Get().(*scratch)
	strips := (m + stripHeight - 1) / stripHeight
	s.strips = grow(s.strips, strips)
	var ahead Ahead
	for k := 0; k < w.K; k += limbDepth {
		depth := min(limbDepth, w.K-k)
		size := stripFloats(depth)
		s.a = grow(s.a, strips*size)
		for i := range s.strips {
			at := i * stripHeight
			s.strips[i] = packStrip(s.a[i*size:][:size], a.from(at, k), min(stripHeight, m-at), depth, s)
		}
		start := startC
		if k == 0 {
			start = startZero
			if bias != nil {
				start = startBias
			}
		}
		for j := j0; j < j1; j += w.Width {
			next, nextK := j+w.Width, k
			if next >= j1 {
				next, nextK = j0, k+depth
			}
			if nextK >= w.K {
				next, nextK = after, 0
			}
			w.askFor(&ahead, nextK, next)
			cols := min(w.Width, j1-j)
			var begin []float32
			if start == startBias {
				begin = bias[j:]
			}
			panels := w.limbs(k, j, depth, cols, s)
			for i, strip := range s.strips {
				at := i * stripHeight
				multiplyLimbs(c.from(at, j), min(stripHeight, m-at), cols, strip, panels, 0, depth, start, begin, sides{}, &ahead, s)
			}
		}
	}
	clear(s.strips)
	s.free()
	w.mendTiny(c.from(0, j0), a, m, j0, j1, bias)
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
