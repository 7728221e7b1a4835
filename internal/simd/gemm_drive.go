package simd

import (
	"runtime"
	"sync"

	"github.com/attn-go/attn/internal/par"
)

// Sizes of the blocks that a product is cut into, in elements. A panel of
// depthBlock rows of B fits into the first-level cache or streams from the
// second, which the block of B as a whole fits into.
const (
	rowBlock   = 60
	colBlock   = 1024
	depthBlock = 256
)

// Numbers of multiplications that decide how a product is spread.
const (
	taskWork  = 1 << 18 // about what a task should have: some 10 µs with AVX-512
	smallWork = 1 << 20 // a product of less is not cut into tasks if there are others
)

// A multiplication is a call of Multiply in progress. It is kept in a pool
// with its function values, so that handing them to par.For allocates nothing.
type multiplication struct {
	Product
	chunk int // products per task

	// The block that is being computed, when one product is cut into tasks.
	base       Product // this product alone
	j0, j1     int
	k0, k1     int
	packed     panels
	pack       scratch
	rowsOf     int
	colsOf     int
	colBlocks  int
	sparse     bool
	runMany    func(lo, hi int)
	packPanels func(lo, hi int)
	runBlocks  func(lo, hi int)
}

var multiplications = sync.Pool{New: func() any {
	m := new(multiplication)
	m.runMany = m.many
	m.packPanels = m.packSome
	m.runBlocks = m.blocks
	return m
}}

func newMultiplication(p *Product) *multiplication {
	m := multiplications.Get().(*multiplication)
	m.Product = *p
	m.Count = max(p.Count, 1)
	m.fold()
	return m
}

// free hands m back without the caller's slices, which it would keep alive.
func (m *multiplication) free() {
	m.Product, m.base, m.packed = Product{}, Product{}, panels{}
	multiplications.Put(m)
}

// fold turns products that share B and whose rows continue one another into a
// single product with more rows.
func (m *multiplication) fold() {
	if m.Count == 1 || m.StepB != 0 {
		return
	}
	if m.M == 1 {
		m.A.Row, m.C.Row = m.StepA, m.StepC
	}
	if m.StepA == m.M*m.A.Row && m.StepC == m.M*m.C.Row {
		m.M *= m.Count
		m.Count = 1
	}
}

func (m *multiplication) run() {
	work := m.M * m.N * max(m.K, 1)
	if m.Count > 1 && (work < smallWork || m.Count >= 4*runtime.GOMAXPROCS(0)) {
		m.chunk = max(1, taskWork/work)
		par.For(m.Count, m.chunk, m.runMany)
		return
	}
	for i := range m.Count {
		m.setProduct(&m.base, i)
		if work < taskWork {
			runSerial(&m.base)
		} else {
			m.runParallel()
		}
	}
}

// setProduct sets p to product i alone.
func (m *multiplication) setProduct(p *Product, i int) {
	*p = m.Product
	p.A.Data = p.A.Data[min(i*m.StepA, len(p.A.Data)):]
	p.B.Data = p.B.Data[min(i*m.StepB, len(p.B.Data)):]
	p.C.Data = p.C.Data[min(i*m.StepC, len(p.C.Data)):]
}

// many computes products lo to hi, each on its own.
func (m *multiplication) many(lo, hi int) {
	for i := lo; i < hi; i++ {
		var p Product
		m.setProduct(&p, i)
		runSerial(&p)
	}
}

// runSerial computes one product on the calling goroutine.
func runSerial(p *Product) {
	s := scratches.Get().(*scratch)
	if p.Sparse && !p.finiteB() {
		sparseRows(p, 0, p.M, s)
		scratches.Put(s)
		return
	}
	for j0 := 0; j0 < p.N; j0 += colBlock {
		j1 := min(j0+colBlock, p.N)
		for k0 := 0; k0 == 0 || k0 < p.K; k0 += depthBlock {
			k1 := min(k0+depthBlock, p.K)
			b := pack(p, j0, j1, k0, k1, s)
			b.packPanels(0, b.count())
			for i0 := 0; i0 < p.M; i0 += rowBlock {
				block(p, i0, min(i0+rowBlock, p.M), j0, j1, k0, k1, &b, s)
			}
		}
	}
	scratches.Put(s)
}

// runParallel computes the product m.base, cut into tasks.
func (m *multiplication) runParallel() {
	p := &m.base
	if p.Sparse && !p.finiteB() {
		m.sparse = true
		m.rowsOf, m.colsOf, m.colBlocks = max(1, taskWork/(p.K*p.N+1)), p.N, 1
		m.j0, m.j1 = 0, p.N
		par.For(p.M, m.rowsOf, m.runBlocks)
		m.sparse = false
		return
	}
	// Few rows make few tasks: cut along the columns as well, with panels for
	// unit so that no panel is split.
	wide := 2 * colBlock
	for m.j0 = 0; m.j0 < p.N; m.j0 += wide {
		m.j1 = min(m.j0+wide, p.N)
		for m.k0 = 0; m.k0 == 0 || m.k0 < p.K; m.k0 += depthBlock {
			m.k1 = min(m.k0+depthBlock, p.K)
			m.packed = pack(p, m.j0, m.j1, m.k0, m.k1, &m.pack)
			if m.packed.copied {
				par.For(m.packed.count(), max(1, taskWork/8/(m.packed.width*depthBlock)), m.packPanels)
			}
			m.rowsOf = min(rowBlock, p.M)
			perCol := m.rowsOf * (m.k1 - m.k0 + 1)
			m.colsOf = max(1, taskWork/perCol/m.packed.width) * m.packed.width
			m.colBlocks = (m.j1 - m.j0 + m.colsOf - 1) / m.colsOf
			rowBlocks := (p.M + m.rowsOf - 1) / m.rowsOf
			par.For(rowBlocks*m.colBlocks, 1, m.runBlocks)
		}
	}
}

func (m *multiplication) packSome(lo, hi int) { m.packed.packPanels(lo, hi) }

// blocks computes blocks lo to hi of the grid of rowsOf rows by colsOf columns.
func (m *multiplication) blocks(lo, hi int) {
	s := scratches.Get().(*scratch)
	if m.sparse {
		sparseRows(&m.base, lo, hi, s)
	} else {
		for t := lo; t < hi; t++ {
			i, j := t/m.colBlocks*m.rowsOf, m.j0+t%m.colBlocks*m.colsOf
			block(&m.base, i, min(i+m.rowsOf, m.base.M), j, min(j+m.colsOf, m.j1), m.k0, m.k1, &m.packed, s)
		}
	}
	scratches.Put(s)
}

// finiteB reports whether all of B is finite.
func (p *Product) finiteB() bool {
	b, rows, cols := p.B, p.K, p.N
	if b.Col != 1 {
		b, rows, cols = b.T(), cols, rows
	}
	if rows == 0 || cols == 0 {
		return true
	}
	if b.Col == 1 && b.Row == cols {
		return Finite(b.Data[:rows*cols])
	}
	for i := range rows {
		row := b.Data[i*b.Row:]
		if b.Col == 1 {
			if !Finite(row[:cols]) {
				return false
			}
			continue
		}
		for j := range cols {
			if v := row[j*b.Col]; v-v != 0 {
				return false
			}
		}
	}
	return true
}
