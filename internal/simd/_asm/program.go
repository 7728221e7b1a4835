package main

import "maps"

// A program writes a kernel for one instruction set. Most kernels are functions of a program: each is
// written once, for AVX2, AVX-512, NEON and WebAssembly. Code whose speed depends on the number of
// registers, or on instructions that only one processor has, is written for each.
//
// Operations have the destination first. It may be one of the operands, and the other vectors are
// not changed unless the comment says so.
type program interface {
	pointer(name string) ptr   // loads a parameter: a pointer or an integer
	floats(name string) ptr    // loads a parameter, a number of floats, in bytes
	broadcast(name string) vec // a parameter, a float, in all lanes
	vec() vec                  // a new vector, undefined
	zero() vec
	number(x float64) vec
	copy(a vec) vec
	set(d, a vec)         // a
	sums(lanes int) []vec // zeros: vectors for the sums, fewer on WebAssembly
	clear(all []vec)      // sets all to 0

	// constant and bits return a constant that can only be the last operand. On AVX2, which has few
	// registers, it is in memory.
	constant(x float64) vec
	bits(b uint32) vec
	ln2() (high, low float64) // ln 2 in two parts; the product of high and a small integer is exact

	add(d, a, b vec)        // a + b
	sub(d, a, b vec)        // a - b
	mul(d, a, b vec)        // a·b
	div(d, a, b vec)        // a/b
	sqrt(d, a vec)          // √a
	addProduct(d, a, b vec) // d + a·b
	subProduct(d, a, b vec) // d - a·b
	larger(d, a vec)        // the larger of d and a, either if one is NaN
	atLeast(d, a vec)       // the larger of d and a, NaN if d is NaN; of two zeros, either
	plusZero(d, zero vec)   // 0 for -0, after atLeast
	atMost(d, a vec)        // the smaller of d and a, NaN if d is NaN
	or(d, a, b vec)         // the bits of a or of b
	and(d, a, b vec)        // the bits of both a and b
	exponent(d vec)         // d<<23, as integers

	// mulAdd overwrites a or c, and mulSub may overwrite a. To preserve c, mulAdd is called with
	// spare(c).
	mulAdd(a, b, c vec) vec // a·b + c
	mulSub(a, b, c vec) vec // a·b - c
	spare(c vec) vec

	lost(a, square vec) vec       // a² - square
	limited(a, high, low vec) vec // a, but at most high and at least low, and high for NaN

	// setSign sets the sign of d to that of a, for which sign was called when a was not yet
	// overwritten. negative has the bit of the sign only.
	sign(a, negative vec) vec
	setSign(d, sign, negative vec)

	nonzero(a, zero vec) lanes    // where a is not 0
	positive(a, zero vec) lanes   // where a > 0
	negative(a, zero vec) lanes   // where a < 0
	notLess(a, b vec) lanes       // where a >= b, or either is NaN
	keep(l lanes, d vec)          // d in these lanes, 0 elsewhere
	mulWhere(l lanes, d, a vec)   // d·a in these lanes, 0 elsewhere
	addWhere(l lanes, a, d vec)   // adds a to d in these lanes; overwrites a
	choose(l lanes, a, b vec) vec // a in these lanes, b elsewhere; overwrites b

	// polynomial returns a function that writes c[0] + x·(c[1] + x·(c[2] + …)), and may overwrite x. The
	// other polynomials are the same, but the constants of a long one stay in memory, and WebAssembly
	// computes those of exponentials, which begin with 2 + 2x or with 1, by exact products.
	polynomial(c []float64) func(x vec) vec
	longPolynomial(c []float64) func(x vec) vec
	expPolynomial(c []float64) func(x vec) vec
	powerPolynomial(c []float64) func(x vec) vec

	// draws starts the random stream of the parameters key and threshold. The function that it returns
	// writes the next draws, and returns the lanes to keep.
	draws() func() lanes

	product(t *tiles) product // the loop over k of a matrix product

	// along starts a loop over slices whose length is in the named parameter. The other functions are
	// for loops over n elements. whole runs body for whole steps, and leaves the remaining number in n.
	// tail runs body for each vector of n elements, fewer than count vectors.
	along(length string, slices ...ptr) loop
	whole(n ptr, step int, body func())
	tail(n ptr, count int, body func(i int, e extent))
	lanesOf(e extent) lanes

	load(x ptr, i int) vec               // float i after x, in all lanes
	repeat(n ptr, body func())           // repeats body n times, at least once; may overwrite n
	advance(x, bytes ptr)                // adds bytes to a pointer
	advanceBy(length string, all ...ptr) // moves pointers; a parameter is the number of floats
	move(bytes int, all ...ptr)          // moves pointers
	place(x ptr) ptr                     // a copy, to move

	// Vector i after x, or some of its first lanes. read sets the other lanes to 0.
	read(x ptr, i int, e extent) vec
	readInto(d vec, x ptr, i int, e extent)
	operand(x ptr, i int) vec         // can only be the last operand: on AVX2, it is in memory
	once(x ptr, i int) vec            // operand for one operation
	widen(n stored, x ptr, i int) vec // stored numbers as floats
	write(v vec, x ptr, i int, e extent)
	first(n ptr) extent // the first n lanes, at least 1
	few(n ptr) extent   // first, but not for all lanes

	// rows returns addresses of n rows, at most additiveRows, at the given distance in bytes. They
	// are moved together.
	rows(first, distance ptr, n int) []ptr
	rowSets(distance ptr, n int, first ...ptr) [][]ptr // rows for each of first, which moveRows moves
	moveRows(bytes int, rows []ptr)

	field(args ptr, offset int) ptr // a pointer or an integer, offset bytes after args
	// ifElse runs body if the condition is true, or else otherwise, unless it is nil.
	ifElse(c condition, body, otherwise func())

	scope(body func())                // registers that body creates are free after it
	quotients() func(sum, n, d vec)   // returns a function that adds n/d to sum; overwrites n and d
	inverses(one vec) func(x vec) vec // returns a function that writes 1-1/x; overwrites x

	// The lanes of sums are added the furthest apart first.
	returnSums(sums ...[]vec)                             // ends the kernel with the totals
	storeSum(sums []vec, to ptr)                          // stores the total
	storeLargest(all []vec, to ptr)                       // stores the largest lane; may ignore NaN
	meanOf(sums []vec, size vec, to ptr) vec              // total/size in all lanes; stores it, unless to is nil
	inverseOf(sums []vec, size, eps, one vec, to ptr) vec // 1/√(total/size + eps), likewise

	returnNone(v vec) // ends the kernel with whether all bits of v are 0
	end()             // ends the kernel

	impl() *implementation

	// by returns the number for the instruction set.
	by(amd64, neon, wasm int) int
}

