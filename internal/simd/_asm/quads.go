package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Products of 8-bit integers, in groups of 128 steps: words of four integers each, behind two floats. The layouts of
// rows of A and of panels of B are in package simd.
const (
	groupWords = 32
	panelBytes = 4 * 32 // of a row of a panel
)

// gemmQuads writes the kernel: tiles of up to six rows and two vectors. The twelve sums of a group are integers; twelve
// more are the sums of the groups so far, as floats. The number of words of all groups is a multiple of four.
func gemmQuads(s avxProgram) {
	t := arguments{s, pointer("t"), tileArg}
	columns := s.amxColumns(t.general("last"))
	p := &avxQuads{avxProduct: avxProduct{avxProgram: s, a: t.general("a"), aRow: t.general("aRow"), aRow3: GP64(), aRow5: GP64()},
		b: t.general("b"), left: t.general("depth")}
	c, cRow := t.general("c"), t.general("cRow")
	LEAQ(Mem{Base: p.aRow, Index: p.aRow, Scale: 2}, p.aRow3)
	LEAQ(Mem{Base: p.aRow, Index: p.aRow, Scale: 4}, p.aRow5)
	t.eachHeight(s.tiling().rows, func(rows int) {
		sums := p.tile(rows)
		s.ifElse(t.is("start", startBias), func() {
			bias := t.general("bias")
			for v := range 2 {
				s.readAt(Mem{Base: bias, Disp: 64 * v}, &columns[v], sums[0][v])
				for _, row := range sums[1:] {
					VMOVUPS(sums[0][v], row[v])
				}
			}
		}, func() { p.clear(sums) })
		group := label("group")
		Label(group)
		p.group(sums)
		TESTQ(p.left, p.left)
		JNZ(LabelRef(group))
		for _, row := range sums {
			for v, sum := range row {
				s.writeAt(sum, &columns[v], Mem{Base: c, Disp: 64 * v})
			}
			ADDQ(cRow, c)
		}
		s.end()
	})
}

// avxQuads is the state of the kernel. It moves a and b.
type avxQuads struct {
	avxProduct
	b, left reg.GPVirtual // left is the number of words
}

func (p *avxQuads) tile(rows int) [][2]reg.VecVirtual {
	all := make([][2]reg.VecVirtual, rows)
	for r := range all {
		all[r] = [2]reg.VecVirtual{p.reg(), p.reg()}
	}
	return all
}

func (p *avxQuads) clear(tile [][2]reg.VecVirtual) {
	for _, row := range tile {
		p.setZero(row[0])
		p.setZero(row[1])
	}
}

// word returns the address of a word of row r.
func (p *avxQuads) word(r, n int) Mem {
	m := p.rowOfA(p.a, nil, r)
	m.Disp = 4 * n
	return m
}

// row loads a row of the panel.
func (p *avxQuads) row(n int) [2]reg.VecVirtual {
	row := [2]reg.VecVirtual{p.reg(), p.reg()}
	for v := range row {
		VMOVUPS(Mem{Base: p.b, Disp: panelBytes*n + 64*v}, row[v])
	}
	return row
}

