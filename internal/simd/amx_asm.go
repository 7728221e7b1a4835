//go:build amd64 && !purego

package simd

import (
	"math"
	"unsafe"

	"github.com/attn-go/attn/internal/par"
)

// The drivers of the kernels for tile units.

// amxArgs is the argument of the kernel: a strip of A and consecutive panels of B, both as limbs.
// Strides are in bytes. The generator reads the offsets of the fields.
type amxArgs struct {
	a, b   *float32
	c      *float32
	cRow   int
	steps  int // of k, at least 1
	panels int // at least 1
	bPanel int // from panel to panel
	rows   int // 1 to stripHeight
	last   int // columns of the last panel, 1 to limbWidth
	start  int // as in tileArgs
	bias   *float32
	buffer *float32 // stripHeight rows of limbWidth
	masked int      // panels at the end for which C has only a part of the tiles

	next     uintptr // an address to prefetch; each step prefetches further on
	nextStep int
}

const (
	stripHeight = 32 // rows of A that are packed together
	limbWidth   = 32 // columns of B that are packed together
	limbStep    = 32 // elements of k
	// tilePrefetched is the number of bytes that a step of the kernel prefetches. The generator
	// uses the same number.
	tilePrefetched = 4096
	// stepFloats is the size of a step of a strip or a panel, in floats.
	stepFloats = 3 * limbStep * stripHeight / 2
)

// tileWork is the approximate number of multiplications for a task: a few microseconds' worth.
const tileWork = 1 << 20

// The size of blocks of B, in columns and in elements of k. As limbs, a block takes about half of a
// second-level cache of 2 MiB, and a strip of A of the same depth about a fortieth.
const (
	limbColumns = 768
	limbDepth   = 256
)

// hasTiles reports whether products of sufficient size use tile units.
func hasTiles() bool { return active == amx && permitTiles() }

// steps returns the number of steps for k elements.
func steps(k int) int { return (k + limbStep - 1) / limbStep }

// stripFloats returns the size of a strip or a panel of depth k, in floats.
func stripFloats(k int) int { return steps(k) * stepFloats }

// hasLimbs reports whether x is finite as a bfloat16.
func hasLimbs(x float32) bool { return x < 0x1.ffp127 && x > -0x1.ffp127 }

// limbs is a strip of A or a panel of B: up to 32 rows, or columns, of depth elements.
type limbs struct {
	data  []float32
	panel bool
	depth int
	whole []float32 // the elements, row by row or column by column, if some have no limbs
}

// packStrip packs rows×depth elements of A into a strip that uses mem.
func packStrip(mem []float32, a Mat, rows, depth int, s *scratch) limbs {
	if a.Col != 1 {
		width := roundUp(depth, vectorLanes())
		s.b = grow(s.b, rows*width)
		packTransposed(s.b, a, rows, depth, width)
		a = RowMajor(s.b, width)
	}
	x := limbs{data: mem, depth: depth}
	if amxRowLimbsAMX(&mem[0], &a.Data[0], 4*a.Row, rows, depth) {
		return x
	}
	var rest []float32
	x.whole, rest = setAside(a, rows, depth)
	amxRowLimbsAMX(&mem[0], &rest[0], 4*depth, rows, depth)
	return x
}

// packLimbs packs depth×cols elements of B into a panel that uses mem.
func packLimbs(mem []float32, b Mat, depth, cols int, s *scratch) limbs {
	if b.Col != 1 {
		s.b = grow(s.b, depth*limbWidth)
		packTransposed(s.b, b, depth, cols, limbWidth)
		b = RowMajor(s.b, limbWidth)
	}
	x := limbs{data: mem, panel: true, depth: depth}
	if amxColumnLimbsAMX(&mem[0], &b.Data[0], 4*b.Row, depth, cols) {
		return x
	}
	var rest []float32
	x.whole, rest = setAside(b.T(), cols, depth)
	packLimbs(mem, RowMajor(rest, depth).T(), depth, cols, s)
	return x
}

