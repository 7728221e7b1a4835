package simd

import "fmt"

// MultiplyPanels computes on the calling goroutine
//
//	C = A·B[k0:k1, j0:j1], or C += … if accumulate
//
// as Multiply does, for m rows of C with C.Col == 1. A has k1-k0 columns. j0 is a multiple of 16 or
// of b.Width, of the latter if b is Whole. The result is then the same as for its values as floats; it
// reads the numbers once for every six rows, so it is for few rows.
func MultiplyPanels(c, a Mat, m int, b *Panels, k0, k1, j0, j1 int, accumulate bool) {
	if m < 0 || k0 < 0 || k0 > k1 || k1 > b.K || j0 < 0 || j0 > j1 || j1 > b.N ||
		uint(j0)%uint(panelAlign()) != 0 {
		panic(fmt.Sprintf("simd: MultiplyPanels: m=%d, k0=%d, k1=%d of %d, j0=%d, j1=%d of %d", m, k0, k1, b.K, j0, j1, b.N))
	}
	if m == 0 || j0 == j1 {
		return
	}
	c.check("C", m, j1-j0, 1, 0)
	a.check("A", m, k1-k0, 1, 0)
	if b.Whole() {
		b.multiplyStored(c, a, m, k0, k1, j0, j1, accumulate)
		return
	}
	if b.Rounded && k0 < k1 {
		s := scratches.Get().(*scratch)
		defer s.free()
		a, k0, k1 = b.rounded(a, m, k0, k1, s)
	}
	multiplyPanels(c, a, m, b, k0, k1, j0, j1, accumulate, k1-k0)
}

// multiplyStored is MultiplyPanels for whole panels.
func (p *Panels) multiplyStored(c, a Mat, m, k0, k1, j0, j1 int, accumulate bool) {
	if j0%p.Width != 0 {
		panic(fmt.Sprintf("simd: MultiplyPanels: j0=%d of whole panels, want a multiple of %d", j0, p.Width))
	}
	if p.Rounded {
		s := scratches.Get().(*scratch)
		defer s.free()
		s.a = grow(s.a, m*(k1-k0))
		a = RoundBFloat16(s.a, a, m, k1-k0)
	}
	p.multiplyWhole(c, a, m, k0, k1, j0, j1, accumulate, k1-k0)
}

