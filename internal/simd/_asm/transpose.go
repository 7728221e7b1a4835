package main

import (
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transpose writes the kernel that copies up to a vector's length of rows, each depth long, to
// depth rows of a vector's length.
func transpose(s avxProgram) {
	dst, dstRow := pointer("dst"), pointer("dstRow")
	// The distance to the rows that the next call will probably read. The processor does not
	// predict their order.
	ahead := pointer("srcRow")
	SHLQ(U8(bits.TrailingZeros(uint(s.lanes))), ahead)
	rows := s.rowTable(s.lanes, pointer("src"), pointer("srcRow"), pointer("rows"))
	s.squares(rows, 1, pointer("depth"), func(_, _ int, column reg.VecVirtual) {
		VMOVUPS(column, Mem{Base: dst})
		ADDQ(dstRow, dst)
	}, func() {
		for i := range s.lanes {
			r := GP64()
			MOVQ(rows.Offset(8*i), r)
			PREFETCHT0(Mem{Base: r, Index: ahead, Scale: 1})
		}
		ADDQ(I32(s.bytes()), ahead)
	})
	s.end()
}

// transposePairs returns a function that writes transpose for rows of bfloat16. Pairs are
// transposed as one element and then separated, to bfloat16 or to floats.
func transposePairs(floats bool) func(avxProgram) {
	return func(s avxProgram) {
		dst, dstRow := pointer("dst"), pointer("dstRow")
		rows := s.rowTable(s.lanes, pointer("src"), pointer("srcRow"), pointer("rows"))
		var highs reg.VecVirtual
		switch {
		case floats:
			highs = s.bitsReg(0xffff0000)
		case s.lanes == 8:
			highs = s.bitsReg(0xffff)
		}
		narrow := func(v reg.VecVirtual) {
			if s.lanes == 16 {
				VPMOVDW(v, Mem{Base: dst})
				return
			}
			VPACKUSDW(v, v, v)
			// VPACKUSDW works on halves of 128 bits
			VPERMQ(U8(0xd8), v, v)
			VMOVDQU(v.AsX(), Mem{Base: dst})
		}
		s.squares(rows, 1, pointer("pairs"), func(_, _ int, column reg.VecVirtual) {
			second := s.reg()
			if floats {
				s.and(second, column, highs)
				VPSLLD(U8(16), column, column)
				VMOVUPS(column, Mem{Base: dst})
				ADDQ(dstRow, dst)
				VMOVUPS(second, Mem{Base: dst})
			} else {
				VPSRLD(U8(16), column, second)
				if s.lanes == 8 {
					s.and(column, column, highs)
				}
				narrow(column)
				ADDQ(dstRow, dst)
				narrow(second)
			}
			ADDQ(dstRow, dst)
		}, func() {})
		s.end()
	}
}

// gemvTransposed writes the kernel for a single contiguous row of A and contiguous columns of B. B
// is transposed in registers, square by square. The result is added to C. The fields in use are a,
// b, c and depth, bRow for the distance of the columns of B, and last for their number.
func gemvTransposed(s avxProgram) {
	args := pointer("t")
	field := arguments{s, args, tileArg}.general
	groups := s.tiling().groups
	rows := s.rowTable(groups*s.lanes, field("b"), field("bRow"), field("last"))
	acc := as[reg.VecVirtual](s.sums(groups * s.lanes))
	// eachGroup calls do with the part of C that belongs to each group.
	eachGroup := func(do func(g int, m mask, c Mem)) {
		c, left, most := field("c"), field("last"), GP64()
		MOVQ(I32(s.lanes), most)
		end := label("groups")
		for g := range groups {
			n := GP64()
			MOVQ(left, n)
			CMPQ(n, most)
			CMOVQGT(most, n)
			do(g, s.firstLanes(n), Mem{Base: c, Disp: g * s.bytes()})
			if g < groups-1 {
				SUBQ(most, left)
				JLE(LabelRef(end))
			}
		}
		Label(end)
	}
	eachGroup(func(g int, m mask, c Mem) { s.readAt(c, &m, acc[g]) })
	a := field("a")
	s.squares(rows, groups, field("depth"), func(g, k int, column reg.VecVirtual) {
		x := s.reg()
		VBROADCASTSS(Mem{Base: a, Disp: 4 * k}, x)
		VFMADD231PS(x, column, acc[g])
	}, func() { ADDQ(U8(s.bytes()), a) })
	zero := register(s.zero()) // turns -0 into 0
	for _, v := range acc {
		VADDPS(zero, v, v)
	}
	eachGroup(func(g int, m mask, c Mem) { s.writeAt(acc[g], &m, c) })
	s.end()
}

// rowTable returns a table, on the stack, of pointers to n rows. If there are fewer, the last row
// replaces the missing ones, whose results are not used.
func (s avxProgram) rowTable(n int, first, distance, rows reg.GPVirtual) Mem {
	// There are more rows than general registers. A pointer loaded from the stack takes no unit that
	// shuffles, which are the limit.
	table := AllocLocal(8 * n)
	zero := GP64()
	XORQ(zero, zero)
	for i := range n {
		MOVQ(first, table.Offset(8*i))
		DECQ(rows)
		// after the last row the distance is 0
		CMOVQLE(zero, distance)
		ADDQ(distance, first)
	}
	return table
}

// squares writes the loop that transposes groups of rows, one square of each at a time, and calls
// use for the columns of group g in their order. After the squares of all groups it calls next.
func (s avxProgram) squares(rows Mem, groups int, depth reg.GPVirtual,
	use func(g, k int, column reg.VecVirtual), next func()) {
	offset := GP64()
	XORQ(offset, offset)
	row := func(g, i int) Mem {
		r := GP64()
		MOVQ(rows.Offset(8*(g*s.lanes+i)), r)
		return Mem{Base: r, Index: offset, Scale: 1}
	}
	loop, rest, done := label("loop"), label("rest"), label("done")
	SUBQ(U8(s.lanes), depth)
	JL(LabelRef(rest))
	Label(loop)
	for g := range groups {
		s.fullSquare(func(i int) Mem { return row(g, i) }, func(k int, c reg.VecVirtual) { use(g, k, c) })
	}
	next()
	ADDQ(I32(s.bytes()), offset)
	SUBQ(U8(s.lanes), depth)
	JGE(LabelRef(loop))
	Label(rest)
	ADDQ(U8(s.lanes), depth)
	JZ(LabelRef(done))
	for g := range groups {
		m := s.firstLanes(depth)
		square := s.vecs(s.lanes)
		for i, v := range square {
			s.readAt(row(g, i), &m, v)
		}
		end := label("columns")
		for k, c := range s.transposeSquare(square) {
			if k > 0 {
				CMPQ(depth, U8(k))
				JE(LabelRef(end))
			}
			use(g, k, c)
		}
		Label(end)
	}
	Label(done)
}

// fullSquare transposes a square in memory. Moving the quarters of 128 bits to their places while
// loading is cheaper than shuffling them afterwards.
func (s avxProgram) fullSquare(row func(i int) Mem, use func(k int, column reg.VecVirtual)) {
	quarters := s.lanes / 4
	quads := make([][4]reg.VecVirtual, quarters)
	for i := range 4 {
		for q := range quarters {
			from := row(4*q + i)
			for k := range quads {
				at := from
				at.Disp = 16 * k
				switch {
				case q == 0 && s.lanes == 16:
					quads[k][i] = s.reg()
					VBROADCASTF32X4(at, quads[k][i])
				case q == 0:
					quads[k][i] = s.reg()
					VBROADCASTF128(at, quads[k][i])
				case s.lanes == 16:
					VINSERTF32X4(U8(q), at, quads[k][i], quads[k][i])
				default:
					VINSERTF128(U8(q), at, quads[k][i], quads[k][i])
				}
			}
		}
	}
	for k, r := range quads {
		for c, v := range s.transposeQuarters(r) {
			use(4*k+c, v)
		}
	}
}

// transposeQuarters transposes the 4×4 matrices in the quarters of 128 bits of four rows.
func (s avxProgram) transposeQuarters(r [4]reg.VecVirtual) (columns [4]reg.VecVirtual) {
	lo01, hi01, lo23, hi23 := s.reg(), s.reg(), s.reg(), s.reg()
	VUNPCKLPS(r[1], r[0], lo01)
	VUNPCKHPS(r[1], r[0], hi01)
	VUNPCKLPS(r[3], r[2], lo23)
	VUNPCKHPS(r[3], r[2], hi23)
	for c := range columns {
		columns[c] = s.reg()
	}
	VUNPCKLPD(lo23, lo01, columns[0])
	VUNPCKHPD(lo23, lo01, columns[1])
	VUNPCKLPD(hi23, hi01, columns[2])
	VUNPCKHPD(hi23, hi01, columns[3])
	return columns
}

// transposeSquare transposes a square matrix in registers.
func (s avxProgram) transposeSquare(rows []reg.VecVirtual) []reg.VecVirtual {
	// Quarter q of quads[g][c] is column 4q+c of the rows 4g to 4g+3.
	quads := make([][4]reg.VecVirtual, s.lanes/4)
	for g := range quads {
		quads[g] = s.transposeQuarters([4]reg.VecVirtual(rows[4*g:]))
	}
	// Combine the quarters of each column.
	columns := s.vecs(s.lanes)
	for c := range 4 {
		if s.lanes == 8 {
			VPERM2F128(U8(0x20), quads[1][c], quads[0][c], columns[c])
			VPERM2F128(U8(0x31), quads[1][c], quads[0][c], columns[4+c])
			continue
		}
		low0, high0, low1, high1 := s.reg(), s.reg(), s.reg(), s.reg()
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