// setAside returns a copy of rows×n elements, and a second copy in which elements without limbs are
// 0.
func setAside(m Mat, rows, n int) (whole, rest []float32) {
	whole, rest = make([]float32, rows*n), make([]float32, rows*n)
	for i := range rows {
		for k := range n {
			v := m.Data[i*m.Row+k*m.Col]
			whole[i*n+k] = v
			if hasLimbs(v) {
				rest[i*n+k] = v
			}
		}
	}
	return whole, rest
}

// row returns elements k0 to k1 of row or column i. It computes them into mem unless x.whole has
// them.
func (x limbs) row(mem []float32, i, k0, k1 int) []float32 {
	if x.whole != nil {
		return x.whole[i*x.depth+k0 : i*x.depth+k1]
	}
	mem = grow(mem, k1-k0)
	for k := k0; k < k1; k++ {
		at := k/limbStep*stepFloats + i*16 + k%16
		if x.panel {
			at = k/limbStep*stepFloats + i/16*256 + k%16*16 + i%16
		}
		sum := float32(0)
		for l := range 3 {
			bits := math.Float32bits(x.data[at+l*stepFloats/3])
			if k%limbStep < 16 {
				bits <<= 16
			}
			sum += math.Float32frombits(bits &^ 0xffff)
		}
		mem[k-k0] = sum
	}
	return mem
}

// addOdd adds to c the terms of elements without limbs, for a strip and for elements k0 to k1 of a
// panel. Zeros of sparse sides contribute nothing.
func addOdd(c Mat, rows, cols int, a, b limbs, k0, k1 int, sparse sides) {
	if a.whole == nil && b.whole == nil {
		return
	}
	for j := range cols {
		y := b.row(nil, j, k0, k1)
		for i := range rows {
			x := a.row(nil, i, 0, k1-k0)
			sum := &c.Data[i*c.Row+j]
			for k, v := range y {
				if hasLimbs(v) && hasLimbs(x[k]) || sparse.a && x[k] == 0 || sparse.b && v == 0 {
					continue
				}
				*sum += float32(x[k] * v)
			}
		}
	}
}

// multiplyLimbs computes rows×cols of c from a strip and from elements k0 to k1 of panels. k0 is a
// multiple of limbStep. It prefetches ahead, which may be nil.
func multiplyLimbs(c Mat, rows, cols int, a limbs, panels []limbs, k0, k1, start int, bias []float32,
	sparse sides, ahead *Ahead, s *scratch) {
	s.tile = grow(s.tile, stripHeight*limbWidth)
	t := amxArgs{
		a: &a.data[0], b: &panels[0].data[k0/limbStep*stepFloats], c: &c.Data[0], cRow: 4 * c.Row,
		steps: steps(k1 - k0), panels: len(panels), bPanel: 4 * stripFloats(panels[0].depth),
		rows: rows, last: cols - (len(panels)-1)*limbWidth, start: start, buffer: &s.tile[0],
	}
	if start == startBias {
		t.bias = &bias[0]
	}
	t.next = uintptr(unsafe.Pointer(t.a))
	if ahead != nil && !ahead.empty() && rows > stripHeight/2 {
		t.nextStep = tilePrefetched
		t.next = uintptr(unsafe.Pointer(&ahead.takeBytes(tilePrefetched * t.steps * t.panels)[0]))
	}
	switch {
	case rows%(stripHeight/2) != 0:
		t.masked = t.panels
	case t.last < limbWidth:
		t.masked = 1
	}
	amxMultiplyAMX(&t)
	for i, b := range panels {
		addOdd(c.from(0, i*limbWidth), rows, min(limbWidth, cols-i*limbWidth), a, b, k0, k1, sparse)
	}
}

// A limbProduct computes a product, or a part of it, block by block. The current block is columns
// j0 to j1 and elements k0 to k1.
type limbProduct struct {
	p              *Product
	j0, j1, k0, k1 int
	limbPanels
}

