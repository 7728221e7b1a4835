package simd

import (
	"sync"

	"github.com/attn-go/attn/internal/par"
)

// Sizes, in elements, of the blocks that a product is split into. A block of rowBlock rows of A and
// highDepth steps takes a seventh of a second-level cache of 2 MiB, and the panels of B stream
// through the cache one after the other. Smaller blocks would fit in the first level, but C would
// be read and written more often, and kernels prefetch panels anyway. With few rows, each panel is
// used only once, and shorter panels are faster.
const (
	rowBlock   = 96
	colBlock   = 1024
	depthBlock = 512
	highDepth  = 768 // of products with more than rowBlock rows
)

// A multiplication is a call of Multiply in progress. It is pooled together with its function
// values, so that passing them to par.For allocates nothing.
type multiplication struct {
	all    Product
	one    Product // a product of all
	sparse []bool  // of each product: whether zeros need care

	group            // of the current loop
	a, b  sharedCopy // for the pieces of a loop

	products, pieces func(lo, hi int)
}

// A group is what a loop computes: some products, rows, columns and steps of k.
type group struct {
	first, count           int // products
	i0, i1, j0, j1, k0, k1 int
	cut                    Cut
}

var multiplications = sync.Pool{New: func() any {
	m := new(multiplication)
	m.products, m.pieces = m.doProducts, m.doPieces
	m.a.pack, m.b.pack = m.packA, m.packB
	return m
}}

func newMultiplication(p *Product) *multiplication {
	m := multiplications.Get().(*multiplication)
	m.all = *p
	m.all.Count = max(p.Count, 1)
	m.all.fold()
	m.all.turnColumn()
	return m
}

// free returns m to the pool, without the caller's slices, which it would keep alive.
func (m *multiplication) free() {
	m.all, m.one = Product{}, Product{}
	multiplications.Put(m)
}

// fold merges products that share B and whose rows are consecutive into a single product with more
// rows.
func (p *Product) fold() {
	if p.Count == 1 || p.StepB != 0 {
		return
	}
	if p.M == 1 {
		p.A.Row, p.C.Row = p.StepA, p.StepC
	}
	if p.StepA == p.M*p.A.Row && p.StepC == p.M*p.C.Row {
		p.M *= p.Count
		p.Count = 1
	}
}

// turnColumn transposes a product whose result is a column, because the kernels are made for rows:
// Cᵀ = Bᵀ·Aᵀ, with the same terms.
func (p *Product) turnColumn() {
	if p.N != 1 || p.M == 1 || p.C.Row != 1 || p.Bias != nil {
		return
	}
	p.M, p.N = 1, p.M
	p.A, p.B = p.B.T(), p.A.T()
	p.StepA, p.StepB = p.StepB, p.StepA
}

// product sets one to product i of p.
func (p *Product) product(one *Product, i int) {
	one.A.Data = p.A.Data[min(i*p.StepA, len(p.A.Data)):]
	one.B.Data = p.B.Data[min(i*p.StepB, len(p.B.Data)):]
	one.C.Data = p.C.Data[i*p.StepC:]
}

// run computes the products in one loop, unless the copies that its pieces share would be too large.
func (m *multiplication) run() {
	p := &m.all
	width := panelWidth()
	panels := (p.N + width - 1) / width
	cut := NewCut(p.Count, p.M, panels, width, max(p.K, 1), rowBlock)
	switch {
	case cut.Pieces == 1 || p.K == 0:
		m.doProducts(0, p.Count)
		return
	case cut.Whole > 0:
		par.For(p.Count, cut.Whole, m.products)
		return
	}
	m.findSparse()
	direct := readsDirectly(p)
	m.b.on = cut.rowParts > 1 && !direct
	m.a.on = cut.panelParts > 1 && (m.b.on || direct) && copiesA(p)
	products, rows, cols, depth := p.Count, p.M, p.N, p.K
	copied := 0 // floats of the larger copy
	if m.a.on {
		copied = rows * depth
	}
	if m.b.on {
		copied = max(copied, panels*width*depth)
	}
	limit := copyLimit
	if par.Threads() == 1 { // nobody waits at the end of a loop, and less memory stays in a nearer cache
		limit = min(limit, colBlock*highDepth)
	}
	whole := copied*products <= limit
	switch {
	case whole:
	case copied <= limit:
		products = equalStep(products, limit/copied)
	default:
		products = 1
		step := p.depthStep(highDepth)
		depth = min(depth, max(1, limit/(copied/depth)/step)*step)
		if m.a.on {
			rows = equalStep(rows, max(1, limit/depth))
		}
		if m.b.on {
			cols = width * equalStep(panels, max(1, limit/(width*depth)))
		}
	}
	for n := 0; n < p.Count; n += products {
		for i := 0; i < p.M; i += rows {
			for j := 0; j < p.N; j += cols {
				for k := 0; k < p.K; k += depth {
					m.group = group{n, min(products, p.Count-n), i, min(i+rows, p.M), j, min(j+cols, p.N), k, min(k+depth, p.K), cut}
					m.loop(whole)
				}
			}
		}
	}
}

// loop computes a group. One that is not everything is divided anew.
func (m *multiplication) loop(whole bool) {
	g := &m.group
	if !whole {
		g.cut = divided(g.count, g.i1-g.i0, g.panels(), panelWidth(), g.k1-g.k0, rowBlock)
	}
	if m.a.on {
		m.a.reserve(g.count*g.sizeA(), g.count*g.cut.rowParts*g.copySteps())
	}
	if m.b.on {
		m.b.reserve(g.count*g.sizeB(), g.count*g.panels()*g.copySteps())
	}
	par.For(g.cut.Pieces, 1, m.pieces)
}

