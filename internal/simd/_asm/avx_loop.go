package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func (s avxProgram) ifElse(c condition, body, otherwise func()) {
	other := label(c.label() + "Else")
	switch {
	case c.x != nil:
		TESTQ(base(c.x), base(c.x))
		JZ(LabelRef(other))
	case c.v != nil: // only 0 and -0 have no bits other than the sign
		s.testBits(constant(notSign), register(c.v))
		JZ(LabelRef(other))
	default:
		CMPQ(mem(c.args.t).Offset(c.args.offset(c.field)), U8(c.n))
		if c.not {
			JEQ(LabelRef(other))
		} else {
			JNE(LabelRef(other))
		}
	}
	body()
	if otherwise == nil {
		Label(other)
		return
	}
	done := label(c.label() + "Done")
	JMP(LabelRef(done))
	Label(other)
	otherwise()
	Label(done)
}

func (s avxProgram) repeat(n ptr, body func()) {
	loop := label("repeat")
	Label(loop)
	body()
	DECQ(base(n))
	JNZ(LabelRef(loop))
}

// One index serves all slices: a step advances a single register, and adding base and index is part of the
// access to memory.
func (s avxProgram) along(length string, all ...ptr) loop {
	n, index := pointer(length), GP64()
	XORQ(index, index)
	return loop{s, n, ofFloats(indexed{s, index, map[ptr]int{}}, all)}
}

// indexed are places that have an index in common.
type indexed struct {
	s     avxProgram
	index reg.GPVirtual // elements done
	bytes map[ptr]int   // of an element of each slice
}

func (x indexed) add(p ptr, bytes int) { x.bytes[p] = bytes }

func (x indexed) at(p ptr) ptr { return Mem{Base: base(p), Index: x.index, Scale: uint8(x.bytes[p])} }

func (x indexed) next(vectors int) { ADDQ(I32(vectors*x.s.lanes), x.index) }

// mem returns the address of the vector of x.
func (s step) mem(x ptr) Mem { return mem(s.at(x)).Offset(4 * s.i * s.p.impl().lanes) }

// The step is subtracted before the loop, so that the subtraction at its end also is the comparison. Behind
// the loop n is restored to what is left.
func (s avxProgram) whole(n ptr, step int, body func()) {
	loop, after := label("loop"), label("after")
	SUBQ(I32(step), base(n))
	JL(LabelRef(after))
	Label(loop)
	body()
	SUBQ(I32(step), base(n))
	JGE(LabelRef(loop))
	Label(after)
	ADDQ(I32(step), base(n))
}

// Each vector has its own code instead of a loop, because body i uses its own registers, such as the
// i-th of the sums, and a register cannot be chosen at run time. Whole vectors come first; the first that
// is not whole jumps to the code with its mask, which is the last.
func (s avxProgram) tail(n ptr, count int, body func(i int, e extent)) {
	done, rest := label("done"), label("rest")
	for i := range count {
		CMPQ(base(n), I32(s.lanes))
		JL(LabelRef(rest + fmt.Sprint(i)))
		body(i, nil)
		SUBQ(I32(s.lanes), base(n))
	}
	JMP(LabelRef(done))
	for i := range count {
		Label(rest + fmt.Sprint(i))
		TESTQ(base(n), base(n))
		JZ(LabelRef(done))
		body(i, s.first(n))
		if i < count-1 {
			JMP(LabelRef(done))
		}
	}
	Label(done)
}
