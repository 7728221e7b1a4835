package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Products of 8-bit integers, in groups of 128 steps: words of four integers each, behind two floats. The layouts of
// rows of A and of panels of B are in package simd.
// A sum of 128 products of at most 255·127 is below 2²², so it is exact in 32 bits and stays exact as a
// float.
const groupWords = 32

// quadTile is the shape of the tiles of a processor, and how it multiplies.
type quadTile struct {
	rows, vectors int
	// dot multiplies the four integers of each word and adds the products to sum. Nil widens integers to 16 bits, which
	// has two vectors of sums for each vector of columns.
	dot func(b, a, sum Op)
	// keeps means that there are registers for the sums of the groups so far. They begin with the bias, and the columns
	// may end within the panel. Without them, a tile of whole vectors is added to C, group after group.
	keeps bool
}

// gemmQuads writes the kernel. The sums of a group are integers. The number of words of all groups is a multiple of
// four.
func gemmQuads(tile quadTile) func(s avxProgram) {
	return func(s avxProgram) {
		t := arguments{s, pointer("t"), tileArg}
		p := &quadProduct{
			quadTile: tile, args: t,
			avxProduct: avxProduct{
				avxProgram: s, a: t.general("a"), aRow: t.general("aRow"), aRow3: GP64(), aRow5: GP64(), next: t.general("next"),
			},
			a6: GP64(), b: t.general("b"), left: t.general("depth"), c: t.general("c"), cRow: t.general("cRow"),
		}
		LEAQ(Mem{Base: p.aRow, Index: p.aRow, Scale: 2}, p.aRow3)
		LEAQ(Mem{Base: p.aRow, Index: p.aRow, Scale: 4}, p.aRow5)
		LEAQ(Mem{Base: p.a, Index: p.aRow3, Scale: 2}, p.a6)
		var columns [2]mask
		if tile.keeps {
			columns = s.twoVectors(t.general("last"))
		}
		t.eachHeight(tile.rows, func(rows int) {
			var kept [][]reg.VecVirtual
			if tile.keeps {
				kept = p.begin(t, rows, columns)
			}
			group := label("group")
			Label(group)
			p.group(rows, kept)
			TESTQ(p.left, p.left)
			JNZ(LabelRef(group))
			for _, row := range kept {
				for v, sum := range row {
					s.writeAt(sum, &columns[v], Mem{Base: p.c, Disp: v * s.bytes()})
				}
				ADDQ(p.cRow, p.c)
			}
			s.end()
		})
	}
}

// dotLong is the instruction of AVX512-VNNI.
func dotLong(b, a, sum Op) { VPDPBUSD(b, a, sum) }

// quadProduct is the state of the kernel. It moves a, a6 and b.
type quadProduct struct {
	avxProduct
	quadTile
	args                 arguments
	a6, b, left, c, cRow reg.GPVirtual // left is the number of words
}

// begin returns the initial sums.
func (p *quadProduct) begin(t arguments, rows int, columns [2]mask) [][]reg.VecVirtual {
	sums := make([][]reg.VecVirtual, rows)
	for r := range sums {
		sums[r] = p.vecs(p.vectors)
	}
	p.ifElse(t.is("start", startBias), func() {
		bias := t.general("bias")
		for v, first := range sums[0] {
			p.readAt(Mem{Base: bias, Disp: v * p.bytes()}, &columns[v], first)
			for _, row := range sums[1:] {
				VMOVUPS(first, row[v])
			}
		}
	}, func() {
		for _, row := range sums {
			for _, sum := range row {
				p.setZero(sum)
			}
		}
	})
	return sums
}

// word returns the address of a word of row r.
func (p *quadProduct) word(r, n int) Mem {
	m := p.rowOfA(p.a, p.a6, r)
	m.Disp = 4 * n
	return m
}

// rowBytes returns the size of a row of the panel.
func (p *quadProduct) rowBytes() int { return p.vectors * p.bytes() }

// move moves a and b by a number of words.
func (p *quadProduct) move(words int) {
	ADDQ(I32(4*words), p.a)
	ADDQ(I32(4*words), p.a6)
	ADDQ(I32(words*p.rowBytes()), p.b)
}

