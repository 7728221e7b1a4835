package main

import "maps"

// A program writes a kernel for one instruction set. The simple kernels are functions of a program:
// each is written once, for AVX2, AVX-512, NEON and WebAssembly. Kernels whose speed depends on the
// number of registers, or on instructions that only one processor has, are written for each.
//
// Operations have the destination first. It may be one of the operands, and the other vectors are
// not changed unless the comment says so.
type program interface {
	pointer(name string) ptr   // loads a parameter: a pointer or an integer
	broadcast(name string) vec // a parameter, a float, in all lanes
	vec() vec                  // a new vector, undefined
	zero() vec
	number(x float64) vec
	sums(lanes int) []vec // zeros: vectors for the sums, fewer on WebAssembly
	clear(all []vec)      // sets all to 0
	copy(a vec) vec

	// constant and bits return a constant that is only the last operand of operations: in memory, if
	// there are few registers.
	constant(x float64) vec
	bits(b uint32) vec
	ln2() (high, low float64) // of ln 2; the product of high and a small integer is exact

	add(d, a, b vec)          // a + b
	sub(d, a, b vec)          // a - b
	mul(d, a, b vec)          // a·b
	div(d, a, b vec)          // a/b
	sqrt(d, a vec)            // √a
	addProduct(d, a, b vec)   // d + a·b
	subProduct(d, a, b vec)   // d - a·b
	mulAdd(a, b, c vec) vec   // a·b + c, in the place of a or of c
	mulSub(a, b, c vec) vec   // a·b - c, in the place of a or in a new vector
	atLeast(d, a vec)         // the larger of d and a, NaN if d is NaN; for equal zeros either
	plusZero(d, zero vec)     // 0 for -0, after atLeast
	or(d, a vec)              // the bits of either
	and(d, a, b vec)          // the bits of both
	exponent(d vec)           // d<<23, as integers
	atMost(d, a vec)          // the smaller of d and a, NaN if d is NaN
	lost(a, square vec) vec   // a² - square
	sign(a, negative vec) vec // the sign of a, for setSign, before a is overwritten; negative is its bit
	setSign(d, sign, negative vec)
	spare(c vec) vec           // c, for mulAdd to overwrite if it overwrites this operand
	nonzero(a, zero vec) lanes // where a is not 0
	positive(a, zero vec) lanes
	negative(a, zero vec) lanes
	notLess(a, b vec) lanes       // where a is at least b, or either is NaN
	mulWhere(l lanes, d, a vec)   // d·a there, 0 elsewhere
	choose(l lanes, a, b vec) vec // a there, b elsewhere; overwrites b
	limited(a, high, low vec) vec // a, but at most high and at least low, and high for NaN
	keep(l lanes, d vec)          // 0 elsewhere
	addWhere(l lanes, a, d vec)   // d + a there; overwrites a

	// These return functions that write the polynomial c[0] + x·(c[1] + x·(c[2] + …)), and may overwrite
	// x. That of exp is twice its expansion, that of a power is of 2^x. The constants of a long one are
	// never all in registers.
	polynomial(c []float64) func(x vec) vec
	longPolynomial(c []float64) func(x vec) vec
	expPolynomial(c []float64) func(x vec) vec
	powerPolynomial(c []float64) func(x vec) vec

	// draws starts the random stream of the parameters key and threshold. The function writes the next
	// draws, and returns the lanes to keep.
	draws() func() lanes

	// along starts a loop over slices whose length is in the named parameter.
	along(length string, slices ...ptr) loop

	load(x ptr, i int) vec               // float i after x, in all lanes
	eachRow(body func())                 // repeats body as often as the parameter rows, at least 1, says
	advance(x, bytes ptr)                // adds bytes to a pointer
	advanceBy(length string, all ...ptr) // moves pointers by the floats that a parameter says
	next(all ...ptr)                     // moves pointers by one float
	ifAny(v vec, body func())            // runs body if any lane of v is neither 0 nor -0; overwrites v

	// The lanes of sums are added the furthest apart first.
	returnSums(sums ...[]vec)                             // ends the kernel with the totals
	storeSum(sums []vec, to ptr)                          // stores the total
	meanOf(sums []vec, size vec, to ptr) vec              // total/size in all lanes; stores it, unless to is nil
	inverseOf(sums []vec, size, eps, one vec, to ptr) vec // 1/√(total/size + eps), likewise

	returnNone(v vec) // ends the kernel with whether all bits of v are 0
	end()             // ends the kernel

	// by returns the number for the instruction set.
	by(amd64, neon, wasm int) int
}

// Registers of a program, in the type of its instruction set.
type (
	ptr   any // a pointer or an integer
	vec   any // a vector of floats
	lanes any // some lanes of a vector
)

// A loop goes along slices.
type loop interface {
	// each calls body to write the code for one vector of a step of unroll vectors, then for single
	// vectors, and then for the remainder.
	each(unroll int, body func(s step))
	// inLanes is each for count vectors, and vector i of the slices is number i % count of body, also
	// the last and incomplete one.
	inLanes(count int, body func(i int, s step))
}

// A step is one vector of each slice of a loop, or the first lanes of one.
type step interface {
	load(x ptr) vec // lanes after the end are 0
	store(v vec, x ptr)
	keep(v vec) // sets lanes after the end to 0
}

// as returns registers of a program in the type of its instruction set, or the other way round.
func as[To, From any](all []From) []To {
	to := make([]To, len(all))
	for i, x := range all {
		to[i] = any(x).(To)
	}
	return to
}

// shared is for kernels that are written once for all instruction sets.
func shared(write func(p program)) code {
	return avx(func(s isa) { write(avxProgram{s}) }).
		neon(func(f *neonFunc) { write(neonProgram{f}) }).
		wasm(func(f *wasmFunc) { write(wasmProgram{f}) })
}

// replaced returns c with other code for some instruction sets.
func (c code) replaced(some code) code {
	maps.Copy(c, some)
	return c
}

// unary writes the loop that sets dst to op(x), and ends the kernel.
func unary(p program, dst, x ptr, unroll int, op func(v vec) vec) {
	p.along("n", dst, x).each(unroll, func(s step) { s.store(op(s.load(x)), dst) })
	p.end()
}
