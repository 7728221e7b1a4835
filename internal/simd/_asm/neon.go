package main

import (
	"math"

	"github.com/attn-go/attn/internal/simd/_asm/a64"
)

// A neonProgram writes a kernel with NEON, whose vectors have four floats. The kernels are the same as
// on amd64, and the comments there apply here too. The differences are:
//
//   - There are 32 registers and no operands in memory. Factors stay in registers. A multiply-add
//     overwrites the operand that it adds to, so that operand is loaded again; loads do not use the
//     units that multiply.
//   - There are no masks: the remainder of a slice, one to three floats, is loaded and stored in
//     parts.
//   - If one of two operands is NaN, minimum and maximum are NaN.
type neonProgram struct {
	*a64.Func
	*implementation
	table    *table
	hasTable bool // the function loads the address of the table
}

// vectorBytes is the size of a vector.
const vectorBytes = 16

// A constant4 is a vector in the table of the file.
type constant4 [4]uint32

// number is the constant with x in all lanes.
func number(x float64) constant4 { return bits4(math.Float32bits(float32(x))) }

func bits4(b uint32) constant4 { return constant4{b, b, b, b} }

// wide4 is the constant of two numbers of 64 bits.
func wide4(low, high uint64) constant4 {
	return constant4{uint32(low), uint32(low >> 32), uint32(high), uint32(high >> 32)}
}

// tableBase is the register with the address of the table.
const tableBase = a64.Last

// loadConstant sets v to a constant. The first constant of a function makes it begin by loading the
// address of the table.
func (f *neonProgram) loadConstant(v a64.V, c constant4) {
	if !f.hasTable {
		f.Begin("MOVD", "$"+tableName+"(SB)", tableBase)
		f.hasTable = true
	}
	f.LDRQ(v, a64.At(tableBase, f.table.offset(c)))
}

// inRegister returns a register with a constant.
func (f *neonProgram) inRegister(c constant4) a64.V {
	v := f.V()
	f.loadConstant(v, c)
	return v
}

// num returns a register with x in all lanes.
func (f *neonProgram) num(x float64) a64.V { return f.inRegister(number(x)) }

// A part is the first lanes of a vector. Their number is in a register: 1 to 3, or 1 to 4 if it may
// be all lanes.
type part struct {
	n        a64.X
	maybeAll bool
}

// readAt reads a vector, or a part if p is not nil; other lanes become 0. It does not access memory
// outside of the part.
func (f *neonProgram) readAt(v a64.V, m a64.Mem, p *part) {
	if p == nil {
		f.LDRQ(v, m)
		return
	}
	f.inPart(p, v, m, mover{f.LDRQ, f.LDRD, f.LDRS, f.LD1})
}

// writeAt writes a vector, or a part if p is not nil.
func (f *neonProgram) writeAt(v a64.V, m a64.Mem, p *part) {
	if p == nil {
		f.STRQ(v, m)
		return
	}
	f.inPart(p, v, m, mover{f.STRQ, f.STRD, f.STRS, f.ST1})
}

// A mover is instructions that all load, or all store.
type mover struct {
	four, two, one func(v a64.V, m a64.Mem)
	lane           func(v a64.V, lane int, base a64.X)
}

// inPart moves two lanes and then the third, or only the first.
func (f *neonProgram) inPart(p *part, v a64.V, m a64.Mem, by mover) {
	f.Scope(func() {
		single, done := f.NewLabel("single"), f.NewLabel("done")
		if p.maybeAll {
			few := f.NewLabel("few")
			f.Do("TBZ", 2, p.n, few)
			by.four(v, m)
			f.Do("JMP", done)
			f.Bind(few)
		}
		f.Do("TBZ", 1, p.n, single)
		by.two(v, m)
		f.Do("TBZ", 0, p.n, done)
		third := f.X()
		f.Do("ADD", m.Disp+8, m.Base, third)
		by.lane(v, 2, third)
		f.Do("JMP", done)
		f.Bind(single)
		by.one(v, m)
		f.Bind(done)
	})
}

// ones returns ones in the lanes of the part, zeros elsewhere.
func (f *neonProgram) ones(p *part) a64.V {
	v, index := f.V(), f.inRegister(constant4{0, 1, 2, 3})
	f.DUPW(v, p.n)
	f.CMHI(v, v, index)
	return v
}

// at returns the address of vector i from base.
func at(base a64.X, i int) a64.Mem { return a64.At(base, i*vectorBytes) }

// fold combines all lanes of the accumulators with op, the furthest apart first, and returns the
// result in the first lane.
func (f *neonProgram) fold(acc []a64.V, op func(d, n, m a64.V)) a64.V {
	for n := len(acc) / 2; n > 0; n /= 2 {
		for i := range n {
			op(acc[i], acc[i], acc[i+n])
		}
	}
	v := acc[0]
	f.Scope(func() {
		t := f.V()
		for _, bytes := range []int{8, 4} {
			f.EXT(t, v, v, bytes)
			op(v, v, t)
		}
	})
	return v
}

// anyBit returns a register that is 0 if and only if all bits of v are 0. It overwrites v.
func (f *neonProgram) anyBit(v a64.V) a64.X {
	x := f.X()
	f.UMAXV(v, v)
	f.FMOVW(x, v)
	return x
}

// countDown ends a loop that starts at a label and runs n times.
func (f *neonProgram) countDown(n ptr, loop a64.Label) {
	f.Do("SUBS", 1, n, n)
	f.Do("BNE", loop)
}