// group writes the code for a group, whose sums are added to those that are kept, or else to C.
func (p *quadProduct) group(rows int, kept [][]reg.VecVirtual) {
	each := p.vectors
	if p.dot == nil {
		each *= 2
	}
	sums := make([][]reg.VecVirtual, rows)
	words, size, whole, loop := GP64(), GP64(), label("whole"), label("words")
	MOVQ(p.left, words)
	CMPQ(words, U8(groupWords))
	JLE(LabelRef(whole))
	MOVQ(I32(groupWords), words)
	Label(whole)
	SUBQ(words, p.left)
	MOVQ(words, size)
	for r := range sums {
		sums[r] = p.vecs(each)
		for _, v := range sums[r] {
			p.setZero(v)
		}
	}
	Label(loop)
	for k := range 4 {
		if rows == 1 { // panels stream from memory, and the processor's prefetching ends at each page
			for at := 0; at < p.rowBytes(); at += 64 {
				PREFETCHT0(Mem{Base: p.b, Disp: k*p.rowBytes() + at + 4096})
			}
		}
		// two words behind: a row of A begins with its scale and zero point, a panel with scales and totals
		p.step(sums, 2+k)
	}
	p.move(4)
	if rows > 1 { // each tile prefetches a part of the next panel, which a tile multiplies faster than memory delivers it
		PREFETCHT1(Mem{Base: p.next})
		ADDQ(mem(p.args.t).Offset(tileArg("nextStep")), p.next)
	}
	SUBQ(U8(4), words)
	JNZ(LabelRef(loop))
	// Back to the floats.
	SHLQ(U8(2), size)
	SUBQ(size, p.a)
	SUBQ(size, p.a6)
	IMUL3Q(I32(p.rowBytes()/4), size, words)
	SUBQ(words, p.b)
	c := GP64()
	MOVQ(p.c, c)
	for r := range sums {
		for v := range p.vectors {
			sum, factor := sums[r][v], p.reg()
			var old reg.VecVirtual
			if kept != nil {
				old = kept[r][v]
			} else {
				old = p.reg()
				VMOVUPS(Mem{Base: c, Disp: v * p.bytes()}, old)
			}
			if p.dot == nil { // neighbours are the sums of a column
				// VPHADDD adds neighbours in each half of 128 bits, which leaves the quarters in the order
				// 0 2 1 3.
				VPHADDD(sums[r][2*v+1], sums[r][2*v], sum)
				VPERMQ(U8(0xd8), sum, sum)
			}
			VCVTDQ2PS(sum, sum)
			VMULPS(Mem{Base: p.b, Disp: v * p.bytes()}, sum, sum)
			VBROADCASTSS(p.word(r, 0), factor)
			VFMADD231PS(factor, sum, old)
			VBROADCASTSS(p.word(r, 1), factor)
			VFMADD231PS(Mem{Base: p.b, Disp: p.rowBytes() + v*p.bytes()}, factor, old)
			if kept == nil {
				VMOVUPS(old, Mem{Base: c, Disp: v * p.bytes()})
			}
		}
		ADDQ(p.cRow, c)
	}
	ADDQ(size, p.a)
	ADDQ(size, p.a6)
	ADDQ(words, p.b)
	p.move(2)
}

// step adds the products of word n of the group.
func (p *quadProduct) step(sums [][]reg.VecVirtual, n int) {
	if p.dot == nil {
		p.widened(sums, n)
		return
	}
	columns := p.vecs(p.vectors)
	for v := range columns {
		VMOVUPS(Mem{Base: p.b, Disp: n*p.rowBytes() + v*p.bytes()}, columns[v])
	}
	for r := range sums {
		x := p.reg()
		VPBROADCASTD(p.word(r, n), x)
		for v := range columns {
			p.dot(columns[v], x, sums[r][v])
		}
	}
}

// widened is step with integers of 16 bits: the products of bytes could be too large for them in pairs.
func (p *quadProduct) widened(sums [][]reg.VecVirtual, n int) {
	columns := p.vecs(len(sums[0]))
	for v := range columns {
		VPMOVSXBW(Mem{Base: p.b, Disp: n*p.rowBytes() + v*p.bytes()/2}, columns[v])
	}
	for r := range sums {
		x, product := p.reg(), p.reg()
		VPBROADCASTD(p.word(r, n), x.AsX())
		VPMOVZXBW(x.AsX(), x)
		for v := range columns {
			// VPMADDUBSW would take the bytes as they are, but it adds pairs of products in 16 bits, and
			// 2·255·127 does not fit.
			VPMADDWD(columns[v], x, product)
			VPADDD(product, sums[r][v], sums[r][v])
		}
	}
}

