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

// taskWork returns the approximate number of multiplications for a task: a few microseconds' worth.
// Larger products are split into tasks.
func taskWork(tiles bool) int {
	switch {
	case tiles:
		return 1 << 20
	case active == generic:
		return 1 << 14
	}
	return 1 << 18
}

// A multiplication is a call of Multiply in progress. It is pooled together with its function
// values, so that passing them to par.For allocates nothing.
type multiplication struct {
	all Product
	one Product // product i of all, while it is being computed in tasks

	// The current part: steps k0 to k1 of the columns from j0 to j1, in blocks of rows by cols.
	// There are colBlocks blocks side by side.
	j0, j1, k0, k1        int
	rows, cols, colBlocks int
	packed                blockOfB
	mem                   []float32 // of packed

	products, columns, blocks, pack, sparse func(lo, hi int)

	tiling tiling
}

var multiplications = sync.Pool{New: func() any {
	m := new(multiplication)
	m.products, m.columns, m.blocks = m.doProducts, m.doColumns, m.doBlocks
	m.pack, m.sparse = m.doPack, m.doSparse
	return m
}}

func newMultiplication(p *Product) *multiplication {
	m := multiplications.Get().(*multiplication)
	m.all = *p
	m.all.Count = max(p.Count, 1)
	m.all.Tiles = p.Tiles && p.K > 0
	m.all.fold()
	m.all.turnColumn()
	return m
}

// free returns m to the pool, without the caller's slices, which it would keep alive.
func (m *multiplication) free() {
	m.all, m.one, m.packed = Product{}, Product{}, blockOfB{}
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
	if p.Tiles || p.N != 1 || p.M == 1 || p.C.Row != 1 || p.Bias != nil {
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

func (m *multiplication) run() {
	p := &m.all
	if p.Tiles && p.Count == 1 && p.isFew() {
		m.one = m.all
		m.runFew()
		return
	}
	work, task := p.M*p.N*max(p.K, 1), taskWork(p.Tiles)
	if work < 2*task/p.Count {
		m.doProducts(0, p.Count) // too small to share
		return
	}
	if p.Count > 1 && (work < 4*task || p.Count >= 4*par.Threads()) {
		par.For(p.Count, max(1, task/work), m.products)
		return
	}
	m.one = m.all
	for i := range p.Count {
		p.product(&m.one, i)
		switch {
		case p.Tiles:
			m.runTiles()
		case m.one.careful():
			par.For(p.M, max(1, task/(p.K*p.N)), m.sparse)
		case p.M <= rowBlock:
			width := panelWidth()
			par.For((p.N+width-1)/width, max(1, task/(p.M*width*max(p.K, 1))), m.columns)
		default:
			m.runBlocks()
		}
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
	case p.Tiles:
		p.onTiles(s)
	case p.careful():
		sparseRows(p, 0, p.M, s)
	case p.M <= rowBlock:
		lowProduct(p, 0, p.N, s)
	default:
		highProduct(p, s)
	}
}

// doSparse computes rows lo to hi.
func (m *multiplication) doSparse(lo, hi int) {
	par.Check(m.all.Context)
	s := scratches.Get().(*scratch)
	sparseRows(&m.one, lo, hi, s)
	s.free()
}

// doColumns computes all rows of panels lo to hi.
func (m *multiplication) doColumns(lo, hi int) {
	par.Check(m.all.Context)
	s := scratches.Get().(*scratch)
	width := panelWidth()
	lowProduct(&m.one, lo*width, min(hi*width, m.one.N), s)
	s.free()
}

// depthStep splits depth into equal steps of at most limit, and returns the step.
func depthStep(depth, limit int) int {
	if depth == 0 {
		return 1
	}
	n := (depth + limit - 1) / limit
	return (depth + n - 1) / n
}

// depthStep is depthStep for the sum of p: a step consists of whole blocks.
func (p *Product) depthStep(limit int) int {
	if !p.Blocks {
		return depthStep(p.K, limit)
	}
	return blockStep(p.K, limit)
}

// blockStep is depthStep for steps that consist of whole blocks of the sum.
func blockStep(depth, limit int) int {
	block := sumBlock(depth)
	return block * depthStep((depth+block-1)/block, limit/block)
}

// lowProduct computes columns j0 to j1 of a product with at most rowBlock rows. Each panel is used
// as soon as it is packed.
func lowProduct(p *Product, j0, j1 int, s *scratch) {
	if singleRow(p, j0, j1, s) {
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

// runBlocks does the same as highProduct on all processors: they first pack a block of B, then
// share the blocks of C that need it.
func (m *multiplication) runBlocks() {
	p := &m.one
	step, task := p.depthStep(highDepth), taskWork(false)
	for m.j0 = 0; m.j0 < p.N; m.j0 += colBlock {
		m.j1 = min(m.j0+colBlock, p.N)
		for m.k0 = 0; m.k0 == 0 || m.k0 < p.K; m.k0 += step {
			m.k1 = min(m.k0+step, p.K)
			m.packed.pack(p, m.j0, m.j1, m.k0, m.k1, &m.mem)
			if m.packed.copied {
				par.For(m.packed.count(), max(1, task/16/m.packed.step), m.pack)
			}
			// Make blocks as wide as possible while there are enough to share evenly, but not too
			// small to be worth it.
			rowBlocks := (p.M + rowBlock - 1) / rowBlock
			m.rows = roundUp((p.M+rowBlocks-1)/rowBlocks, 6) // full tiles
			rowBlocks = (p.M + m.rows - 1) / m.rows
			panels := (m.j1 - m.j0 + m.packed.width - 1) / m.packed.width
			even := (8*par.Threads() + rowBlocks - 1) / rowBlocks
			worth := m.rows * (m.j1 - m.j0) * (m.k1 - m.k0) / task
			m.colBlocks = max(1, min(panels, even, worth))
			m.cols = (panels + m.colBlocks - 1) / m.colBlocks * m.packed.width
			m.colBlocks = (m.j1 - m.j0 + m.cols - 1) / m.cols
			par.For(rowBlocks*m.colBlocks, 1, m.blocks)
		}
	}
}

func (m *multiplication) doPack(lo, hi int) { m.packed.packPanels(lo, hi) }

// doBlocks computes blocks lo to hi.
func (m *multiplication) doBlocks(lo, hi int) {
	par.Check(m.all.Context)
	s := scratches.Get().(*scratch)
	p := &m.one
	for t := lo; t < hi; t++ {
		i0, j0 := t/m.colBlocks*m.rows, m.j0+t%m.colBlocks*m.cols
		i1, j1 := min(i0+m.rows, p.M), min(j0+m.cols, m.j1)
		a := blockOfA(p, i0, i1, j1-j0, m.k0, m.k1, s)
		block(p, a, i0, i1, j0, j1, m.k0, m.k1, &m.packed)
	}
	s.free()
}
