package main

import (
	"math"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func register(v vec) reg.VecVirtual { return v.(reg.VecVirtual) }

func base(x ptr) reg.GPVirtual { return x.(reg.GPVirtual) }

// mem returns the address at a pointer. Pointers to rows are addresses already.
func mem(x ptr) Mem {
	if m, ok := x.(Mem); ok {
		return m
	}
	return Mem{Base: base(x)}
}

func (s avxProgram) pointer(name string) ptr  { return pointer(name) }
func (s avxProgram) vec() vec                 { return s.reg() }
func (s avxProgram) number(x float64) vec     { return s.numReg(x) }
func (s avxProgram) constant(x float64) vec   { return s.num(x) }
func (s avxProgram) bits(b uint32) vec        { return s.bitsOp(b) }
func (s avxProgram) ln2() (high, low float64) { return ln2High, ln2Low }

// broadcast does not load a scalar, because that would take an SSE instruction, which costs hundreds
// of cycles after a kernel has written to a whole vector.
func (s avxProgram) broadcast(name string) vec {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	v := s.reg()
	VBROADCASTSS(p.Addr, v)
	return v
}

func (s avxProgram) zero() vec {
	v := s.reg()
	s.setZero(v)
	return v
}

func (s avxProgram) sums(lanes int) []vec {
	all := as[vec](s.vecs(lanes / s.lanes))
	s.clear(all)
	return all
}

// Go's assembler has the destination last, and only its first operand may be memory. A program has the
// destination first and the operand that may be memory last, so each method turns the order round.
//
// The digits of a fused instruction say which operands it multiplies and which it adds: 231 overwrites the
// addend, 213 a factor. So neither addProduct nor mulAdd needs a copy.
//
// VMAXPS and VMINPS return their first operand, in Go's order, if either is NaN or both are zeros. The
// order therefore decides whether a NaN survives: in atLeast and atMost it is d, in larger the operand that
// may be memory. Of two zeros atLeast returns d, which may be -0: plusZero turns it into 0.
func (s avxProgram) add(d, a, b vec)        { VADDPS(b.(Op), register(a), register(d)) }
func (s avxProgram) sub(d, a, b vec)        { VSUBPS(b.(Op), register(a), register(d)) }
func (s avxProgram) mul(d, a, b vec)        { VMULPS(b.(Op), register(a), register(d)) }
func (s avxProgram) div(d, a, b vec)        { VDIVPS(b.(Op), register(a), register(d)) }
func (s avxProgram) sqrt(d, a vec)          { VSQRTPS(register(a), register(d)) }
func (s avxProgram) addProduct(d, a, b vec) { VFMADD231PS(b.(Op), register(a), register(d)) }
func (s avxProgram) subProduct(d, a, b vec) { VFNMADD231PS(b.(Op), register(a), register(d)) }
func (s avxProgram) mulAdd(a, b, c vec) vec { VFMADD213PS(c.(Op), register(b), register(a)); return a }
func (s avxProgram) mulSub(a, b, c vec) vec { VFMSUB213PS(c.(Op), register(b), register(a)); return a }
func (s avxProgram) larger(d, a vec)        { VMAXPS(a.(Op), register(d), register(d)) }
func (s avxProgram) atLeast(d, a vec)       { VMAXPS(register(d), register(a), register(d)) }
func (s avxProgram) plusZero(d, zero vec)   { s.add(d, d, zero) }
func (s avxProgram) exponent(d vec)         { VPSLLD(U8(23), register(d), register(d)) }
func (s avxProgram) atMost(d, a vec)        { VMINPS(register(d), register(a), register(d)) }
func (s avxProgram) spare(c vec) vec        { return c }

func (s avxProgram) or(d, a, b vec) {
	if s.lanes == 16 {
		VPORD(b.(Op), register(a), register(d))
	} else {
		VORPS(b.(Op), register(a), register(d))
	}
}

func (s avxProgram) and(d, a, b vec) {
	if s.lanes == 16 {
		VPANDD(b.(Op), register(a), register(d)) // VANDPS needs AVX-512DQ
	} else {
		VANDPS(b.(Op), register(a), register(d))
	}
}

func (s avxProgram) copy(a vec) vec {
	v := s.reg()
	s.set(v, a)
	return v
}

func (s avxProgram) set(d, a vec) { VMOVUPS(a.(Op), register(d)) }

// The product inside a fused instruction is exact, so the difference is what rounding the square has lost.
func (s avxProgram) lost(a, square vec) vec {
	v := register(s.copy(square))
	VFMSUB231PS(register(a), register(a), v)
	return v
}

func (s avxProgram) sign(a, negative vec) vec {
	v := s.reg()
	s.and(v, a, negative)
	return v
}

// d is a magnitude, without a sign to clear.
func (s avxProgram) setSign(d, sign, _ vec) { s.or(d, d, sign) }

func (s avxProgram) nonzero(a, zero vec) lanes {
	return s.compare(notEqual, register(a), register(zero))
}
func (s avxProgram) positive(a, zero vec) lanes { return s.compare(less, register(a), register(zero)) }
func (s avxProgram) negative(a, zero vec) lanes { return s.compare(less, register(zero), register(a)) }
func (s avxProgram) choose(l lanes, a, b vec) vec {
	return s.blend(l.(mask), register(a), register(b))
}

func (s avxProgram) limited(a, high, low vec) vec {
	v := s.reg()
	VMINPS(register(high), register(a), v) // if one operand is NaN, the result is the first operand
	VMAXPS(register(low), v, v)
	return v
}

func (s avxProgram) notLess(a, b vec) lanes { return s.compare(notLess, b.(Op), register(a)) }

func (s avxProgram) mulWhere(l lanes, d, a vec) {
	if s.lanes == 16 {
		VMULPS_Z(register(a), register(d), l.(mask).k, register(d))
	} else {
		s.mul(d, d, a)
		s.keep(l, d)
	}
}

func (s avxProgram) keep(l lanes, d vec) {
	v, m := register(d), l.(mask)
	switch {
	case s.lanes == 16:
		VMOVAPS_Z(v, m.k, v)
	case m.others:
		VANDNPS(v, m.y, v)
	default:
		VANDPS(m.y, v, v)
	}
}

// On AVX2 lanes are chosen after the sum: adding 0 in the other lanes would turn a -0 of d into 0.
func (s avxProgram) addWhere(l lanes, a, d vec) {
	x, sum, m := register(a), register(d), l.(mask)
	if s.lanes == 16 {
		VADDPS(x, sum, m.k, sum)
		return
	}
	VADDPS(x, sum, x)
	if m.others {
		VBLENDVPS(m.y, sum, x, sum)
	} else {
		VBLENDVPS(m.y, x, sum, sum)
	}
}

func (s avxProgram) load(x ptr, i int) vec {
	v := s.reg()
	VBROADCASTSS(mem(x).Offset(4*i), v)
	return v
}

func (s avxProgram) clear(all []vec) {
	for _, v := range all {
		s.setZero(register(v))
	}
}

func (s avxProgram) polynomial(c []float64) func(x vec) vec { return s.horner(c, s.num) }

// A long polynomial has more coefficients than there are registers to spare, so they stay in memory on
// AVX-512, too.
func (s avxProgram) longPolynomial(c []float64) func(x vec) vec {
	return s.horner(c, func(x float64) Op { return constant(math.Float32bits(float32(x))) })
}

func (s avxProgram) expPolynomial(c []float64) func(x vec) vec { return s.polynomial(c) }

func (s avxProgram) powerPolynomial(c []float64) func(x vec) vec { return s.polynomial(c) }

// horner is polynomial with the operands of the coefficients.
func (s avxProgram) horner(c []float64, operand func(x float64) Op) func(x vec) vec {
	var ops []Op
	for _, x := range c {
		ops = append(ops, operand(x))
	}
	return func(x vec) vec {
		p := s.reg()
		VMOVUPS(ops[len(c)-1], p)
		for _, op := range slices.Backward(ops[:len(c)-1]) {
			VFMADD213PS(op, register(x), p)
		}
		return p
	}
}

func (s avxProgram) draws() func() lanes {
	key := pointer("key")
	d := s.unstarted()
	d.start(key)
	return func() lanes { return d.next() }
}

func (s avxProgram) scope(body func())    { body() }
func (s avxProgram) advance(x, bytes ptr) { ADDQ(base(bytes), base(x)) }

func (s avxProgram) floats(name string) ptr {
	n := pointer(name)
	SHLQ(U8(2), n)
	return n
}

func (s avxProgram) advanceBy(length string, all ...ptr) {
	n := pointer(length)
	for _, x := range all {
		LEAQ(Mem{Base: base(x), Index: n, Scale: 4}, base(x))
	}
}

func (s avxProgram) move(bytes int, all ...ptr) {
	for _, x := range all {
		addBytes(bytes, base(x))
	}
}

// An immediate of eight bits has a sign, so the short form ends at 127. Loops in fewer bytes fit better
// into the cache of decoded instructions.
func addBytes(n int, x reg.Register) {
	if n < 128 {
		ADDQ(U8(n), x)
	} else {
		ADDQ(I32(n), x)
	}
}

func (s avxProgram) place(x ptr) ptr {
	to := GP64()
	if m, ok := x.(Mem); ok {
		LEAQ(m, to)
	} else {
		MOVQ(base(x), to)
	}
	return to
}

func (s avxProgram) read(x ptr, i int, e extent) vec {
	v := s.reg()
	s.readInto(v, x, i, e)
	return v
}

func (s avxProgram) readInto(d vec, x ptr, i int, e extent) {
	m, _ := e.(*mask)
	s.readAt(mem(x).Offset(i*s.bytes()), m, register(d))
}

func (s avxProgram) operand(x ptr, i int) vec {
	if s.lanes == 16 { // which has enough registers
		return s.read(x, i, nil)
	}
	return s.once(x, i)
}

func (s avxProgram) once(x ptr, i int) vec { return mem(x).Offset(i * s.bytes()) }

func (s avxProgram) write(v vec, x ptr, i int, e extent) {
	m, _ := e.(*mask)
	s.writeAt(register(v), m, mem(x).Offset(i*s.bytes()))
}

func (s avxProgram) first(n ptr) extent {
	m := s.firstLanes(base(n))
	return &m
}

func (s avxProgram) few(n ptr) extent { return s.first(n) }

// Rows are the addresses first, first+d, first+2·d and first+3·d: four rows take three registers, each further set of
// rows takes one, and a loop moves all of them by moving first.
func (s avxProgram) rowSets(distance ptr, n int, first ...ptr) [][]ptr {
	var row3 reg.Register
	if n == additiveRows {
		row3 = GP64()
		LEAQ(Mem{Base: base(distance), Index: base(distance), Scale: 2}, row3)
	}
	var sets [][]ptr
	for _, x := range first {
		one, two := Mem{Base: base(x)}, Mem{Base: base(x), Index: base(distance), Scale: 1}
		three := two
		three.Scale = 2
		four := Mem{Base: base(x), Index: row3, Scale: 1}
		sets = append(sets, []ptr{one, two, three, four}[:n])
	}
	return sets
}

func (s avxProgram) rows(first, distance ptr, n int) []ptr { return s.rowSets(distance, n, first)[0] }

func (s avxProgram) moveRows(bytes int, rows []ptr) { addBytes(bytes, mem(rows[0]).Base) }

func (s avxProgram) field(args ptr, offset int) ptr {
	r := GP64()
	MOVQ(mem(args).Offset(offset), r)
	return r
}

// general returns a field in a general register.
func (a arguments) general(name string) reg.GPVirtual { return base(a.field(name)) }

// A division starts only every few cycles, and an estimate of the inverse, r, every cycle. With e = 1 - d·r
// the inverse is r·(1 + e + e² + …). VRCP14PS is right to 14 bits, so that r·(1 + e) = r·(2 - d·r) has all
// 24. VRCPPS is right to fewer than 12, so that e² is needed too.
func (s avxProgram) quotients() func(sum, n, d vec) {
	one, two := s.num(1), s.num(2)
	return func(sum, numerator, denominator vec) {
		acc, n, d, r, c := register(sum), register(numerator), register(denominator), s.reg(), s.reg()
		if s.lanes == 16 {
			VRCP14PS(d, r)
			VMOVUPS(two, c)
			VFNMADD231PS(r, d, c)
			VMULPS(r, n, n)
			VFMADD231PS(c, n, acc)
			return
		}
		VRCPPS(d, r)
		VMOVUPS(one, c)
		VFNMADD231PS(r, d, c)
		VFMADD213PS(c, c, c) // e+e²
		VMULPS(r, n, n)
		VFMADD213PS(n, n, c)
		VADDPS(c, acc, acc)
	}
}

func (s avxProgram) inverses(ones vec) func(x vec) vec {
	one, two := register(ones), s.num(2)
	return func(argument vec) vec {
		x, r, c := register(argument), s.reg(), s.reg()
		if s.lanes == 16 {
			VRCP14PS(x, r)
			VMOVUPS(two, c)
			VFNMADD231PS(r, x, c)
			VFNMADD213PS(one, r, c)
			return c
		}
		VRCPPS(x, r)
		VMOVUPS(one, c)
		VFNMADD231PS(r, x, c)
		VFMADD213PS(c, c, c) // e+e²
		VSUBPS(r, one, x)
		VFNMADD231PS(c, r, x)
		return x
	}
}

// total returns the total in the first lane.
func (s avxProgram) total(sums []vec) reg.Register {
	return s.fold(as[reg.VecVirtual](sums), addPS).AsX()
}

// Results have their places on the stack: the kernels use Go's ABI0, in which arguments and results are in
// memory, and all registers are free. Store knows the offsets from the declaration.
func (s avxProgram) returnSums(sums ...[]vec) {
	for i, all := range sums {
		Store(s.total(all), ReturnIndex(i))
	}
	s.end()
}

func (s avxProgram) storeSum(sums []vec, to ptr) { VMOVSS(s.total(sums), Mem{Base: base(to)}) }

func (s avxProgram) storeLargest(all []vec, to ptr) {
	largest := s.fold(as[reg.VecVirtual](all), func(a, b, dst Op) { VMAXPS(a, b, dst) })
	VMOVSS(largest.AsX(), Mem{Base: base(to)})
}

func (s avxProgram) meanOf(sums []vec, size vec, to ptr) vec {
	mean, sum := s.reg(), s.total(sums)
	VDIVSS(register(size).AsX(), sum, sum)
	return s.spread(sum, mean, to)
}

func (s avxProgram) inverseOf(sums []vec, size, eps, one vec, to ptr) vec {
	inverse, sum := s.reg(), s.total(sums)
	VDIVSS(register(size).AsX(), sum, sum)
	VADDSS(register(eps).AsX(), sum, sum)
	VSQRTSS(sum, sum, sum)
	VDIVSS(sum, register(one).AsX(), sum)
	return s.spread(sum, inverse, to)
}

// spread stores x, unless to is nil, and sets all lanes of v to it.
func (s avxProgram) spread(x reg.Register, v reg.VecVirtual, to ptr) vec {
	if to != nil {
		VMOVSS(x, Mem{Base: base(to)})
	}
	VBROADCASTSS(x, v)
	return v
}

func (s avxProgram) returnNone(v vec) {
	s.testBits(v.(Op), register(v))
	ok := GP8()
	SETEQ(ok)
	Store(ok, ReturnIndex(0))
	s.end()
}

func (s avxProgram) widen(n stored, x ptr, i int) vec {
	v := s.reg()
	s.widenAt(n, mem(x).Offset(i*s.lanes*n.bytes), v)
	return v
}

func (s avxProgram) lanesOf(e extent) lanes { return *e.(*mask) }