// each calls f for each block in turn. Blocks after the first continue the sums.
func (b *limbProduct) each(f func()) {
	for b.j0 = 0; b.j0 < b.p.N; b.j0 += limbColumns {
		b.j1 = min(b.j0+limbColumns, b.p.N)
		for b.k0 = 0; b.k0 < b.p.K; b.k0 += limbDepth {
			b.k1 = min(b.k0+limbDepth, b.p.K)
			b.reserve(b.k1-b.k0, b.j1-b.j0)
			f()
		}
	}
}

// pack packs panels lo to hi of the block.
func (b *limbProduct) pack(lo, hi int) {
	b.fill(b.p.B.from(b.k0, b.j0), b.k1-b.k0, 0, lo*limbWidth, min(hi*limbWidth, b.j1-b.j0))
}

// strip computes panels lo to hi of the strip of rows from i on.
func (b *limbProduct) strip(i, lo, hi int, s *scratch) {
	p, depth := b.p, b.k1-b.k0
	rows := min(stripHeight, p.M-i)
	s.a = grow(s.a, stripFloats(depth))
	a := packStrip(s.a, p.A.from(i, b.k0), rows, depth, s)
	j := b.j0 + lo*limbWidth
	start, bias := p.start(b.k0, j)
	cols := min(hi*limbWidth, b.j1-b.j0) - lo*limbWidth
	multiplyLimbs(p.C.from(i, j), rows, cols, a, b.panels[lo:hi], 0, depth, start, bias, sides{a: p.Sparse}, nil, s)
	if b.k1 == p.K {
		p.recomputeTiny(i, rows, j, cols)
	}
}

// tiling is the state of a multiplication on tile units.
type tiling struct {
	limbProduct
	groups int // groups of panels; a strip and a group are one task

	block             func()
	pack, strips, few func(lo, hi int)
}

// runTiles computes the products on tile units, on all processors.
func (m *multiplication) runTiles() {
	p, t := &m.all, &m.tiling
	if p.Count == 1 && p.isFew() {
		m.one = *p
		m.runFew()
		return
	}
	work := p.M * p.N * p.K
	if work < 2*tileWork/p.Count {
		m.doProducts(0, p.Count) // too small to share
		return
	}
	if p.Count > 1 && (work < 4*tileWork || p.Count >= 4*par.Threads()) {
		par.For(p.Count, max(1, tileWork/work), m.products)
		return
	}
	if t.block == nil {
		t.block, t.pack, t.strips = m.doTileBlock, m.doTilePack, m.doTileStrips
	}
	m.one = *p
	t.p = &m.one
	for i := range p.Count {
		p.product(&m.one, i)
		t.each(t.block)
	}
	t.p = nil
}

// onTiles computes a product on tile units, on the calling goroutine.
func (p *Product) onTiles(s *scratch) {
	b := limbProduct{p: p, limbPanels: s.limbs}
	b.each(func() {
		b.pack(0, len(b.panels))
		for i := 0; i < p.M; i += stripHeight {
			b.strip(i, 0, len(b.panels), s)
		}
	})
	s.limbs = b.limbPanels
}

// doTileBlock computes a block on all processors: they first pack the panels and then share the
// strips.
func (m *multiplication) doTileBlock() {
	t := &m.tiling
	panels, strips := len(t.panels), (m.one.M+stripHeight-1)/stripHeight
	par.For(panels, max(1, tileWork/16/(limbWidth*(t.k1-t.k0))), t.pack)
	even := (4*par.Threads() + strips - 1) / strips
	t.groups = max(1, min(even, panels/4)) // packing a strip costs as much as packing one or two panels
	par.For(strips*t.groups, 1, t.strips)
}

func (m *multiplication) doTilePack(lo, hi int) { m.tiling.limbProduct.pack(lo, hi) }

