package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// avxProduct is a product of tiles of up to six rows by four vectors on AVX-512: 24 sums, which leave
// enough registers for four vectors of B. On AVX2 six by two are 12 of 16 registers. Panels of one
// vector use twelve rows, because with only six additions in flight the multipliers would wait.
type avxProduct struct {
	avxProgram
	t *tiles

	a, aRow, aRow3, aRow5, aCol reg.GPVirtual
	next                        reg.GPVirtual // the part of the next panel to prefetch, if ahead
	rows                        int
}

func (s avxProgram) product(t *tiles) product {
	p := &avxProduct{avxProgram: s, t: t, a: base(t.a), aRow: base(t.aRow), aCol: base(t.aCol)}
	if p.ahead() {
		p.next = base(t.field("next"))
	}
	p.aRow3, p.aRow5 = GP64(), GP64()
	LEAQ(Mem{Base: p.aRow, Index: p.aRow, Scale: 2}, p.aRow3)
	LEAQ(Mem{Base: p.aRow, Index: p.aRow, Scale: 4}, p.aRow5)
	return p
}

// ahead reports whether the kernel prefetches: a panel of four vectors of AVX-512.
func (p *avxProduct) ahead() bool { return p.t.vectors == 4 && p.t.stored == nil }

func (p *avxProduct) begin(rows int) { p.rows = rows }

func (p *avxProduct) below() {
	for range p.rows {
		ADDQ(p.aRow, p.a)
	}
}

// rowOfA returns the address of the element of A that is r rows below a. From the sixth row on, it
// is relative to another base, a6, six rows down.
func (p *avxProduct) rowOfA(a, a6 reg.GPVirtual, r int) Mem {
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

func (p *avxProduct) steps(sums [][]vec) {
	t, rows, bRow := p.t, p.rows, base(p.t.bRow)
	a, a6, b, depth := GP64(), GP64(), GP64(), GP64()
	loop, done := label("step"), label("sums")
	MOVQ(p.a, a)
	if rows > 6 {
		LEAQ(Mem{Base: a, Index: p.aRow5, Scale: 1}, a6)
		ADDQ(p.aRow, a6)
	}
	MOVQ(base(t.b), b)
	MOVQ(mem(t.t).Offset(tileArg("depth")), depth)
	TESTQ(depth, depth)
	JZ(LabelRef(done))
	Label(loop)
	row := p.vecs(t.vectors)
	for v := range row {
		if t.stored != nil {
			p.widenAt(*t.stored, Mem{Base: b, Disp: v * p.lanes * t.stored.bytes}, row[v])
			continue
		}
		m, _ := t.part(v).(*mask)
		p.readAt(Mem{Base: b, Disp: v * p.bytes()}, m, row[v])
	}
	if t.stored != nil {
		// The numbers stream through once. The processor's hardware prefetching ends at each page.
		for at := 0; at < p.lanes*t.vectors*t.stored.bytes; at += 64 {
			PREFETCHT0(Mem{Base: b, Disp: 4096 + at})
		}
	} else if p.ahead() && rows >= 4 {
		// A panel of B is longer than the first-level cache, and the processor alone does not
		// prefetch far enough ahead. Smaller tiles have no free load slots for it.
		for v := range row {
			PREFETCHT0(Mem{Base: b, Index: bRow, Scale: 8, Disp: v * p.bytes()})
		}
		// The processor does not prefetch the next panel either; each tile prefetches a part of it.
		PREFETCHT1(Mem{Base: p.next})
		ADDQ(mem(t.t).Offset(tileArg("nextStep")), p.next)
	}
	// A vector of B serves all rows, and an element of A all vectors of its row. A broadcast from memory
	// takes a load only, and no unit that multiplies. The next addition to a sum is as many multiply-adds away
	// as there are sums, so that their latency is hidden in all but the lowest tiles.
	for r := range sums {
		x := p.reg()
		VBROADCASTSS(p.rowOfA(a, a6, r), x)
		for v := range row {
			if t.pairs {
				dotPairs(x, row[v], register(sums[r][v]))
				continue
			}
			VFMADD231PS(x, row[v], register(sums[r][v]))
		}
	}
	ADDQ(p.aCol, a)
	if rows > 6 {
		ADDQ(p.aCol, a6)
	}
	ADDQ(bRow, b)
	DECQ(depth)
	JNZ(LabelRef(loop))
	Label(done)
}