// Registers of a program, in the type of its instruction set.
type (
	ptr    any // a pointer or an integer
	vec    any // a vector of floats
	lanes  any // some lanes of a vector
	extent any // the first lanes of a vector; nil is all of them
)

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
	return avx(func(s avxProgram) { write(s) }).
		neon(func(f *neonProgram) { write(f) }).
		wasm(func(f *wasmProgram) { write(f) })
}

// replaced returns c with other code for some instruction sets.
func (c code) replaced(some code) code {
	maps.Copy(c, some)
	return c
}

// without returns c without the code for some instruction sets.
func (c code) without(some ...*implementation) code {
	for _, i := range some {
		delete(c, i)
	}
	return c
}

// copies returns n copies of a.
func copies(p program, a vec, n int) []vec {
	all := make([]vec, n)
	for i := range all {
		all[i] = p.copy(a)
	}
	return all
}

// eachRow writes a loop over rows, whose number is in the parameter rows. body writes the code for
// the row at the pointers and moves them to the next row.
func eachRow(p program, body func()) { p.repeat(p.pointer("rows"), body) }

// unary writes the loop that sets dst to op(x), and ends the kernel.
func unary(p program, dst, x ptr, unroll int, op func(v vec) vec) {
	p.along("n", dst, x).each(unroll, func(s step) { s.store(op(s.load(x)), dst) })
	p.end()
}
