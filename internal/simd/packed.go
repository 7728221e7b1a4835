package simd

import (
	"fmt"
)

// Packed is a matrix B of weights in the order in which products read it. It is written once, when
// a model is loaded, and then read by every product with its inputs.
type Packed struct {
	StoredPanels
	// Rounded rounds the inputs of products to the format of the weights, bfloat16 or 8-bit integers. It is set for the
	// latter, see quads.go.
	Rounded bool
	Scales  []float32 // Factors elements
}

// Set sets columns j to j+n to the columns of b, which has K rows and n columns, rounded to the format. Different
// panels may be set concurrently.
func (w *Packed) Set(j, n int, b Mat) {
	if j < 0 || n < 0 || j+n > w.N {
		panic(fmt.Sprintf("simd: Packed.Set: columns %d to %d of %d", j, j+n, w.N))
	}
	b.check("B", w.K, n, 1, 0)
	w.set(j, n, unpacked{floats: b})
}

// SetBFloat16 is Set for consecutive columns of K bfloat16 each. The result is the same as for Set
// with the same values as floats, but faster; stored as bfloat16, a NaN keeps its bits.
func (w *Packed) SetBFloat16(j, n int, x []uint16) {
	if j < 0 || n < 0 || j+n > w.N || len(x) < n*w.K {
		panic(fmt.Sprintf("simd: Packed.SetBFloat16: columns %d to %d of %d, %d elements for K=%d", j, j+n, w.N, len(x), w.K))
	}
	w.set(j, n, unpacked{bfloat16: x, depth: w.K})
}

func (w *Packed) set(j, n int, b unpacked) {
	s := scratches.Get().(*scratch)
	defer s.free()
	for n > 0 && w.K > 0 {
		cols := min(n, w.Width-j%w.Width)
		switch {
		case w.words() > 0:
			w.setWords(j, cols, b, s)
		case w.grouped():
			w.setGroups(j, cols, b, s)
		default:
			w.setPart(j, cols, b, s)
		}
		if j, n = j+cols, n-cols; n > 0 {
			b = b.from(0, cols)
		}
	}
}

// unpacked is the source of columns: either a matrix of floats, or consecutive columns of depth
// bfloat16 each.
type unpacked struct {
	floats   Mat
	bfloat16 []uint16
	depth    int
}

// from returns the part from row k and column j on.
func (b unpacked) from(k, j int) unpacked {
	if b.bfloat16 != nil {
		b.bfloat16 = b.bfloat16[j*b.depth+k:]
	} else {
		b.floats = b.floats.from(k, j)
	}
	return b
}

// pack copies rows×cols elements as floats to rows that are width apart.
func (b unpacked) pack(dst []float32, rows, cols, width int) {
	if b.bfloat16 != nil {
		packWiden(dst, b.bfloat16, b.depth, rows, cols, width)
	} else {
		packPanel(dst, b.floats, rows, cols, width)
	}
}

// setFloats is the number of floats that are converted at a time. They stay in a first-level cache
// between the steps.
const setFloats = 1 << 12

// setPart sets columns of one panel.
func (w *Packed) setPart(j, cols int, b unpacked, s *scratch) {
	at := w.At(0, j)
	whole := j%w.Width == 0 && (cols == w.Width || j+cols == w.N)
	switch {
	case whole && w.Format == Float32:
		b.pack(view[float32](w.Memory)[at:][:w.Panel()], w.K, cols, w.Width)
		return
	case whole && w.Format == BFloat16 && b.bfloat16 != nil:
		packBFloat16(view[uint16](w.Memory)[at:][:w.Panel()], b.bfloat16, b.depth, w.K, cols, w.Width)
		return
	}
	step := min(w.K, max(1, setFloats/w.Width))
	s.b = grow(s.b, step*w.Width)
	for k := 0; k < w.K; k += step {
		rows := min(step, w.K-k)
		floats := s.b[:rows*w.Width]
		b.from(k, 0).pack(floats, rows, cols, w.Width)
		each, n := w.Width, cols
		if whole { // contiguous
			each, n = len(floats), len(floats)
		}
		to := at + k*w.Width
		for i := 0; i < len(floats); i += each {
			w.Part(to+i, to+i+n).round(floats[i:][:n], 1)
		}
	}
}

// Column sets dst to the weights of column j.
func (w *Packed) Column(dst []float32, j int) {
	if j < 0 || j >= w.N || len(dst) != w.K {
		panic(fmt.Sprintf("simd: Packed.Column: column %d of %d, %d elements of %d", j, w.N, len(dst), w.K))
	}
	if w.words() > 0 {
		w.readWords(dst, j)
		return
	}
	w.Read(dst, w.At(0, j), w.Width)
	for k := 0; w.grouped() && k < w.K; k++ {
		dst[k] *= w.Scales[k/groupSteps*w.N+j]
	}
}

