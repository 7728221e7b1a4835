package simd

import (
	"fmt"
	"math"
	"sync"

	"github.com/attn-go/attn/internal/par"
)

// Products in reduced precision: inputs and weights are rounded.
//
// To bfloat16: the products are exact in float32, where they are added. So the result is that of floats with the same
// values, bit for bit, and processors that multiply pairs of bfloat16 need half of the steps. Tile units add the
// products of packed weights in another order.
//
// To 8-bit integers, see quads.go.
//
// Weights may be stored in words of 32 bits that contain several steps, and so may rounded Panels. The words of a column
// are in the layout of a column of floats.

// bfloat16Words returns the number of words of a column of rounded numbers, which are pairs or floats.
func bfloat16Words(depth int) int {
	if usesPairs() {
		return (depth + 1) / 2
	}
	return depth
}

// pairs reports whether the weights are stored in pairs.
func (w *Packed) pairs() bool { return w.Rounded && w.Format == BFloat16 && usesPairs() }

// words returns the number of words of a column, 0 if elements are stored.
func (w *Packed) words() int {
	switch {
	case w.quads():
		return groupedWords(w.K)
	case w.pairs():
		return bfloat16Words(w.K)
	}
	return 0
}

// wordLayout is the layout of the words.
func (w *Packed) wordLayout() PanelLayout {
	l := PanelLayout{w.words(), w.N, w.Width}
	if w.quads() {
		l.Width = quadsWidth()
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
	if w.grouped() {
		return groupsOf(w.K) * w.N
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
			weightQuads(words, column)
		} else {
			toWords(words, RowMajor(column, w.K), 1, w.K, s)
		}
	}
	words, memory := RowMajor(s.a, l.K).T(), view[float32](w.Memory)
	if j%w.Width == 0 && (cols == w.Width || j+cols == w.N) {
		for c := 0; c < cols; c += l.Width {
			packPanel(memory[l.At(0, j+c):], words.from(0, c), l.K, min(l.Width, cols-c), l.Width)
		}
		return
	}
	for c := range cols {
		for k, word := range s.a[c*l.K:][:l.K] {
			memory[l.At(k, j+c)] = word
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
			group := words[k/groupSteps*(2+groupWords)*l.Width:]
			word := group[(2+k%groupSteps/4)*l.Width]
			dst[k] = float32(int8(word>>(k%4*8))) * math.Float32frombits(group[0])
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

// inputLen returns the number of floats or words of a rounded row of A.
func (w *Packed) inputLen() int {
	switch {
	case w.quads():
		return groupedWords(w.K)
	case w.Format == BFloat16:
		return bfloat16Words(w.K)
	}
	return w.K
}

// toWords sets rows of dst, which follow one another, to rows of m, rounded to bfloat16: pairs, or floats.
func toWords(dst []float32, m Mat, rows, n int, s *scratch) {
	switch {
	case rows == 0 || n == 0:
	case m.Col != 1:
		s.row = grow(s.row, n)
		for i := range rows {
			toWords(dst[i*bfloat16Words(n):], RowMajor(contiguous(s.row, m.from(i, 0)), n), 1, n, s)
		}
	case usesPairs():
		toPairs(dst, m, rows, n)
	default:
		RoundBFloat16(dst, m, rows, n)
	}
}

// rounded returns m rows of A for steps k0 to k1 of a product with rounded panels, and these steps in words.
func (p *Panels) rounded(a Mat, m, k0, k1 int, s *scratch) (Mat, int, int) {
	if k0%2 != 0 {
		panic(fmt.Sprintf("simd: MultiplyPanels: k0=%d of rounded panels, want an even one", k0))
	}
	n, depth := bfloat16Words(k1-k0), k1-k0
	s.a = grow(s.a, m*n)
	words := RowMajor(s.a, n)
	if a.Row == 1 { // columns are contiguous
		packRounded(s.a, a.T(), depth, m, m)
		words = RowMajor(s.a, m).T()
	} else {
		toWords(s.a, a, m, depth, s)
	}
	k0 = bfloat16Words(k0)
	return words, k0, k0 + n
}

// packRounded is packPanel for numbers rounded to bfloat16, in words.
func packRounded(dst []float32, m Mat, depth, cols, width int) {
	s := scratches.Get().(*scratch)
	defer s.free()
	words := bfloat16Words(depth)
	switch {
	case m.Col != 1: // columns are contiguous
		s.a = grow(s.a, cols*words)
		toWords(s.a, m.T(), cols, depth, s)
		packPanel(dst, RowMajor(s.a, words).T(), words, cols, width)
	case usesPairs():
		packPairRows(dst, m, depth, cols, width)
	default:
		for k := range depth {
			toWords(dst[k*width:], m.from(k, 0), 1, cols, s)
		}
	}
}

// multiplyRounded is Multiply for a product with Rounded, which it rounds before it multiplies. Where a zero needs care
// words would not do, so the factors are then floats.
func multiplyRounded(p *Product) {
	if p.Count > 1 {
		panic(fmt.Sprintf("simd: Multiply: Count=%d with Rounded, want 1", p.Count))
	}
	one, words := *p, roundedFactors.Get().(*[2][]float32)
	one.Rounded = false
	if one.pairs = usesPairs() && !p.careful(); one.pairs {
		one.Sparse, one.K = false, bfloat16Words(p.K)
	}
	one.A = roundFactor(&words[0], p.A, p.M, p, one.pairs)
	one.B = roundFactor(&words[1], p.B.T(), p.N, p, one.pairs).T()
	Multiply(&one)
	roundedFactors.Put(words)
}

var roundedFactors = sync.Pool{New: func() any { return new([2][]float32) }}

// roundFactor rounds rows of m, as deep as p, to pairs or else to floats in memory.
func roundFactor(memory *[]float32, m Mat, rows int, p *Product, pairs bool) Mat {
	deep := m.Row == 1 && m.Col != 1 // columns are contiguous
	from, length, count, each := m, p.K, rows, 1
	if deep {
		from, length, count = m.T(), rows, p.K
	}
	words := length
	switch {
	case pairs && deep:
		count, each = (p.K+1)/2, 2
	case pairs:
		words = (p.K + 1) / 2
	}
	*memory = grow(*memory, count*words)
	to := *memory
	par.For(count, par.Chunk(count, each*length), func(lo, hi int) {
		par.Check(p.Context)
		s := scratches.Get().(*scratch)
		switch part := from.from(lo*each, 0); {
		case pairs && deep:
			packPairRows(to[lo*words:], part, min(hi*2, p.K)-lo*2, words, words)
		case pairs:
			toWords(to[lo*words:], part, hi-lo, length, s)
		default:
			RoundBFloat16(to[lo*words:], part, hi-lo, length)
		}
		s.free()
	})
	if deep {
		return RowMajor(to, words).T()
	}
	return RowMajor(to, words)
}

// roundRows sets the first m rows of dst to rows of a, rounded.
func (w *Packed) roundRows(dst []float32, a Mat, m int, s *scratch) {
	n := w.inputLen()
	s.row = grow(s.row, w.K)
	for i := range m {
		row, x := dst[i*n:][:n], contiguous(s.row, a.from(i, 0))
		switch {
		case w.quads():
			inputQuads(row, x)
		case w.grouped():
			roundToGroups(row, x, s)
		default:
			toWords(row, RowMajor(x, w.K), 1, w.K, s)
		}
	}
}

// Inputs are rows of A for products with weights in reduced precision. They are rounded once for all pieces of a loop,
// by the first one that needs them.
type Inputs struct {
	rounded sharedCopy
	w       *Packed
	a       Mat
	m       int
}

// inputRows is the number of rows that are rounded together.
const inputRows = 2 * cutRows

// Reset sets the inputs to the m rows of a, for products with w and others of the same depth and format.
func (in *Inputs) Reset(w *Packed, a Mat, m int) {
	in.w, in.a, in.m = w, a, m
	in.rounded.reserve(m*w.inputLen(), (m+inputRows-1)/inputRows)
	if in.rounded.pack == nil {
		in.rounded.pack = in.round
	}
}

// Free forgets the caller's memory.
func (in *Inputs) Free() { in.w, in.a = nil, Mat{} }

func (in *Inputs) round(part int) {
	s := scratches.Get().(*scratch)
	defer s.free()
	i := part * inputRows
	in.w.roundRows(in.rounded.mem[i*in.w.inputLen():], in.a.from(i, 0), min(inputRows, in.m-i), s)
}

// MultiplyInputs is Multiply for rows i to i+m of the inputs.
func (w *Packed) MultiplyInputs(c Mat, in *Inputs, i, m, j0, j1 int, bias []float32, after int) {
	w.check(c, m, j0, j1, bias)
	if m == 0 || j0 == j1 {
		return
	}
	in.rounded.prepare(i/inputRows, (i+m+inputRows-1)/inputRows)
	n := w.inputLen()
	w.multiplyRounded(c, RowMajor(in.rounded.mem[i*n:], n), m, j0, j1, bias, after)
}

// multiplyRounded is Multiply for rounded rows of A.
func (w *Packed) multiplyRounded(c, a Mat, m, j0, j1 int, bias []float32, after int) {
	if w.quads() {
		w.multiplyQuads(c, a, m, j0, j1, bias, after)
	} else {
		w.multiply(c, a, m, j0, j1, bias, after)
	}
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

// RoundBFloat16 sets dst to rows of m, whose elements are contiguous, rounded to bfloat16. It returns the matrix.
func RoundBFloat16(dst []float32, m Mat, rows, cols int) Mat {
	if m.check("m", rows, cols, 1, 0); m.Col != 1 {
		panic(fmt.Sprintf("simd: RoundBFloat16: Col=%d, want 1", m.Col))
	}
	s := scratches.Get().(*scratch)
	defer s.free()
	s.half = grow(s.half, cols)
	for i := range rows {
		toBFloat16(s.half, m.Data[i*m.Row:][:cols])
		fromBFloat16(dst[i*cols:][:cols], s.half)
	}
	return RowMajor(dst, cols)
}
