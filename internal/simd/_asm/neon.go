package main

import (
	"math"
	"slices"

	"github.com/attn-go/attn/internal/simd/_asm/a64"
)

// A neonFunc writes a kernel with NEON, whose vectors have four floats. The kernels are the same as
// on amd64, and the comments there apply here too. The differences are:
//
//   - There are 32 registers and no operands in memory. Factors stay in registers. A multiply-add
//     overwrites the operand that it adds to, so that operand is loaded again; loads do not use the
//     units that multiply.
//   - There are no masks: the remainder of a slice, one to three floats, is loaded and stored in
//     parts.
//   - If one of two operands is NaN, minimum and maximum are NaN.
type neonFunc struct {
	*a64.Func
	lanes    int // 4
	additive int // keys of a panel of additive scores
	table    *table
	hasTable bool // the function loads the address of the table
}

// vectorBytes is the size of a vector.
const vectorBytes = 16

// pointer loads a parameter into a general register.
func (f *neonFunc) pointer(name string) a64.X {
	x := f.X()
	f.Do("MOVD", f.Param(name), x)
	return x
}

// broadcast returns a vector with the named parameter, a float, in all lanes.
func (f *neonFunc) broadcast(name string) a64.V {
	v := f.V()
	f.Do("FMOVS", f.Param(name), v)
	f.DUP(v, v, 0)
	return v
}

// spread sets all lanes of v to the float at x.
func (f *neonFunc) spread(v a64.V, x a64.X) { f.LD1R(v, x) }

// zero returns a vector of zeros.
func (f *neonFunc) zero() a64.V {
	v := f.V()
	f.Clear(v)
	return v
}

// copy returns a copy of v.
func (f *neonFunc) copy(v a64.V) a64.V {
	c := f.V()
	f.MOV(c, v)
	return c
}

// accumulators returns vectors for n sums, all 0.
func (f *neonFunc) accumulators(n int) []a64.V {
	acc := f.Vs(n / f.lanes)
	for _, v := range acc {
		f.Clear(v)
	}
	return acc
}

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
func (f *neonFunc) loadConstant(v a64.V, c constant4) {
	if !f.hasTable {
		f.Begin("MOVD", "$"+tableName+"(SB)", tableBase)
		f.hasTable = true
	}
	f.LDRQ(v, a64.At(tableBase, f.table.offset(c)))
}

// constant returns a register with a constant.
func (f *neonFunc) constant(c constant4) a64.V {
	v := f.V()
	f.loadConstant(v, c)
	return v
}

// num returns a register with x in all lanes.
func (f *neonFunc) num(x float64) a64.V { return f.constant(number(x)) }

// horner returns c[0] + x·(c[1] + x·(c[2] + …)).
func (f *neonFunc) horner(x a64.V, c []float64) a64.V {
	p, next := f.num(c[len(c)-1]), f.V()
	for _, v := range slices.Backward(c[:len(c)-1]) {
		f.loadConstant(next, number(v))
		f.FMLA(next, p, x)
		p, next = next, p
	}
	return p
}

// A part is the first lanes of a vector. Their number is in a register: 1 to 3, or 1 to 4 if it may
// be all lanes.
type part struct {
	n        a64.X
	maybeAll bool
}

// load reads a vector, or a part if p is not nil; other lanes become 0. It does not access memory
// outside of the part.
func (f *neonFunc) load(v a64.V, m a64.Mem, p *part) {
	if p == nil {
		f.LDRQ(v, m)
		return
	}
	f.inPart(p, v, m, mover{f.LDRQ, f.LDRD, f.LDRS, f.LD1})
}

// store writes a vector, or a part if p is not nil.
func (f *neonFunc) store(v a64.V, m a64.Mem, p *part) {
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
func (f *neonFunc) inPart(p *part, v a64.V, m a64.Mem, by mover) {
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
func (f *neonFunc) ones(p *part) a64.V {
	v, index := f.V(), f.constant(constant4{0, 1, 2, 3})
	f.DUPW(v, p.n)
	f.CMHI(v, v, index)
	return v
}

// at returns the address of vector i from base.
func at(base a64.X, i int) a64.Mem { return a64.At(base, i*vectorBytes) }

// whole writes the loop over n elements in steps. It leaves the number of remaining elements in n.
func (f *neonFunc) whole(n a64.X, step int, body func()) {
	loop, after := f.NewLabel("loop"), f.NewLabel("after")
	f.Do("SUBS", step, n, n)
	f.Do("BLT", after)
	f.Bind(loop)
	body()
	f.Do("SUBS", step, n, n)
	f.Do("BGE", loop)
	f.Bind(after)
	f.Do("ADD", step, n)
}

// fold combines all lanes of the accumulators with op, the furthest apart first, and returns the
// result in the first lane.
func (f *neonFunc) fold(acc []a64.V, op func(d, n, m a64.V)) a64.V {
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

// returnFirst stores the first lane of v as the result and returns.
func (f *neonFunc) returnFirst(v a64.V) {
	f.Do("FMOVS", v, f.Result(0))
	f.Return()
}

// returnNone stores whether all bits of v are 0 as the result, and returns.
func (f *neonFunc) returnNone(v a64.V) {
	x := f.anyBit(v)
	f.Do("CMP", 0, x)
	f.Do("CSET", "EQ", x)
	f.Do("MOVB", x, f.Result(0))
	f.Return()
}

// anyBit returns a register that is 0 if and only if all bits of v are 0. It overwrites v.
func (f *neonFunc) anyBit(v a64.V) a64.X {
	x := f.X()
	f.UMAXV(v, v)
	f.FMOVW(x, v)
	return x
}

// repeat writes a loop that runs n times. n must be at least 1.
func (f *neonFunc) repeat(name string, n a64.X, body func()) {
	loop := f.NewLabel(name)
	f.Bind(loop)
	f.Scope(body)
	f.countDown(n, loop)
}

// countDown ends a loop that starts at a label and runs n times.
func (f *neonFunc) countDown(n a64.X, loop a64.Label) {
	f.Do("SUBS", 1, n, n)
	f.Do("BNE", loop)
}

// field loads the field of the arguments at the given offset in bytes.
func (f *neonFunc) field(args a64.X, offset int) a64.X {
	x := f.X()
	f.Do("MOVD", a64.At(args, offset), x)
	return x
}

// fields returns a function that loads the fields of the arguments at args, which have the given
// layout.
func (f *neonFunc) fields(args a64.X, layout func(field string) int) func(name string) a64.X {
	return func(name string) a64.X { return f.field(args, layout(name)) }
}
