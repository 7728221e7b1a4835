package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A cutter splits floats into limbs.
type cutter struct {
	s           avxProgram
	half, upper reg.VecVirtual // half of the last bit of a bfloat16, and the bits of a bfloat16
}

func (s avxProgram) cutter() cutter { return cutter{s, s.bitsReg(0x8000), s.bitsReg(0xffff0000)} }

// cut writes the limbs of x and y, pair by pair, to rows that are apart bytes apart. Numbers
// without limbs give a NaN.
func (p *cutter) cut(x, y reg.VecVirtual, to Mem, apart int) {
	for range 2 { // rounded to the nearest, ties away from zero
		hx, hy, both := p.s.reg(), p.s.reg(), p.s.reg()
		VPADDD(x, p.half, hx)
		VPADDD(y, p.half, hy)
		VPANDD(hx, p.upper, hx)
		VPANDD(hy, p.upper, hy)
		VPSRLD(U8(16), hx, both)
		VPORD(hy, both, both)
		VMOVUPS(both, to)
		to.Disp += apart
		VSUBPS(hx, x, x)
		VSUBPS(hy, y, y)
	}
	// The remainder fits in a bfloat16, unless it is denormal.
	VPSRLD(U8(16), x, x)
	VPTERNLOGD(U8(0xf8), y, p.upper, x) // x | y & upper
	VMOVUPS(x, to)
}

// A splitter splits pairs of vectors of floats into limbs.
type splitter struct {
	cutter
	largest, bits reg.VecVirtual // the largest magnitude so far, and the mask of magnitudes
}

func (s avxProgram) splitter() *splitter {
	return &splitter{cutter: s.cutter(), largest: register(s.zero()), bits: s.bitsReg(0x7fffffff)}
}

// split writes the limbs of x and y, pair by pair, to rows limbBytes apart.
func (p *splitter) split(x, y reg.VecVirtual, to Mem) {
	for _, v := range []reg.VecVirtual{x, y} {
		magnitude := p.s.reg()
		VPANDD(v, p.bits, magnitude)
		VPMAXUD(magnitude, p.largest, p.largest)
	}
	p.cut(x, y, to, limbBytes)
}

// finish stores whether all magnitudes were below the first magnitude that is infinite as bfloat16,
// and returns.
func (p *splitter) finish() {
	k := K()
	VPCMPUD(U8(5), p.s.bitsReg(0x7f7f8000), p.largest, k) // not less
	KORTESTW(k, k)
	ok := GP8()
	SETEQ(ok)
	Store(ok, ReturnIndex(0))
	p.s.end()
}

// amxRowLimbs writes the kernel that splits rows of A.
func amxRowLimbs(s avxProgram) {
	dst, src, row, rows, n := pointer("dst"), pointer("src"), pointer("row"), pointer("rows"), pointer("n")
	p := s.splitter()
	loop, steps, tail, done := label("row"), label("step"), label("tail"), label("next")
	count := GP64()
	XORQ(count, count)
	Label(loop)
	to, from, left := GP64(), GP64(), GP64()
	MOVQ(dst, to)
	MOVQ(src, from)
	MOVQ(n, left)
	Label(steps)
	SUBQ(I32(32), left)
	JL(LabelRef(tail))
	x, y := s.reg(), s.reg()
	VMOVUPS(Mem{Base: from}, x)
	VMOVUPS(Mem{Base: from, Disp: 64}, y)
	PREFETCHT0(Mem{Base: from, Index: row, Scale: 1})
	PREFETCHT0(Mem{Base: from, Index: row, Scale: 1, Disp: 64})
	p.split(x, y, Mem{Base: to})
	ADDQ(I32(128), from)
	ADDQ(I32(stepBytes), to)
	JMP(LabelRef(steps))
	Label(tail)
	ADDQ(I32(32), left)
	JZ(LabelRef(done))
	columns := s.amxColumns(left)
	x, y = s.reg(), s.reg()
	s.readAt(Mem{Base: from}, &columns[0], x)
	s.readAt(Mem{Base: from, Disp: 64}, &columns[1], y)
	p.split(x, y, Mem{Base: to})
	Label(done)
	ADDQ(row, src)
	ADDQ(I32(64), dst) // the next tile comes after 16 rows of a tile
	INCQ(count)
	CMPQ(count, rows)
	JL(LabelRef(loop))
	p.finish()
}

// amxColumnLimbs writes the kernel that splits a panel of B.
func amxColumnLimbs(s avxProgram) {
	dst, src, row, depth := pointer("dst"), pointer("src"), pointer("row"), pointer("depth")
	columns := s.amxColumns(pointer("cols"))
	p := s.splitter()
	step, pair := label("step"), label("pair")
	Label(step)
	upper, ahead, i := GP64(), GP64(), GP64()
	MOVQ(row, upper)
	SHLQ(U8(4), upper)
	ADDQ(src, upper) // 16 rows further
	MOVQ(row, ahead)
	SHLQ(U8(5), ahead) // the next step
	XORQ(i, i)
	Label(pair)
	for t := range 2 {
		skip, zero := label("write"), label("zero")
		x, y := s.reg(), s.reg()
		s.setZero(x)
		s.setZero(y)
		CMPQ(i, depth)
		JGE(LabelRef(skip))
		s.readAt(Mem{Base: src, Disp: 64 * t}, &columns[t], x)
		PREFETCHT0(Mem{Base: src, Index: ahead, Scale: 1, Disp: 64 * t})
		PREFETCHT0(Mem{Base: upper, Index: ahead, Scale: 1, Disp: 64 * t})
		next := GP64()
		LEAQ(Mem{Base: i, Disp: 16}, next)
		CMPQ(next, depth)
		JGE(LabelRef(zero))
		s.readAt(Mem{Base: upper, Disp: 64 * t}, &columns[t], y)
		Label(zero)
		Label(skip)
		p.split(x, y, Mem{Base: dst, Disp: t * tileBytes})
	}
	ADDQ(row, src)
	ADDQ(row, upper)
	ADDQ(I32(64), dst)
	INCQ(i)
	CMPQ(i, U8(16))
	JL(LabelRef(pair))
	ADDQ(I32(stepBytes-tileBytes), dst)
	MOVQ(upper, src)
	SUBQ(I32(32), depth)
	JG(LabelRef(step))
	p.finish()
}
