package main

import (
	"slices"

	"github.com/attn-go/attn/internal/simd/_asm/a64"
)

// neonLanes are the lanes where bits are ones, or zeros if inverted.
type neonLanes struct {
	bits     a64.V
	inverted bool
}

func (f *neonProgram) pointer(name string) ptr {
	x := f.X()
	f.Do("MOVD", f.Param(name), x)
	return x
}

func (f *neonProgram) broadcast(name string) vec {
	v := f.V()
	f.Do("FMOVS", f.Param(name), v)
	f.DUP(v, v, 0)
	return v
}

func (f *neonProgram) zero() vec {
	v := f.V()
	f.Clear(v)
	return v
}

func (f *neonProgram) sums(lanes int) []vec {
	all := as[vec](f.Vs(lanes / f.lanes))
	f.clear(all)
	return all
}

func (f *neonProgram) vec() vec                 { return f.V() }
func (f *neonProgram) number(x float64) vec     { return f.num(x) }
func (f *neonProgram) constant(x float64) vec   { return f.num(x) }
func (f *neonProgram) bits(b uint32) vec        { return f.inRegister(bits4(b)) }
func (f *neonProgram) ln2() (high, low float64) { return ln2High, ln2Low }

func (f *neonProgram) add(d, a, b vec)        { f.FADD(d.(a64.V), a.(a64.V), b.(a64.V)) }
func (f *neonProgram) sub(d, a, b vec)        { f.FSUB(d.(a64.V), a.(a64.V), b.(a64.V)) }
func (f *neonProgram) mul(d, a, b vec)        { f.FMUL(d.(a64.V), a.(a64.V), b.(a64.V)) }
func (f *neonProgram) div(d, a, b vec)        { f.FDIV(d.(a64.V), a.(a64.V), b.(a64.V)) }
func (f *neonProgram) sqrt(d, a vec)          { f.FSQRT(d.(a64.V), a.(a64.V)) }
func (f *neonProgram) addProduct(d, a, b vec) { f.FMLA(d.(a64.V), a.(a64.V), b.(a64.V)) }
func (f *neonProgram) subProduct(d, a, b vec) { f.FMLS(d.(a64.V), a.(a64.V), b.(a64.V)) }
func (f *neonProgram) mulAdd(a, b, c vec) vec { f.addProduct(c, a, b); return c }

// FMAXNM ignores a NaN, FMAX and FMIN keep it. To them 0 is larger than -0, so plusZero has nothing to do.
func (f *neonProgram) larger(d, a vec)      { f.FMAXNM(d.(a64.V), d.(a64.V), a.(a64.V)) }
func (f *neonProgram) atLeast(d, a vec)     { f.FMAX(d.(a64.V), d.(a64.V), a.(a64.V)) }
func (f *neonProgram) plusZero(d, zero vec) {}
func (f *neonProgram) or(d, a, b vec)       { f.ORR(d.(a64.V), a.(a64.V), b.(a64.V)) }
func (f *neonProgram) and(d, a, b vec)      { f.AND(d.(a64.V), a.(a64.V), b.(a64.V)) }
func (f *neonProgram) exponent(d vec)       { f.SHL(d.(a64.V), d.(a64.V), 23) }
func (f *neonProgram) atMost(d, a vec)      { f.FMIN(d.(a64.V), d.(a64.V), a.(a64.V)) }
func (f *neonProgram) sign(a, _ vec) vec    { return a }
func (f *neonProgram) set(d, a vec)         { f.MOV(d.(a64.V), a.(a64.V)) }
func (f *neonProgram) spare(c vec) vec      { return f.copy(c) }

func (f *neonProgram) copy(a vec) vec {
	v := f.V()
	f.MOV(v, a.(a64.V))
	return v
}

// FMLS subtracts the product from the addend, so a·b - c is a·b + (-c).
func (f *neonProgram) mulSub(a, b, c vec) vec {
	v := f.V()
	f.FNEG(v, c.(a64.V))
	return f.mulAdd(a, b, v)
}

func (f *neonProgram) lost(a, square vec) vec { return f.mulSub(a, a, square) }

func (f *neonProgram) setSign(d, sign, negative vec) {
	f.BIT(d.(a64.V), sign.(a64.V), negative.(a64.V))
}

func (f *neonProgram) nonzero(a, _ vec) lanes {
	v := f.V()
	f.FCMEQ0(v, a.(a64.V))
	return neonLanes{v, true}
}

func (f *neonProgram) positive(a, _ vec) lanes {
	v := f.V()
	f.FCMGT0(v, a.(a64.V))
	return neonLanes{v, false}
}

func (f *neonProgram) negative(a, _ vec) lanes {
	v := f.V()
	f.FCMLT0(v, a.(a64.V))
	return neonLanes{v, false}
}

func (f *neonProgram) choose(l lanes, a, b vec) vec {
	f.BIT(b.(a64.V), a.(a64.V), l.(neonLanes).bits)
	return b
}