// fewRows is the largest number of rows for which a product reads weights as they are stored. For more rows, it first
// converts a part of them to floats that stays in a cache.
const fewRows = 12

// Multiply computes columns j0 to j1 of C = A·B + bias, or of A·B if bias is nil, for m rows of C,
// on the calling goroutine. j0 is a multiple of Width. An element is the sum of Multiply with
// Blocks, bit for bit. For rounded inputs, see reduced.go; blocks may be one step longer.
//
// after is the column that the caller probably multiplies by next. The weights there are
// prefetched. It is only a hint and may be any number.
func (w *Packed) Multiply(c, a Mat, m, j0, j1 int, bias []float32, after int) {
	w.check(c, m, j0, j1, bias)
	if m == 0 || j0 == j1 {
		return
	}
	a.check("A", m, w.K, 1, 0)
	if !w.Rounded || w.K == 0 {
		w.multiply(c, a, m, j0, j1, bias, after)
		return
	}
	s := scratches.Get().(*scratch)
	defer s.free()
	s.a = grow(s.a, m*w.inputLen())
	w.roundRows(s.a, a, m, s)
	w.multiplyRounded(c, RowMajor(s.a, w.inputLen()), m, j0, j1, bias, after)
}

func (w *Packed) check(c Mat, m, j0, j1 int, bias []float32) {
	if m < 0 || j0 < 0 || j0 > j1 || j1 > w.N || j0%w.Width != 0 || bias != nil && len(bias) != w.N {
		panic(fmt.Sprintf("simd: Packed.Multiply: m=%d, j0=%d, j1=%d of %d, %d biases", m, j0, j1, w.N, len(bias)))
	}
	c.check("C", m, j1, 1, 0)
}

// multiply is Multiply for weights that are stored one by one, or in pairs.
func (w *Packed) multiply(c, a Mat, m, j0, j1 int, bias []float32, after int) {
	if (m <= fewRows && !w.grouped() && !w.pairs()) || w.K == 0 { // in the order in which the weights are stored
		for r := 0; bias != nil && r < m; r++ {
			copy(c.Data[r*c.Row+j0:], bias[j0:j1])
		}
		multiplyStored(c.from(0, j0), a, m, &w.StoredPanels, 0, w.K, j0, j1, bias != nil, w.chain())
		return
	}
	s := scratches.Get().(*scratch)
	for j := j0; j < j1; j += w.Width {
		w.panel(c, a, m, j, min(w.Width, j1-j), bias, w.following(j, w.Width, j1, after), s)
	}
	s.free()
}

// following returns the first column of the panel to prefetch during that of column j: the next one or, at j1, that of
// after. It returns j if there is none.
func (w *Packed) following(j, width, j1, after int) int {
	next := j + width
	if next >= j1 {
		next = after
	}
	if next < 0 || next >= w.N {
		return j
	}
	return next - next%width
}

// panel computes m rows of the columns j to j+n of one panel. It reads the weights
// in the order in which they are stored and prefetches the following ones. At the end of the panel,
// it prefetches the panel of column next.
func (w *Packed) panel(c, a Mat, m, j, n int, bias []float32, next int, s *scratch) {
	p, chain, multiply := w.StoredPanels, w.chain(), multiplyPanel
	if w.pairs() { // in the places of floats
		p = StoredPanels{PanelLayout: w.wordLayout(), Stored: Stored{Float32, w.Memory}}
		chain, multiply = chain/2, multiplyPairPanel
	}
	step := chain * equalStep((p.K+chain-1)/chain, depthBlock/chain)
	if p.Format != Float32 {
		s.b = grow(s.b, step*p.Width)
	}
	if bias != nil {
		bias = bias[j : j+n]
	}
	for k0 := 0; k0 < p.K; k0 += step {
		k1, at := min(k0+step, p.K), p.At(k0, j)
		ahead := at + (k1-k0)*p.Width
		if k1 == p.K {
			ahead = p.At(0, next)
		}
		part := PanelLayout{K: k1 - k0, N: n, Width: p.Width}
		b := p.Floats(at, at+part.Panel(), s.b)
		if w.grouped() {
			w.scaleGroups(b, k0, j, n)
		}
		multiply(c.from(0, j), a.from(0, k0), m, part, b, k0 > 0, bias, chain, p.address(ahead))
	}
}