// toQuads writes the loop that rounds whole groups of floats to integers.
func toQuads(s avxProgram) {
	dst, x, groups := pointer("dst"), pointer("x"), pointer("n")
	least, inverse255, most, nan := constant(math.Float32bits(0x1p-118)), constant(math.Float32bits(1./255)), s.numReg(255), s.bitsReg(0x7fc00000)
	vectors := groupWords * 4 / s.lanes
	s.repeat(groups, func() {
		// low and high begin with 0: then 0 is in the range, and a zero is exactly the zero point. A width
		// below 2⁻¹¹⁸ counts as none, since its scale would be denormal.
		low, high, bad := s.reg(), s.reg(), s.reg()
		s.setZero(low)
		s.setZero(high)
		s.setZero(bad)
		for i := range vectors {
			v, d := s.reg(), s.reg()
			VMOVUPS(Mem{Base: x, Disp: s.bytes() * i}, v)
			VSUBPS(v, v, d) // 0, or NaN
			s.or(bad, d, bad)
			VMINPS(v, low, low)
			VMAXPS(v, high, high)
		}
		s.everywhere(low, func(a, b, dst Op) { VMINPS(a, b, dst) })
		s.everywhere(high, func(a, b, dst Op) { VMAXPS(a, b, dst) })
		width, scale, inverse, zero, finite := s.reg(), s.reg(), s.reg(), s.reg(), label("finite")
		VSUBPS(low, high, width)
		VMULPS(inverse255, width, scale)
		VDIVPS(width, most, inverse)
		if s.lanes == 16 {
			enough := K()
			VCMPPS(U8(0x0d), least, width, enough) // at least
			VMOVAPS_Z(scale, enough, scale)
			VMOVAPS_Z(inverse, enough, inverse)
		} else {
			enough := s.reg()
			VCMPPS(U8(0x0d), least, width, enough)
			VANDPS(enough, scale, scale)
			VANDPS(enough, inverse, inverse)
		}
		s.testBits(bad, bad)
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
		integers := func(i int) reg.VecVirtual {
			v := s.reg()
			VMULPS(Mem{Base: x, Disp: s.bytes() * i}, inverse, v)
			VCVTPS2DQ(v, v)
			VPSUBD(zero, v, v)
			return v
		}
		for i := 0; i < vectors; i++ {
			// Narrowing saturates: where both ends of the range are rounded away from 0, their distance is
			// 256.
			v := integers(i)
			if s.lanes == 16 {
				VPMOVUSDB(v, Mem{Base: dst, Disp: 8 + 16*i})
				continue
			}
			second, third, fourth := integers(i+1), integers(i+2), integers(i+3)
			VPACKSSDW(second, v, v)
			VPACKSSDW(fourth, third, third)
			VPACKUSWB(third, v, v) // in each half of 16 bytes, four of each vector
			order := s.reg()
			VMOVDQU(inMemory("unpacked", unpacked...), order)
			VPERMD(v, order, v)
			VMOVDQU(v, Mem{Base: dst, Disp: 8 + 8*i})
			i += 3
		}
		ADDQ(I32(4*(2+groupWords)), dst)
		ADDQ(I32(16*groupWords), x)
	})
	s.end()
}

// unpacked is the order of the words of four vectors that are packed to bytes.
var unpacked = []Constant{U32(0), U32(4), U32(1), U32(5), U32(2), U32(6), U32(3), U32(7)}

// everywhere combines the lanes of v, so that all have the result.
func (s avxProgram) everywhere(v reg.VecVirtual, op func(a, b, dst Op)) {
	other := s.reg()
	if s.lanes == 16 {
		VSHUFF32X4(U8(0x4e), v, v, other)
		op(other, v, v)
		VSHUFF32X4(U8(0xb1), v, v, other)
	} else {
		VPERM2F128(U8(1), v, v, other)
	}
	op(other, v, v)
	for _, order := range []uint8{0x4e, 0xb1} {
		VPERMILPS(U8(order), v, other)
		op(other, v, v)
	}
}