// No comparison with NaN is true, so that the choice takes high for it, as FMIN would not.
func (f *neonProgram) limited(a, high, low vec) vec {
	v := f.V()
	f.FCMGT(v, high.(a64.V), a.(a64.V))
	f.BSL(v, a.(a64.V), high.(a64.V))
	f.atLeast(v, low)
	return v
}

// The inverse of b > a, which is false for NaN.
func (f *neonProgram) notLess(a, b vec) lanes {
	v := f.V()
	f.FCMGT(v, b.(a64.V), a.(a64.V))
	return neonLanes{v, true}
}

func (f *neonProgram) mulWhere(l lanes, d, a vec) {
	f.mul(d, d, a)
	f.keep(l, d)
}

func (f *neonProgram) keep(l lanes, d vec) {
	op := f.AND
	if l.(neonLanes).inverted {
		op = f.BIC
	}
	op(d.(a64.V), d.(a64.V), l.(neonLanes).bits)
}

// BIT and BIF leave the other lanes of d as they are; a sum with 0 would turn -0 into 0.
func (f *neonProgram) addWhere(l lanes, a, d vec) {
	op := f.BIT
	if l.(neonLanes).inverted {
		op = f.BIF
	}
	f.add(a, a, d)
	op(d.(a64.V), a.(a64.V), l.(neonLanes).bits)
}

func (f *neonProgram) load(x ptr, i int) vec {
	v := f.V()
	f.Scope(func() {
		at := x.(a64.X)
		if i > 0 {
			at = f.X()
			f.Do("ADD", 4*i, x, at)
		}
		f.LD1R(v, at)
	})
	return v
}

func (f *neonProgram) clear(all []vec) {
	for _, v := range all {
		f.Clear(v.(a64.V))
	}
}

func (f *neonProgram) polynomial(c []float64) func(x vec) vec {
	return func(x vec) vec {
		p, next := f.num(c[len(c)-1]), f.V()
		for _, v := range slices.Backward(c[:len(c)-1]) {
			// FMLA overwrites its addend, so that each coefficient is loaded again, by a unit that is free
			f.loadConstant(next, number(v))
			f.FMLA(next, p, x.(a64.V))
			p, next = next, p
		}
		return p
	}
}

func (f *neonProgram) longPolynomial(c []float64) func(x vec) vec { return f.polynomial(c) }

func (f *neonProgram) expPolynomial(c []float64) func(x vec) vec { return f.polynomial(c) }

func (f *neonProgram) powerPolynomial(c []float64) func(x vec) vec { return f.polynomial(c) }

func (f *neonProgram) draws() func() lanes {
	d := newNeonDraws(f)
	return func() lanes { return neonLanes{bits: d.next()} }
}

func (f *neonProgram) repeat(n ptr, body func()) {
	loop := f.NewLabel("repeat")
	f.Bind(loop)
	f.Scope(body)
	f.countDown(n, loop)
}

func (f *neonProgram) scope(body func())    { f.Scope(body) }
func (f *neonProgram) advance(x, bytes ptr) { f.Do("ADD", bytes, x) }

func (f *neonProgram) floats(name string) ptr {
	n := f.pointer(name)
	f.Do("LSL", 2, n)
	return n
}

func (f *neonProgram) advanceBy(length string, all ...ptr) {
	f.Scope(func() {
		n := f.pointer(length).(a64.X)
		for _, x := range all {
			f.Do("ADD", n.String()+"<<2", x)
		}
	})
}

func (f *neonProgram) move(bytes int, all ...ptr) {
	for _, x := range all {
		f.Do("ADD", bytes, x)
	}
}

func (f *neonProgram) moveRows(bytes int, rows []ptr) { f.move(bytes, rows...) }

func (f *neonProgram) place(x ptr) ptr {
	to := f.X()
	f.Do("MOVD", x, to)
	return to
}

func (f *neonProgram) read(x ptr, i int, e extent) vec {
	v := f.V()
	f.readInto(v, x, i, e)
	return v
}

func (f *neonProgram) readInto(d vec, x ptr, i int, e extent) {
	p, _ := e.(*part)
	f.readAt(d.(a64.V), at(x.(a64.X), i), p)
}

func (f *neonProgram) operand(x ptr, i int) vec { return f.read(x, i, nil) }
func (f *neonProgram) once(x ptr, i int) vec    { return f.read(x, i, nil) }

func (f *neonProgram) write(v vec, x ptr, i int, e extent) {
	p, _ := e.(*part)
	f.writeAt(v.(a64.V), at(x.(a64.X), i), p)
}

func (f *neonProgram) first(n ptr) extent { return &part{n.(a64.X), true} }
func (f *neonProgram) few(n ptr) extent   { return &part{n.(a64.X), false} }

func (f *neonProgram) rows(first, distance ptr, n int) []ptr { return pointers(f, first, distance, n) }

func (f *neonProgram) rowSets(distance ptr, n int, first ...ptr) [][]ptr {
	return setsOfPointers(f, distance, n, first)
}

