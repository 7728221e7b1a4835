package simd

import (
	"sync"
	"sync/atomic"

	"github.com/attn-go/attn/internal/par"
)

// scratch is memory for packed matrices, for one task.
type scratch struct {
	a, b, row []float32
	half      []uint16
	block     blockOfB
	tile      []float32
	one       Product
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// free returns s to the pool, without the caller's slices.
func (s *scratch) free() {
	s.block.data, s.block.from.Data = nil, nil
	scratches.Put(s)
}

// grow returns a slice of n elements: s if its capacity suffices.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

func fill[T any](x []T, v T) {
	for i := range x {
		x[i] = v
	}
}

// blockOfB is a block of B as the kernels read it: split into panels of width columns; the last may
// be narrower. Row k of panel i starts at data[i*step+k*row]. It is either a copy, where each panel
// is contiguous and the last is padded with undefined values, or B itself.
type blockOfB struct {
	data      []float32
	step, row int
	width     int
	copied    bool
	pairs     bool // of bfloat16 in the places of floats
	col       int  // the column of B at which the first panel starts

	from       Mat // the block of B that was copied
	rows, cols int
}

// at returns the place of row k of a column.
func (b *blockOfB) at(k, j int) int { return j/b.width*b.step + k*b.row + j%b.width }

func (b *blockOfB) count() int { return (b.cols + b.width - 1) / b.width }

// pack prepares columns j0 to j1 of rows k0 to k1 of B. If they must be copied, pack takes the
// memory from mem, and the caller must call packPanels next.
func (b *blockOfB) pack(p *Product, j0, j1, k0, k1 int, mem *[]float32) {
	b.width, b.col, b.rows, b.cols, b.pairs = panelWidth(), j0, k1-k0, j1-j0, p.pairs
	b.copied = false
	if b.rows == 0 {
		return
	}
	b.from = p.B.from(k0, j0)
	if readsDirectly(p) {
		b.data, b.step, b.row = b.from.Data, b.width, b.from.Row
		return
	}
	b.copied = true
	b.row, b.step = b.width, b.width*b.rows
	*mem = grow(*mem, b.count()*b.step)
	b.data = *mem
}

// packPanels copies panels lo to hi.
func (b *blockOfB) packPanels(lo, hi int) {
	if !b.copied {
		return
	}
	for i := lo; i < hi; i++ {
		dst := b.data[i*b.step:][:b.step]
		cols := min(b.width, b.cols-i*b.width)
		packPanel(dst, b.from.from(0, i*b.width), b.rows, cols, b.width)
	}
}

// copyLimit is the largest number of floats that pieces share of A or of B: 4 MiB. Only tests change it.
var copyLimit = 1 << 20

// copyStep is the number of steps of k that are copied at a time. It is a multiple of a vector.
const copyStep = 128

// A sharedCopy is A or B in the order in which kernels read it, for all pieces of a loop. It is copied in parts, each
// by the first piece that finds it missing.
type sharedCopy struct {
	on    bool
	mem   []float32
	state []atomic.Uint32 // of each part
	pack  func(part int)
}

const (
	partMissing = iota
	partBegun
	partDone
)

// reserve allocates memory for a copy, all of it missing.
func (c *sharedCopy) reserve(floats, parts int) {
	c.mem, c.state = grow(c.mem, floats), grow(c.state, parts)
	for i := range c.state {
		c.state[i].Store(partMissing)
	}
}

// prepare returns when parts lo to hi are done. It copies those that are missing and then waits for those that other
// threads have begun. They finish them without waiting for anything.
func (c *sharedCopy) prepare(lo, hi int) {
	for i := lo; i < hi; i++ {
		if s := &c.state[i]; s.Load() == partMissing && s.CompareAndSwap(partMissing, partBegun) {
			c.make(i)
		}
	}
	for i := lo; i < hi; i++ {
		par.Await(func() bool { return c.state[i].Load() == partDone })
	}
}

// make copies a part. If this panics, the part counts as done: the loop panics too, and nobody reads its results.
func (c *sharedCopy) make(i int) {
	defer c.state[i].Store(partDone)
	c.pack(i)
}

func (g *group) panels() int { return (g.j1 - g.j0 + panelWidth() - 1) / panelWidth() }

func (g *group) copySteps() int { return (g.k1 - g.k0 + copyStep - 1) / copyStep }

// strideA returns the distance between rows of A in a copy: an odd number of cache lines, so that not all rows are in
// the same set of a cache.
func (g *group) strideA() int { return roundUp(g.k1-g.k0, 32) + 16 }

// sizeA and sizeB return the size of the copy of a product.
func (g *group) sizeA() int { return (g.i1 - g.i0) * g.strideA() }
func (g *group) sizeB() int { return g.panels() * panelWidth() * (g.k1 - g.k0) }

// packA copies a part of A: some steps of the rows of a piece.
func (m *multiplication) packA(part int) {
	g, stride := &m.group, m.group.strideA()
	row, k := part/g.copySteps(), part%g.copySteps()*copyStep
	at := row / g.cut.rowParts
	i0, i1 := g.cut.partRows(row)
	a := m.all.A
	a.Data = a.Data[(g.first+at)*m.all.StepA:]
	packPanel(m.a.mem[at*g.sizeA()+i0*stride+k:], a.from(g.i0+i0, g.k0+k), i1-i0, min(copyStep, g.k1-g.k0-k), stride)
}

// packB copies a part of B: some steps of a panel.
func (m *multiplication) packB(part int) {
	g, width := &m.group, panelWidth()
	panel, k := part/g.copySteps(), part%g.copySteps()*copyStep
	at, j := panel/g.panels(), panel%g.panels()*width
	rows := min(copyStep, g.k1-g.k0-k)
	b := m.all.B
	b.Data = b.Data[(g.first+at)*m.all.StepB:]
	dst := m.b.mem[at*g.sizeB()+(j*(g.k1-g.k0)+k*width):][:rows*width]
	packPanel(dst, b.from(g.k0+k, g.j0+j), rows, min(width, g.j1-g.j0-j), width)
}

// shareB sets b to rows k0 to k1 of a copy of B.
func (g *group) shareB(b *blockOfB, mem []float32, k0, k1 int, pairs bool) {
	width := panelWidth()
	*b = blockOfB{
		data: mem[(k0-g.k0)*width:], width: width, row: width, step: width * (g.k1 - g.k0), copied: true,
		col: g.j0, rows: k1 - k0, cols: g.j1 - g.j0, pairs: pairs,
	}
}

// copiesA reports whether pieces share a copy of A, under the conditions of blockOfAAsm. Compiled Go copies A for each
// piece.
func copiesA(p *Product) bool {
	return active != generic && p.A.Col > 128 && p.A.Row == 1 && p.M >= 8 && p.N >= 64 && p.K >= 8
}

// sparseRows computes rows i0 to i1 of p one step of k at a time, and skips terms where A or B is
// 0. It is for operands that are not finite.
func sparseRows(p *Product, i0, i1 int, s *scratch) {
	for i := i0; i < i1; i++ {
		p.begin(i, 0, p.N)
		c := p.C.Data[i*p.C.Row:][:p.N]
		chain := p.K
		if p.Blocks {
			chain = sumBlock(p.K)
		}
		sums := c
		for k := range p.K {
			if k > 0 && k%chain == 0 {
				if k > chain {
					Add(c, c, sums)
				}
				s.a = grow(s.a, p.N)
				sums = s.a
				clear(sums)
			}
			a := p.A.Data[i*p.A.Row+k*p.A.Col]
			if a == 0 {
				continue
			}
			s.row = grow(s.row, p.N)
			b := contiguous(s.row, p.B.from(k, 0))
			if a-a == 0 { // finite: its product with zero is zero
				Axpy(a, b, sums)
				continue
			}
			for j, v := range b {
				if v != 0 {
					sums[j] += float32(a * v)
				}
			}
		}
		if p.K > chain {
			Add(c, c, sums)
		}
		for j := range c {
			c[j] += 0
		}
	}
}

// careful reports whether p.Sparse makes a difference: whether an operand is not finite.
func (p *Product) careful() bool {
	return p.Sparse && !(p.A.Finite(p.M, p.K) && p.B.Finite(p.K, p.N))
}

// Finite reports whether all elements of a matrix of the given size are finite.
func (m Mat) Finite(rows, cols int) bool {
	if m.Col != 1 {
		m, rows, cols = m.T(), cols, rows
	}
	switch {
	case rows == 0 || cols == 0:
		return true
	case m.Col == 1 && m.Row == cols:
		return Finite(m.Data[:rows*cols])
	}
	for i := range rows {
		row := m.Data[i*m.Row:]
		if m.Col == 1 {
			if !Finite(row[:cols]) {
				return false
			}
			continue
		}
		for j := range cols {
			if v := row[j*m.Col]; v-v != 0 {
				return false
			}
		}
	}
	return true
}