// multiplyWhole multiplies by whole panels of single numbers, in chains of chain steps.
func (p *Panels) multiplyWhole(c, a Mat, m, k0, k1, j0, j1 int, accumulate bool, chain int) {
	for j := j0; j < j1; j += p.Width {
		to, n, at := c.from(0, j-j0), min(p.Width, j1-j), p.At(k0, j)
		if storedPanel(to, a, m, n, k1-k0, p, at, accumulate, chain) {
			continue
		}
		s := scratches.Get().(*scratch)
		l := PanelLayout{K: k1 - k0, N: n, Width: p.Width}
		s.b = grow(s.b, l.Len())
		var floats Panels
		floats.View(l, p.numbers().Floats(at, at+l.Len(), s.b))
		multiplyPanels(to, a, m, &floats, 0, k1-k0, 0, n, accumulate, chain)
		s.free()
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
func (p *Panels) Multiply(c, a Mat, m, j0, j1 int, bias []float32, after int) {
	p.check(c, m, j0, j1, bias)
	if m == 0 || j0 == j1 {
		return
	}
	a.check("A", m, p.K, 1, 0)
	if !p.Rounded || p.K == 0 {
		p.multiply(c, a, m, j0, j1, bias, after)
		return
	}
	s := scratches.Get().(*scratch)
	defer s.free()
	tiles := p.quadsOnTiles(m)
	n := p.inputLen(tiles)
	s.a = grow(s.a, inputRows(m, tiles)*n)
	p.roundRows(s.a, a, m, tiles, s)
	p.multiplyRounded(c, RowMajor(s.a, n), m, j0, j1, bias, after, tiles)
}

func (p *Panels) check(c Mat, m, j0, j1 int, bias []float32) {
	if m < 0 || j0 < 0 || j0 > j1 || j1 > p.N || j0%p.Width != 0 || bias != nil && len(bias) != p.N {
		panic(fmt.Sprintf("simd: Panels.Multiply: m=%d, j0=%d, j1=%d of %d, %d biases", m, j0, j1, p.N, len(bias)))
	}
	c.check("C", m, j1, 1, 0)
}

// multiply is Multiply for weights that are stored one by one, or in pairs.
func (p *Panels) multiply(c, a Mat, m, j0, j1 int, bias []float32, after int) {
	if m <= fewRows && p.form != inPairs || p.K == 0 { // in the order in which the weights are stored
		for r := 0; bias != nil && r < m; r++ {
			copy(c.Data[r*c.Row+j0:], bias[j0:j1])
		}
		p.multiplyWhole(c.from(0, j0), a, m, 0, p.K, j0, j1, bias != nil, p.chain())
		return
	}
	s := scratches.Get().(*scratch)
	for j := j0; j < j1; j += p.Width {
		p.panel(c, a, m, j, min(p.Width, j1-j), bias, p.following(j, p.Width, j1, after), s)
	}
	s.free()
}

// following returns the first column of the panel to prefetch during that of column j: the next one or, at j1, that of
// after. It returns j if there is none.
func (p *Panels) following(j, width, j1, after int) int {
	next := j + width
	if next >= j1 {
		next = after
	}
	if next < 0 || next >= p.N {
		return j
	}
	return next - next%width
}

// panel computes m rows of the columns j to j+n of one panel. It reads the weights
// in the order in which they are stored and prefetches the following ones. At the end of the panel,
// it prefetches the panel of column next.
func (p *Panels) panel(c, a Mat, m, j, n int, bias []float32, next int, s *scratch) {
	numbers, chain, multiply, depth := p.numbers(), p.chain(), multiplyPanel, p.b.rows
	if p.form == inPairs {
		chain, multiply = chain/2, multiplyPairPanel
	}
	step := chain * equalStep((depth+chain-1)/chain, depthBlock/chain)
	if numbers.Format != Float32 {
		s.b = grow(s.b, step*p.Width)
	}
	if bias != nil {
		bias = bias[j : j+n]
	}
	for k0 := 0; k0 < depth; k0 += step {
		k1, at := min(k0+step, depth), p.b.at(k0, j)
		ahead := at + (k1-k0)*p.Width
		if k1 == depth {
			ahead = p.b.at(0, next)
		}
		part := PanelLayout{K: k1 - k0, N: n, Width: p.Width}
		b := numbers.Floats(at, at+part.Panel(), s.b)
		multiply(c.from(0, j), a.from(0, k0), m, part, b, k0 > 0, bias, chain, numbers.address(ahead))
	}
}

// panelAlign returns the alignment of the first column of a product with Panels: whole vectors, and
// the same number for all kernels.
func panelAlign() int { return min(16, panelWidth()) }

func multiplyPanelsGeneric(c, a Mat, m int, b *Panels, k0, k1, j0, j1 int, accumulate bool, chain int) {
	panelsInChains(c, a, m, b, k0, k1, j0, j1, accumulate, chain, false)
}

// panelsInChains is multiplyPanelsGeneric with chains like blockInChains.
func panelsInChains(c, a Mat, m int, b *Panels, k0, k1, j0, j1 int, accumulate bool, chain int, apart bool) {
	depth := k1 - k0
	part := b.b
	part.col, part.cols, part.rows = 0, j1-j0, depth
	if depth > 0 {
		part.data = part.data[j0/part.width*part.step+k0*part.row:]
	}
	p := Product{M: m, N: j1 - j0, K: depth, A: a, C: c, Accumulate: accumulate}
	if a.Col != 1 {
		s := scratches.Get().(*scratch)
		a = blockOfAGeneric(&p, 0, m, p.N, 0, depth, s)
		defer s.free()
	}
	blockInChains(&p, a, 0, m, 0, j1-j0, 0, depth, &part, chain, apart)
}
