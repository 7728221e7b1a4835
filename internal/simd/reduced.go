package simd

import "math"

// Products in reduced precision: inputs and weights are rounded.
//
// To bfloat16: the products are exact in float32, where they are added. So the result is that of floats with the same
// values, bit for bit, and processors that multiply pairs of bfloat16 need half of the steps.
//
// To 8-bit integers, see quads.go.
//
// Weights may be stored in words of 32 bits that contain several steps. The words of a column are in the layout of a
// column of floats.

// words returns the number of words of a column, 0 if elements are stored.
func (w *Packed) words() int {
	switch {
	case w.quads():
		return groupsOf(w.K) * (1 + groupWords)
	case w.pairs():
		return (w.K + 1) / 2
	}
	return 0
}

// wordLayout is the layout of the words. The kernel for integers needs panels of full width.
func (w *Packed) wordLayout() PanelLayout {
	l := PanelLayout{w.words(), w.N, w.Width}
	if w.quads() {
		l.Width = panelWidth()
	}
	return l
}

// Size returns the number of bytes of the weights.
func (w *Packed) Size() int {
	if w.words() > 0 {
		return w.wordLayout().Len() * Float32.Size()
	}
	return w.Len() * w.Format.Size()
}

// Factors returns the number of scales.
func (w *Packed) Factors() int {
	switch {
	case w.grouped():
		return groupsOf(w.K) * w.N
	case w.Format.Scaled() && !w.Rounded:
		return w.N
	}
	return 0
}

// setWords sets columns of one panel.
func (w *Packed) setWords(j, cols int, b unpacked, s *scratch) {
	l := w.wordLayout()
	s.a, s.b = grow(s.a, cols*l.K), grow(s.b, w.K)
	for c := range cols {
		column := b.column(s.b, c)
		if words := s.a[c*l.K:][:l.K]; w.quads() {
			weightQuads(words, column, s)
		} else {
			toPairs(words, column)
		}
	}
	to, words := view[float32](w.Memory)[l.At(0, j):], RowMajor(s.a, l.K).T()
	if j%w.Width == 0 && (cols == w.Width || j+cols == w.N) {
		packPanel(to, words, l.K, cols, l.Width)
		return
	}
	for k := range l.K {
		for c := range cols {
			to[k*l.Width+c] = words.Data[c*l.K+k]
		}
	}
}

// column returns a column of floats, which may be in dst.
func (b unpacked) column(dst []float32, c int) []float32 {
	if b = b.from(0, c); b.bfloat16 == nil {
		return contiguous(dst, b.floats.T())
	}
	fromBFloat16(dst, b.bfloat16[:len(dst)])
	return dst
}

// readWords sets dst to the weights of column j.
func (w *Packed) readWords(dst []float32, j int) {
	l := w.wordLayout()
	words := view[uint32](w.Memory)[l.At(0, j):]
	for k := range dst {
		if w.quads() {
			group := words[k/groupSteps*(1+groupWords)*l.Width:]
			word := group[(1+k%groupSteps/4)*l.Width]
			dst[k] = float32(int(word>>(k%4*8)&0xff)-128) * math.Float32frombits(group[0])
		} else {
			dst[k] = math.Float32frombits(words[k/2*l.Width] << (k % 2 * 16) &^ 0xffff)
		}
	}
}

// chain returns the number of steps of a block of the sum. With rounded inputs it is even, so that it consists of pairs.
func (w *Packed) chain() int {
	if w.Rounded {
		return 2 * equalStep((w.K+1)/2, sumSteps/2)
	}
	return sumBlock(w.K)
}

// round returns m rows of a, rounded: as pairs or as floats.
func (w *Packed) round(a Mat, m int, s *scratch) Mat {
	depth := w.K
	if w.pairs() {
		depth = w.words()
	}
	s.a, s.row, s.half = grow(s.a, m*depth), grow(s.row, w.K), grow(s.half, w.K)
	for i := range m {
		row, x := s.a[i*depth:][:depth], contiguous(s.row, a.from(i, 0))
		if w.pairs() {
			toPairs(row, x)
			continue
		}
		if w.grouped() {
			roundToGroups(row, x, s)
			continue
		}
		toBFloat16(s.half, x)
		fromBFloat16(row, s.half)
	}
	return RowMajor(s.a, depth)
}

// contiguous returns the first row of a, copied to row if its elements are apart.
func contiguous(row []float32, a Mat) []float32 {
	if a.Col == 1 {
		return a.Data[:len(row)]
	}
	for k := range row {
		row[k] = a.Data[k*a.Col]
	}
	return row
}
