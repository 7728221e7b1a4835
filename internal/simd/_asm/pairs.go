package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Rounding floats to pairs of bfloat16, in the order in which dotPairs adds their products: the first of a pair is in
// the upper half.

// eachRow writes a loop over rows. It calls body for whole pieces of a row, width floats each, and for the rest, with
// masks of the floats that are left, 16 each. Pointers move by the steps, in bytes, for every piece.
func (s avxProgram) eachRow(width int, moves []movement, body func(left [2]*mask)) {
	rows, n := pointer("rows"), pointer("n")
	rest, left := GP64(), GP64()
	MOVQ(n, rest)
	ANDQ(U8(width-1), rest)
	columns := s.twoVectors(rest)
	SUBQ(rest, n)
	row, piece, last, next := label("row"), label("piece"), label("last"), label("next")
	Label(row)
	starts := make([]reg.GPVirtual, len(moves))
	for i, m := range moves {
		starts[i] = GP64()
		MOVQ(m.at, starts[i])
	}
	MOVQ(n, left)
	Label(piece)
	TESTQ(left, left)
	JZ(LabelRef(last))
	body([2]*mask{})
	for _, m := range moves {
		ADDQ(I32(m.step), m.at)
	}
	SUBQ(U8(width), left)
	JMP(LabelRef(piece))
	Label(last)
	TESTQ(rest, rest)
	JZ(LabelRef(next))
	body([2]*mask{&columns[0], &columns[1]})
	Label(next)
	for i, m := range moves {
		MOVQ(starts[i], m.at)
		ADDQ(m.row, m.at)
	}
	DECQ(rows)
	JNZ(LabelRef(row))
	s.end()
}

// movement is a pointer that moves by step bytes along a row, and by row bytes to the next row.
type movement struct {
	at   reg.GPVirtual
	step int
	row  reg.GPVirtual
}

// toPairs rounds neighbours in a row.
func toPairs(s avxProgram) {
	dst, x := pointer("dst"), pointer("x")
	moves := []movement{{dst, 64, pointer("dstRow")}, {x, 128, pointer("xRow")}}
	words := GP64()
	MOVQ(pointer("n"), words)
	ANDQ(U8(31), words)
	INCQ(words)
	SHRQ(U8(1), words)
	lastWords := s.firstLanes(words)
	s.eachRow(32, moves, func(left [2]*mask) {
		first, second := s.reg(), s.reg()
		s.readAt(Mem{Base: x}, left[0], first)
		s.readAt(Mem{Base: x, Disp: 64}, left[1], second)
		roundVectors(first, second, first)
		// roundVectors leaves the first of a pair in the lower half, and dotPairs begins with the upper
		// one.
		VPROLD(U8(16), first, first)
		if left[0] == nil {
			VMOVUPS(first, Mem{Base: dst})
		} else {
			s.writeAt(first, &lastWords, Mem{Base: dst})
		}
	})
}

// pairRows rounds elements of two rows.
func pairRows(s avxProgram) {
	dst, x, y, xRow := pointer("dst"), pointer("x"), pointer("y"), pointer("xRow")
	places := s.reg()
	VMOVDQU32(interleaved(), places)
	s.eachRow(16, []movement{{dst, 64, pointer("dstRow")}, {x, 64, xRow}, {y, 64, xRow}}, func(left [2]*mask) {
		first, second := s.reg(), s.reg()
		s.readAt(Mem{Base: x}, left[0], first)
		s.readAt(Mem{Base: y}, left[0], second)
		roundVectors(second, first, first)
		VPERMW(first, places, first)
		s.writeAt(first, left[0], Mem{Base: dst})
	})
}

// interleaved is a constant: the places of the halves of 16 words in roundVectors.
func interleaved() Mem {
	var all []Constant
	for i := range 16 {
		all = append(all, U32((16+i)<<16|i))
	}
	return inMemory("interleaved", all...)
}