// findSparse sets m.sparse.
func (m *multiplication) findSparse() {
	m.sparse = m.sparse[:0]
	if !m.all.Sparse {
		return
	}
	m.one = m.all
	for i := range m.all.Count {
		m.all.product(&m.one, i)
		m.sparse = append(m.sparse, m.one.careful())
	}
}

// doPieces computes pieces lo to hi of the group.
func (m *multiplication) doPieces(lo, hi int) {
	par.Check(m.all.Context)
	s := scratches.Get().(*scratch)
	for n := lo; n < hi; n++ {
		s.one = m.all
		m.piece(n, &s.one, s)
	}
	s.one = Product{}
	s.free()
}

// piece computes piece n of the group. p is a copy of m.all.
func (m *multiplication) piece(n int, p *Product, s *scratch) {
	g := &m.group
	at, i0, i1, j0, j1 := g.cut.Piece(n)
	m.all.product(p, g.first+at)
	sparse := len(m.sparse) > 0 && m.sparse[g.first+at]
	if !sparse {
		if m.a.on {
			row := g.cut.rowPart(n)
			m.a.prepare(row*g.copySteps(), (row+1)*g.copySteps())
		}
		if m.b.on {
			panel := at * g.panels()
			m.b.prepare((panel+j0)*g.copySteps(), (panel+j1)*g.copySteps())
		}
	}
	i0, i1, j0, j1 = g.i0+i0, g.i0+i1, g.j0+j0*panelWidth(), min(g.j0+j1*panelWidth(), g.j1)
	switch {
	case sparse:
		if *p = p.part(i0, i1-i0, j0, j1-j0); g.k0 == 0 {
			sparseRows(p, 0, p.M, s)
		}
		return
	case !m.a.on && !m.b.on:
		*p = p.part(i0, i1-i0, j0, j1-j0)
		lowProduct(p, 0, p.N, s)
		return
	}
	step, b := p.depthStep(highDepth), &s.block
	for k0 := g.k0; k0 < g.k1; k0 += step {
		k1 := min(k0+step, g.k1)
		var a Mat
		if m.a.on {
			a = RowMajor(m.a.mem[at*g.sizeA():], g.strideA()).from(i0-g.i0, k0-g.k0)
		} else {
			a = blockOfA(p, i0, i1, j1-j0, k0, k1, s)
		}
		if m.b.on {
			g.shareB(b, m.b.mem[at*g.sizeB():], k0, k1, p.pairs)
		} else {
			b.pack(p, j0, j1, k0, k1, &s.b) // reads B directly
		}
		block(p, a, i0, i1, j0, j1, k0, k1, b)
	}
}

// doProducts computes products lo to hi, one after the other.
func (m *multiplication) doProducts(lo, hi int) {
	s := scratches.Get().(*scratch)
	s.one = m.all
	for i := lo; i < hi; i++ {
		par.Check(s.one.Context)
		m.all.product(&s.one, i)
		s.one.compute(s)
	}
	s.one = Product{}
	s.free()
}

// compute computes a product on the calling goroutine.
func (p *Product) compute(s *scratch) {
	switch {
	case p.careful():
		sparseRows(p, 0, p.M, s)
	case p.M <= rowBlock:
		lowProduct(p, 0, p.N, s)
	default:
		highProduct(p, s)
	}
}

// equalStep splits n into equal steps of at most limit, and returns the step.
func equalStep(n, limit int) int {
	if n == 0 {
		return 1
	}
	steps := (n + limit - 1) / limit
	return (n + steps - 1) / steps
}

// depthStep is equalStep for the sum of p: a step consists of whole blocks.
func (p *Product) depthStep(limit int) int {
	if !p.Blocks {
		return equalStep(p.K, limit)
	}
	return blockStep(p.K, limit)
}

// blockStep is equalStep for steps that consist of whole blocks of the sum.
func blockStep(depth, limit int) int {
	block := sumBlock(depth)
	return block * equalStep((depth+block-1)/block, limit/block)
}

// lowProduct computes columns j0 to j1 of a product with at most rowBlock rows. Each panel is used
// as soon as it is packed.
func lowProduct(p *Product, j0, j1 int, s *scratch) {
	if !p.pairs && singleRow(p, j0, j1, s) {
		return
	}
	step, width, b := p.depthStep(depthBlock), panelWidth(), &s.block
	for k0 := 0; k0 == 0 || k0 < p.K; k0 += step {
		k1 := min(k0+step, p.K)
		a := blockOfA(p, 0, p.M, j1-j0, k0, k1, s)
		if readsDirectly(p) {
			b.pack(p, j0, j1, k0, k1, &s.b)
			block(p, a, 0, p.M, j0, j1, k0, k1, b)
			continue
		}
		for j := j0; j < j1; j += width {
			b.pack(p, j, min(j+width, j1), k0, k1, &s.b)
			b.packPanels(0, 1)
			block(p, a, 0, p.M, j, min(j+width, j1), k0, k1, b)
		}
	}
}

// highProduct computes a product with many rows on the calling goroutine.
func highProduct(p *Product, s *scratch) {
	step, b := p.depthStep(highDepth), &s.block
	for j0 := 0; j0 < p.N; j0 += colBlock {
		j1 := min(j0+colBlock, p.N)
		for k0 := 0; k0 == 0 || k0 < p.K; k0 += step {
			k1 := min(k0+step, p.K)
			b.pack(p, j0, j1, k0, k1, &s.b)
			b.packPanels(0, b.count())
			for i := 0; i < p.M; i += rowBlock {
				par.Check(p.Context)
				i1 := min(i+rowBlock, p.M)
				a := blockOfA(p, i, i1, j1-j0, k0, k1, s)
				block(p, a, i, i1, j0, j1, k0, k1, b)
			}
		}
	}
}