// group writes the code for a group.
func (p *avxQuads) group(sums [][2]reg.VecVirtual) {
	integers, words, size, whole, loop := p.tile(len(sums)), GP64(), GP64(), label("whole"), label("words")
	MOVQ(p.left, words)
	CMPQ(words, U8(groupWords))
	JLE(LabelRef(whole))
	MOVQ(I32(groupWords), words)
	Label(whole)
	SUBQ(words, p.left)
	MOVQ(words, size)
	p.clear(integers)
	Label(loop)
	for k := range 4 {
		row := p.row(2 + k)
		if len(sums) == 1 { // panels stream from memory, and the processor's prefetching ends at each page
			PREFETCHT0(Mem{Base: p.b, Disp: panelBytes*k + 4096})
			PREFETCHT0(Mem{Base: p.b, Disp: panelBytes*k + 4096 + 64})
		}
		for r := range sums {
			x := p.reg()
			VPBROADCASTD(p.word(r, 2+k), x)
			for v := range row {
				VPDPBUSD(row[v], x, integers[r][v])
			}
		}
	}
	ADDQ(U8(4*4), p.a)
	ADDQ(I32(4*panelBytes), p.b)
	SUBQ(U8(4), words)
	JNZ(LabelRef(loop))
	// Back to the floats.
	SHLQ(U8(2), size)
	SUBQ(size, p.a)
	SHLQ(U8(5), size)
	SUBQ(size, p.b)
	scales, totals := p.row(0), p.row(1)
	for r := range sums {
		scale, zero := p.reg(), p.reg()
		VBROADCASTSS(p.word(r, 0), scale)
		VBROADCASTSS(p.word(r, 1), zero)
		for v, i := range integers[r] {
			VCVTDQ2PS(i, i)
			VMULPS(scales[v], i, i)
			VFMADD231PS(scale, i, sums[r][v])
			VFMADD231PS(zero, totals[v], sums[r][v])
		}
	}
	ADDQ(size, p.b)
	SHRQ(U8(5), size)
	ADDQ(size, p.a)
	ADDQ(U8(8), p.a)
	ADDQ(I32(2*panelBytes), p.b)
}

// toQuads writes the loop that rounds whole groups of floats to integers.
func toQuads(s avxProgram) {
	dst, x, groups := pointer("dst"), pointer("x"), pointer("n")
	least, inverse255, most, nan := s.numReg(0x1p-118), s.numReg(1./255), s.numReg(255), s.bitsReg(0x7fc00000)
	// spread combines the lanes, so that all have the result.
	spread := func(v reg.VecVirtual, op func(a, b, dst Op)) {
		for i := range 4 {
			other := s.reg()
			if i < 2 {
				VSHUFF32X4(U8([]uint8{0x4e, 0xb1}[i]), v, v, other)
			} else {
				VPERMILPS(U8([]uint8{0x4e, 0xb1}[i-2]), v, other)
			}
			op(other, v, v)
		}
	}
	s.repeat(groups, func() {
		v, low, high, bad := s.vecs(groupWords/4), s.reg(), s.reg(), s.reg()
		s.setZero(low)
		s.setZero(high)
		s.setZero(bad)
		for i := range v {
			d := s.reg()
			VMOVUPS(Mem{Base: x, Disp: 64 * i}, v[i])
			VSUBPS(v[i], v[i], d) // 0, or NaN
			VPORD(d, bad, bad)
			VMINPS(v[i], low, low)
			VMAXPS(v[i], high, high)
		}
		spread(low, func(a, b, dst Op) { VMINPS(a, b, dst) })
		spread(high, func(a, b, dst Op) { VMAXPS(a, b, dst) })
		width, scale, inverse, zero, enough, finite := s.reg(), s.reg(), s.reg(), s.reg(), K(), label("finite")
		VSUBPS(low, high, width)
		VCMPPS(U8(0x0d), least, width, enough) // at least
		VMULPS_Z(inverse255, width, enough, scale)
		VDIVPS_Z(width, most, enough, inverse)
		some := K()
		VPTESTMD(bad, bad, some)
		KORTESTW(some, some)
		JZ(LabelRef(finite))
		VMOVAPS(nan, scale)
		Label(finite)
		VMOVD(scale.AsX(), Mem{Base: dst})
		VMULPS(inverse, low, zero)
		VCVTPS2DQ(zero, zero) // minus the zero point
		product := s.reg()
		VCVTDQ2PS(zero, product)
		VMULPS(scale, product, product)
		VMOVD(product.AsX(), Mem{Base: dst, Disp: 4})
		for i := range v {
			VMULPS(inverse, v[i], v[i])
			VCVTPS2DQ(v[i], v[i])
			VPSUBD(zero, v[i], v[i])
			VPMOVUSDB(v[i], Mem{Base: dst, Disp: 8 + 16*i})
		}
		ADDQ(I32(4*(2+groupWords)), dst)
		ADDQ(I32(16*groupWords), x)
	})
	s.end()
}
