package main

import "github.com/attn-go/attn/internal/simd/_asm/a64"

// A neonProgram writes with NEON.
type neonProgram struct{ *neonFunc }

// neonLanes are the lanes where bits are ones, or zeros if inverted.
type neonLanes struct {
	bits     a64.V
	inverted bool
}

func (f neonProgram) pointer(name string) ptr   { return f.neonFunc.pointer(name) }
func (f neonProgram) broadcast(name string) vec { return f.neonFunc.broadcast(name) }
func (f neonProgram) vec() vec                  { return f.V() }
func (f neonProgram) zero() vec                 { return f.neonFunc.zero() }
func (f neonProgram) sums(lanes int) []vec      { return vecs(f.accumulators(lanes)) }

func (f neonProgram) add(d, a, b vec)        { f.FADD(d.(a64.V), a.(a64.V), b.(a64.V)) }
func (f neonProgram) sub(d, a, b vec)        { f.FSUB(d.(a64.V), a.(a64.V), b.(a64.V)) }
func (f neonProgram) mul(d, a, b vec)        { f.FMUL(d.(a64.V), a.(a64.V), b.(a64.V)) }
func (f neonProgram) div(d, a, b vec)        { f.FDIV(d.(a64.V), a.(a64.V), b.(a64.V)) }
func (f neonProgram) sqrt(d, a vec)          { f.FSQRT(d.(a64.V), a.(a64.V)) }
func (f neonProgram) addProduct(d, a, b vec) { f.FMLA(d.(a64.V), a.(a64.V), b.(a64.V)) }
func (f neonProgram) mulAdd(a, b, c vec) vec { f.addProduct(c, a, b); return c }
func (f neonProgram) mulSub(a, b, c vec) vec { f.FNEG(c.(a64.V), c.(a64.V)); return f.mulAdd(a, b, c) }
func (f neonProgram) atLeast(d, a vec)       { f.FMAX(d.(a64.V), d.(a64.V), a.(a64.V)) }
func (f neonProgram) plusZero(d, zero vec)   {}
func (f neonProgram) or(d, a vec)            { f.ORR(d.(a64.V), d.(a64.V), a.(a64.V)) }
func (f neonProgram) spare(c vec) vec        { return f.copy(c.(a64.V)) }

func (f neonProgram) nonzero(a, _ vec) lanes {
	v := f.V()
	f.FCMEQ0(v, a.(a64.V))
	return neonLanes{v, true}
}

func (f neonProgram) positive(a, _ vec) lanes {
	v := f.V()
	f.FCMGT0(v, a.(a64.V))
	return neonLanes{v, false}
}

func (f neonProgram) keep(l lanes, d vec) {
	op := f.AND
	if l.(neonLanes).inverted {
		op = f.BIC
	}
	op(d.(a64.V), d.(a64.V), l.(neonLanes).bits)
}

func (f neonProgram) addWhere(l lanes, a, d vec) {
	op := f.BIT
	if l.(neonLanes).inverted {
		op = f.BIF
	}
	f.add(a, a, d)
	op(d.(a64.V), a.(a64.V), l.(neonLanes).bits)
}

func (f neonProgram) load(x ptr, i int) vec {
	v := f.V()
	f.Scope(func() {
		at := x.(a64.X)
		if i > 0 {
			at = f.X()
			f.Do("ADD", 4*i, x, at)
		}
		f.spread(v, at)
	})
	return v
}

func (f neonProgram) returnSum(sums []vec) {
	acc := make([]a64.V, len(sums))
	for i, v := range sums {
		acc[i] = v.(a64.V)
	}
	f.returnFirst(f.fold(acc, f.FADD))
}

func (f neonProgram) returnNone(v vec) { f.neonFunc.returnNone(v.(a64.V)) }

func (f neonProgram) end() { f.Return() }

func (f neonProgram) by(_, neon, _ int) int { return neon }

func (f neonProgram) along(length string, slices ...ptr) loop {
	st := f.neonFunc.along(length)
	for _, x := range slices {
		st.slices = append(st.slices, x.(a64.X))
	}
	return neonLoop{st}
}

type neonLoop struct{ neonStream }

func (l neonLoop) each(unroll int, body func(s step)) {
	l.neonStream.each(unroll, func(i int, p *part) { body(neonStep{l.f, i, p}) })
}

func (l neonLoop) inLanes(count int, body func(i int, s step)) {
	l.neonStream.inLanes(count, func(i int, p *part) { body(i, neonStep{l.f, i, p}) })
}

type neonStep struct {
	f *neonFunc
	i int
	p *part
}

func (t neonStep) load(x ptr) vec {
	v := t.f.V()
	t.f.load(v, at(x.(a64.X), t.i), t.p)
	return v
}

func (t neonStep) store(v vec, x ptr) { t.f.store(v.(a64.V), at(x.(a64.X), t.i), t.p) }