// doTileStrips computes tasks lo to hi. Each task is a strip and a group of panels.
func (m *multiplication) doTileStrips(lo, hi int) {
	par.Check(m.all.Context)
	s, t := scratches.Get().(*scratch), &m.tiling
	for u := lo; u < hi; u++ {
		n, g := len(t.panels), u%t.groups
		t.strip(u/t.groups*stripHeight, n*g/t.groups, n*(g+1)/t.groups, s)
	}
	s.free()
}

// limbPanels are panels of B for tile units. Their memory is reused.
type limbPanels struct {
	mem    []float32
	panels []limbs
}

// release drops references to elements without limbs.
func (b *limbPanels) release() { clear(b.panels) }

// reserve allocates memory for k rows and n columns.
func (b *limbPanels) reserve(k, n int) {
	count := (n + limbWidth - 1) / limbWidth
	b.mem, b.panels = grow(b.mem, count*stripFloats(k)), grow(b.panels, count)
}

// fill packs columns j0 to j1 of a matrix of k rows into b. Column at of the matrix is column 0 of
// m.
func (b *limbPanels) fill(m Mat, k, at, j0, j1 int) {
	s, size := scratches.Get().(*scratch), stripFloats(k)
	for j := j0; j < j1; j += limbWidth {
		i := j / limbWidth
		b.panels[i] = packLimbs(b.mem[i*size:][:size], m.from(0, j-at), k, min(limbWidth, j1-j), s)
	}
	s.free()
}

// multiply is MultiplyPanels, for k0 and j0 that are multiples of 32.
func (b *limbPanels) multiply(c, a Mat, m int, k0, k1, j0, j1 int, accumulate bool, sparse sides, ahead *Ahead) {
	start := startZero
	if accumulate {
		start = startC
	}
	s, depth := scratches.Get().(*scratch), k1-k0
	s.a = grow(s.a, stripFloats(depth))
	for i := 0; i < m; i += stripHeight {
		rows := min(stripHeight, m-i)
		strip := packStrip(s.a, a.from(i, 0), rows, depth, s)
		panels := b.panels[j0/limbWidth : (j1+limbWidth-1)/limbWidth]
		multiplyLimbs(c.from(i, 0), rows, j1-j0, strip, panels, k0, k1, start, nil, sparse, ahead, s)
	}
	s.free()
}

// rowDotsOnTiles is RowDots on tile units: the diagonal of a product.
func rowDotsOnTiles(dst []float32, x, y Mat, n int) {
	s := scratches.Get().(*scratch)
	s.a = grow(s.a, stripFloats(n))
	s.row = grow(s.row, stripHeight*limbWidth)
	for i := 0; i < len(dst); i += stripHeight {
		rows := min(stripHeight, len(dst)-i)
		strip := packStrip(s.a, x.from(i, 0), rows, n, s)
		s.limbs.reserve(n, rows)
		s.limbs.fill(y.from(i, 0).T(), n, 0, 0, rows)
		multiplyLimbs(RowMajor(s.row, limbWidth), rows, rows, strip, s.limbs.panels, 0, n, startZero, nil, sides{}, nil, s)
		for k := range rows {
			dst[i+k] = s.row[k*limbWidth+k]
		}
	}
	s.free()
}

// recomputeTiny recomputes, with vectors, the elements of some rows and columns of C that are close
// to 0.
func (p *Product) recomputeTiny(i, rows, j, cols int) {
	c := p.C.from(i, j)
	if p.Accumulate || !HasTiny(c.Data, c.Row, rows, cols) {
		return
	}
	part := p.part(i, rows, j, cols)
	part.C, part.Tiles = RowMajor(make([]float32, rows*cols), cols), false
	s := scratches.Get().(*scratch)
	part.compute(s)
	s.free()
	ReplaceTiny(c.Data, c.Row, part.C.Data, cols, rows, cols)
}

// HasTiny reports whether some rows have an element that is not 0 but so small that products on
// tile units may have lost digits of it.
func HasTiny(x []float32, stride, rows, cols int) bool {
	return rows > 0 && cols > 0 && amxTinyAMX(&x[0], 4*stride, rows, cols)
}
