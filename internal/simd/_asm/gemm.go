package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Values of tileArg("start").
const (
	startZero = iota
	startBias
	startC
	startAdd
)

// maxRows returns the height of the largest tile. On AVX-512, six rows by four vectors are 24 sums,
// which leaves enough registers for four vectors of B; on AVX2 six by two are 12 of 16 registers.
// Panels of one vector use twelve rows, because with only six additions in flight the multipliers
// would wait.
func maxRows(vectors int) int {
	if vectors == 1 {
		return 12
	}
	return 6
}

// gemm writes the kernel for panels of the given number of vectors. Loading with a mask costs
// nothing on AVX-512. On AVX2 it does, so full panels have separate kernels there.
func gemm(vectors int) func(s isa) {
	return func(s isa) { s.gemm(vectors, s.lanes == 16) }
}

// gemmMasked writes the kernel for panels whose last vector is not full.
func gemmMasked(vectors int) func(s isa) {
	return func(s isa) { s.gemm(vectors, true) }
}

// A panel is the state that the code of all tiles of a panel shares.
type panel struct {
	s       isa
	vectors int
	last    *mask // of the last vector
	stored  *stored

	args, a, aRow, aRow3, aRow5, aCol, b, bRow, c, cRow, tiles reg.GPVirtual

	next reg.GPVirtual // the part of the next panel to prefetch, if ahead
}

// gemmStored writes the kernel for whole panels of stored numbers, as in a KV cache. They are
// converted to floats in registers: they are read only once, so copying them would cost more than
// the products.
func gemmStored(n stored) func(s isa) {
	return func(s isa) { s.kernel(s.lanes/4, s.lanes == 16, &n) }
}

// gemm writes the kernel for floats.
func (s isa) gemm(vectors int, masked bool) { s.kernel(vectors, masked, nil) }

// kernel writes the kernel that computes a column of tiles, one below the other, for floats or for
// stored numbers. The tiles are the given number of vectors wide. If masked, the last vector may be
// incomplete.
func (s isa) kernel(vectors int, masked bool, n *stored) {
	p := panel{s: s, vectors: vectors, args: pointer("t"), stored: n}
	field := fields(p.args, tileArg)
	if masked {
		m := s.firstLanes(field("last"))
		p.last = &m
	}
	p.a, p.aRow, p.aCol = field("a"), field("aRow"), field("aCol")
	p.b, p.bRow = field("b"), field("bRow")
	p.c, p.cRow = field("c"), field("cRow")
	p.tiles = field("tiles")
	if p.ahead() {
		p.next = field("next")
	}
	p.aRow3, p.aRow5 = GP64(), GP64()
	LEAQ(Mem{Base: p.aRow, Index: p.aRow, Scale: 2}, p.aRow3)
	LEAQ(Mem{Base: p.aRow, Index: p.aRow, Scale: 4}, p.aRow5)
	for rows := maxRows(vectors); rows > 1; rows-- {
		next := label("rows")
		CMPQ(Mem{Base: p.args, Disp: tileArg("rows")}, U8(rows))
		JNE(LabelRef(next))
		p.column(rows)
		Label(next)
	}
	p.column(1)
}

// ahead reports whether the kernel prefetches: a panel of four vectors of AVX-512.
func (p *panel) ahead() bool { return p.vectors == 4 && p.stored == nil }

// column writes the loop over tiles of the given number of rows.
func (p *panel) column(rows int) {
	repeat("tile", p.tiles, func() {
		p.tile(rows)
		for range rows {
			ADDQ(p.aRow, p.a)
		}
	})
	p.s.end()
}

// maskOf returns the mask of vector v of a row.
func (p *panel) maskOf(v int) *mask {
	if v == p.vectors-1 {
		return p.last
	}
	return nil
}

// rowOfA returns the address of the element of A that is r rows below a. From the sixth row on, it
// is relative to another base, a6, six rows down.
func (p *panel) rowOfA(a, a6 reg.GPVirtual, r int) Mem {
	m := Mem{Base: a}
	if r >= 6 {
		m.Base = a6
	}
	switch r % 6 {
	case 1, 2, 4:
		m.Index, m.Scale = p.aRow, uint8(r%6)
	case 3:
		m.Index, m.Scale = p.aRow3, 1
	case 5:
		m.Index, m.Scale = p.aRow5, 1
	}
	return m
}

