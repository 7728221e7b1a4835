package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transpose writes the kernel that copies up to a vector's length of rows, each
// depth long, to depth rows of a vector's length.
func transpose(s isa) {
	s.begin("transpose", "func(dst *float32, dstRow int, src *float32, srcRow, rows, depth int)")
	dst, dstRow := pointer("dst"), pointer("dstRow")
	src, srcRow, rows, depth := pointer("src"), pointer("srcRow"), pointer("rows"), pointer("depth")

	// Where there are fewer rows the last one stands in for those that are
	// missing: what the lanes beyond hold does not matter.
	table := AllocLocal(8 * s.lanes)
	zero := GP64()
	XORQ(zero, zero)
	for i := range s.lanes {
		MOVQ(src, table.Offset(8*i))
		DECQ(rows)
		CMOVQLE(zero, srcRow)
		ADDQ(srcRow, src)
	}

	offset := GP64()
	XORQ(offset, offset)
	square := func(m *mask, between func(i int)) {
		rows := s.vecs(s.lanes)
		for i, v := range rows {
			row := GP64()
			MOVQ(table.Offset(8*i), row)
			s.load(Mem{Base: row, Index: offset, Scale: 1}, m, v)
		}
		for i, v := range s.transposeSquare(rows) {
			between(i)
			VMOVUPS(v, Mem{Base: dst})
			ADDQ(dstRow, dst)
		}
	}
	loop, rest, done := label("loop"), label("rest"), label("done")
	Label(loop)
	SUBQ(U8(s.lanes), depth)
	JL(LabelRef(rest))
	square(nil, func(int) {})
	ADDQ(I32(s.bytes()), offset)
	JMP(LabelRef(loop))
	Label(rest)
	ADDQ(U8(s.lanes), depth)
	JZ(LabelRef(done))
	m := s.firstLanes(depth)
	square(&m, func(i int) {
		if i > 0 {
			CMPQ(depth, U8(i))
			JE(LabelRef(done))
		}
	})
	Label(done)
	s.end()
}

// transposeSquare transposes a square matrix in registers.
func (s isa) transposeSquare(rows []reg.VecVirtual) []reg.VecVirtual {
	// In every quarter of 128 bits, transpose 4×4: then quarter q of
	// quads[g][c] holds column 4q+c of the rows 4g to 4g+3.
	quads := make([][4]reg.VecVirtual, s.lanes/4)
	for g := range quads {
		r := rows[4*g:]
		lo01, hi01, lo23, hi23 := s.vec(), s.vec(), s.vec(), s.vec()
		VUNPCKLPS(r[1], r[0], lo01)
		VUNPCKHPS(r[1], r[0], hi01)
		VUNPCKLPS(r[3], r[2], lo23)
		VUNPCKHPS(r[3], r[2], hi23)
		for c := range quads[g] {
			quads[g][c] = s.vec()
		}
		VUNPCKLPD(lo23, lo01, quads[g][0])
		VUNPCKHPD(lo23, lo01, quads[g][1])
		VUNPCKLPD(hi23, hi01, quads[g][2])
		VUNPCKHPD(hi23, hi01, quads[g][3])
	}
	// Then bring together the quarters of each column.
	columns := s.vecs(s.lanes)
	for c := range 4 {
		if s.lanes == 8 {
			VPERM2F128(U8(0x20), quads[1][c], quads[0][c], columns[c])
			VPERM2F128(U8(0x31), quads[1][c], quads[0][c], columns[4+c])
			continue
		}
		low0, high0, low1, high1 := s.vec(), s.vec(), s.vec(), s.vec()
		VSHUFF32X4(U8(0x44), quads[1][c], quads[0][c], low0)
		VSHUFF32X4(U8(0xee), quads[1][c], quads[0][c], high0)
		VSHUFF32X4(U8(0x44), quads[3][c], quads[2][c], low1)
		VSHUFF32X4(U8(0xee), quads[3][c], quads[2][c], high1)
		VSHUFF32X4(U8(0x88), low1, low0, columns[c])
		VSHUFF32X4(U8(0xdd), low1, low0, columns[4+c])
		VSHUFF32X4(U8(0x88), high1, high0, columns[8+c])
		VSHUFF32X4(U8(0xdd), high1, high0, columns[12+c])
	}
	return columns
}
