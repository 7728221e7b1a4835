package main

import (
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dotRows is the largest number of rows of A for dots.
const dotRows = 4

// dots writes the kernel for a few rows of A and one vector of columns of B, both contiguous. B is
// transposed in registers, square by square, once for all rows. The result is added to C. The
// fields in use are a, aRow, b, c, cRow, depth and rows, bRow for the distance of the columns of B,
// and last for their number.
func dots(s avxProgram) {
	args := pointer("t")
	field := arguments{s, args, tileArg}.general
	// The start of the next columns of B, which the next call will probably use. The processor does
	// not predict their order.
	ahead := field("bRow")
	SHLQ(U8(bits.TrailingZeros(uint(s.lanes))), ahead)
	table := s.rowTable(s.lanes, field("b"), field("bRow"), field("last"))
	for rows := dotRows; rows > 0; rows-- {
		next := label("rows")
		if rows > 1 {
			CMPQ(Mem{Base: args, Disp: tileArg("rows")}, U8(rows))
			JNE(LabelRef(next))
		}
		s.dots(rows, args, table, ahead)
		Label(next)
	}
}

// dots writes the code for the given number of rows of A.
func (s avxProgram) dots(rows int, args reg.GPVirtual, table Mem, ahead reg.GPVirtual) {
	field := arguments{s, args, tileArg}.general
	acc := s.vecs(rows)
	// eachRow calls do with every row of sums and its address in C.
	eachRow := func(do func(sums reg.VecVirtual, m *mask, c Mem)) {
		m := s.firstLanes(field("last"))
		c, row := field("c"), field("cRow")
		for _, sums := range acc {
			do(sums, &m, Mem{Base: c})
			ADDQ(row, c)
		}
	}
	eachRow(func(sums reg.VecVirtual, m *mask, c Mem) { s.readAt(c, m, sums) })
	a, aRow, aRow3, next := field("a"), field("aRow"), GP64(), GP64()
	LEAQ(Mem{Base: aRow, Index: aRow, Scale: 2}, aRow3)
	MOVQ(ahead, next)
	// With several rows of A the loads are the bottleneck, with one row the shuffles.
	s.squares(table, 1, s.lanes == 8 || rows == 1, field("depth"), func(_, k int, column reg.VecVirtual) {
		for r := range acc {
			at := Mem{Base: a, Disp: 4 * k}
			switch r {
			case 1, 2:
				at.Index, at.Scale = aRow, uint8(r)
			case 3:
				at.Index, at.Scale = aRow3, 1
			}
			x := s.reg()
			VBROADCASTSS(at, x)
			VFMADD231PS(x, column, acc[r])
		}
	}, func() {
		for i := range s.lanes {
			r := GP64()
			MOVQ(table.Offset(8*i), r)
			PREFETCHT0(Mem{Base: r, Index: next, Scale: 1})
		}
		ADDQ(I32(s.bytes()), next)
		ADDQ(U8(s.bytes()), a)
	})
	zero := register(s.zero()) // turns -0 into 0
	for _, sums := range acc {
		VADDPS(zero, sums, sums)
	}
	eachRow(func(sums reg.VecVirtual, m *mask, c Mem) { s.writeAt(sums, m, c) })
	s.end()
}