// tile writes the code for one tile and moves c below it.
func (p *panel) tile(rows int) {
	s := p.s
	acc := make([][]reg.VecVirtual, rows)
	for r := range acc {
		acc[r] = s.vecs(p.vectors)
	}
	p.start(acc)

	a, a6, b, depth := GP64(), GP64(), GP64(), GP64()
	loop, done := label("step"), label("sums")
	MOVQ(p.a, a)
	if rows > 6 {
		LEAQ(Mem{Base: a, Index: p.aRow5, Scale: 1}, a6)
		ADDQ(p.aRow, a6)
	}
	MOVQ(p.b, b)
	MOVQ(Mem{Base: p.args, Disp: tileArg("depth")}, depth)
	TESTQ(depth, depth)
	JZ(LabelRef(done))
	Label(loop)
	row := s.vecs(p.vectors)
	for v := range row {
		if p.stored != nil {
			s.widen(*p.stored, Mem{Base: b, Disp: v * s.lanes * p.stored.bytes}, row[v])
			continue
		}
		s.load(Mem{Base: b, Disp: v * s.bytes()}, p.maskOf(v), row[v])
	}
	if p.stored != nil {
		// The numbers stream through once. The processor's hardware prefetching ends at each page.
		for at := 0; at < s.lanes*p.vectors*p.stored.bytes; at += 64 {
			PREFETCHT0(Mem{Base: b, Disp: 4096 + at})
		}
	} else if p.ahead() && rows >= 4 {
		// A panel of B is longer than the first-level cache, and the processor alone does not
		// prefetch far enough ahead. Smaller tiles have no free load slots for it.
		for v := range row {
			PREFETCHT0(Mem{Base: b, Index: p.bRow, Scale: 8, Disp: v * s.bytes()})
		}
		// The processor does not prefetch the next panel either; each tile prefetches a part of it.
		PREFETCHT1(Mem{Base: p.next})
		ADDQ(Mem{Base: p.args, Disp: tileArg("nextStep")}, p.next)
	}
	for r := range acc {
		x := s.vec()
		VBROADCASTSS(p.rowOfA(a, a6, r), x)
		for v := range row {
			VFMADD231PS(x, row[v], acc[r][v])
		}
	}
	ADDQ(p.aCol, a)
	if rows > 6 {
		ADDQ(p.aCol, a6)
	}
	ADDQ(p.bRow, b)
	DECQ(depth)
	JNZ(LabelRef(loop))
	Label(done)

	p.finish(acc)
}

// finish writes the code that stores the sums, or adds them to C if start says so, and moves c
// below the tile.
func (p *panel) finish(acc [][]reg.VecVirtual) {
	s := p.s
	add, end := label("add"), label("end")
	store := func(addend func(v int, c Mem) reg.VecVirtual) {
		for r := range acc {
			for v, sum := range acc[r] {
				c := Mem{Base: p.c, Disp: v * s.bytes()}
				VADDPS(addend(v, c), sum, sum)
				s.store(sum, p.maskOf(v), c)
			}
			ADDQ(p.cRow, p.c)
		}
	}
	CMPQ(Mem{Base: p.args, Disp: tileArg("start")}, U8(startAdd))
	JEQ(LabelRef(add))
	zero := s.zero() // turns -0 into 0
	store(func(int, Mem) reg.VecVirtual { return zero })
	JMP(LabelRef(end))
	Label(add)
	store(func(v int, c Mem) reg.VecVirtual {
		before := s.vec()
		s.load(c, p.maskOf(v), before)
		return before
	})
	Label(end)
}

// start writes the code that initialises the sums.
func (p *panel) start(acc [][]reg.VecVirtual) {
	s := p.s
	notC, notBias, done := label("notC"), label("notBias"), label("begin")
	CMPQ(Mem{Base: p.args, Disp: tileArg("start")}, U8(startC))
	JNE(LabelRef(notC))
	c := GP64()
	MOVQ(p.c, c)
	for r := range acc {
		for v := range acc[r] {
			s.load(Mem{Base: c, Disp: v * s.bytes()}, p.maskOf(v), acc[r][v])
		}
		if r < len(acc)-1 {
			ADDQ(p.cRow, c)
		}
	}
	JMP(LabelRef(done))
	Label(notC)
	CMPQ(Mem{Base: p.args, Disp: tileArg("start")}, U8(startBias))
	JNE(LabelRef(notBias))
	bias := GP64()
	MOVQ(Mem{Base: p.args, Disp: tileArg("bias")}, bias)
	for v := range p.vectors {
		s.load(Mem{Base: bias, Disp: v * s.bytes()}, p.maskOf(v), acc[0][v])
		for _, row := range acc[1:] {
			VMOVUPS(acc[0][v], row[v])
		}
	}
	JMP(LabelRef(done))
	Label(notBias)
	for _, row := range acc {
		for _, v := range row {
			s.clear(v)
		}
	}
	Label(done)
}