func (f *neonProgram) field(args ptr, offset int) ptr {
	x := f.X()
	f.Do("MOVD", a64.At(args.(a64.X), offset), x)
	return x
}

func (f *neonProgram) ifElse(c condition, body, otherwise func()) {
	other := f.NewLabel(c.label() + "Else")
	f.Scope(func() {
		switch {
		case c.x != nil:
			f.Do("CBZ", c.x, other)
		case c.v != nil:
			bits := c.v.(a64.V)
			f.SHL(bits, bits, 1) // only 0 and -0 have no bits other than the sign
			f.Do("CBZ", f.anyBit(bits), other)
		default:
			f.Do("CMP", c.n, c.args.field(c.field))
			if c.not {
				f.Do("BEQ", other)
			} else {
				f.Do("BNE", other)
			}
		}
	})
	f.Scope(body)
	if otherwise == nil {
		f.Bind(other)
		return
	}
	done := f.NewLabel(c.label() + "Done")
	f.Do("JMP", done)
	f.Bind(other)
	f.Scope(otherwise)
	f.Bind(done)
}

// reciprocal returns r and c whose product is 1/d. The estimate has eight bits; one step of
// Newton's method gives sixteen, and a second step, by c, full precision.
func (f *neonProgram) reciprocal(d vec) (r, c a64.V) {
	r, c = f.V(), f.V()
	f.FRECPE(r, d.(a64.V))
	f.FRECPS(c, d.(a64.V), r)
	f.FMUL(r, r, c)
	f.FRECPS(c, d.(a64.V), r)
	return r, c
}

func (f *neonProgram) quotients() func(sum, n, d vec) {
	return func(sum, n, d vec) {
		r, c := f.reciprocal(d)
		f.mul(n, n, r)
		f.addProduct(sum, n, c)
	}
}

func (f *neonProgram) inverses(one vec) func(x vec) vec {
	return func(x vec) vec {
		result := f.copy(one)
		r, c := f.reciprocal(x)
		f.subProduct(result, r, c)
		return result
	}
}

// total returns the total in the first lane.
func (f *neonProgram) total(sums []vec) a64.V {
	return f.fold(as[a64.V](sums), f.FADD)
}

func (f *neonProgram) returnSums(sums ...[]vec) {
	for i, all := range sums {
		f.Do("FMOVS", f.total(all), f.Result(i))
	}
	f.Return()
}

func (f *neonProgram) storeSum(sums []vec, to ptr) { f.STRS(f.total(sums), a64.At(to.(a64.X), 0)) }

func (f *neonProgram) storeLargest(all []vec, to ptr) {
	f.STRS(f.fold(as[a64.V](all), f.FMAXNM), a64.At(to.(a64.X), 0))
}

func (f *neonProgram) meanOf(sums []vec, size vec, to ptr) vec {
	mean := f.V()
	f.DUP(mean, f.total(sums), 0)
	f.div(mean, mean, size)
	if to != nil {
		f.STRS(mean, a64.At(to.(a64.X), 0))
	}
	return mean
}

func (f *neonProgram) inverseOf(sums []vec, size, eps, one vec, to ptr) vec {
	v := f.meanOf(sums, size, nil)
	f.add(v, v, eps)
	f.sqrt(v, v)
	f.div(v, one, v)
	f.STRS(v.(a64.V), a64.At(to.(a64.X), 0))
	return v
}

func (f *neonProgram) returnNone(v vec) {
	x := f.anyBit(v.(a64.V))
	f.Do("CMP", 0, x)
	f.Do("CSET", "EQ", x)
	f.Do("MOVB", x, f.Result(0))
	f.Return()
}

func (f *neonProgram) end() { f.Return() }

func (f *neonProgram) along(length string, all ...ptr) loop {
	places := ofFloats(&moving{p: f}, all)
	return loop{f, f.pointer(length), places}
}

func (f *neonProgram) whole(n ptr, step int, body func()) {
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

func (f *neonProgram) tail(n ptr, count int, body func(i int, e extent)) {
	done, rest := f.NewLabel("done"), make([]a64.Label, count)
	for i := range rest {
		rest[i] = f.NewLabel("rest")
	}
	for i := range count {
		f.Do("CMP", f.lanes, n)
		f.Do("BLT", rest[i])
		f.Scope(func() { body(i, nil) })
		f.Do("SUB", f.lanes, n)
	}
	f.Do("JMP", done)
	for i := range count {
		f.Bind(rest[i])
		f.Do("CBZ", n, done)
		f.Scope(func() { body(i, f.few(n)) })
		if i < count-1 {
			f.Do("JMP", done)
		}
	}
	f.Bind(done)
}

func (f *neonProgram) widen(n stored, x ptr, i int) vec {
	v := f.V()
	f.widenAt(n, v, a64.At(x.(a64.X), i*f.lanes*n.bytes))
	return v
}

func (f *neonProgram) lanesOf(e extent) lanes { return neonLanes{bits: f.ones(e.(*part))} }
