package main

import (
	"math"

	"github.com/attn-go/attn/internal/simd/_asm/a64"
)

// A neonLogistic holds the constants for r = 1/(1+exp(2x)), of which tanh is 1-2r.
type neonLogistic struct {
	f                                      *neonFunc
	high, low, round, one, minusTwo, log2e a64.V
}

func (f *neonFunc) logistic() neonLogistic {
	return neonLogistic{
		f: f, high: f.num(tanhHigh), low: f.num(-tanhHigh), round: f.num(magic + 127),
		one: f.num(1), minusTwo: f.num(-2), log2e: f.num(2 * math.Log2E),
	}
}

// of replaces x by r.
func (l neonLogistic) of(x a64.V) {
	f := l.f
	f.Scope(func() {
		f.FMIN(x, x, l.high)
		f.FMAX(x, x, l.low)
		t, n, frac := f.num(magic+127), f.V(), f.V()
		f.FMLA(t, x, l.log2e)
		f.FSUB(n, l.round, t) // minus what n is in isa.logistic
		f.MOV(frac, n)
		f.FMLA(frac, x, l.log2e)
		y := f.horner(frac, exp2Poly)
		f.SHL(t, t, 23)
		d := f.copy(l.one)
		f.FMLA(d, y, t)
		// Two steps of Newton's method on a reciprocal of eight bits, the second so
		// that only its sum is rounded.
		r, e := x, f.V()
		f.FRECPE(r, d)
		f.FRECPS(e, d, r)
		f.FMUL(r, r, e)
		f.MOV(e, l.one)
		f.FMLS(e, d, r)
		f.FMLA(r, r, e)
	})
}

// tanh replaces r by tanh.
func (l neonLogistic) tanh(r a64.V) {
	f := l.f
	f.Scope(func() {
		t := f.copy(l.one)
		f.FMLA(t, r, l.minusTwo)
		f.MOV(r, t)
	})
}

func (f *neonFunc) additiveScores() {
	dst, q, k, w, nk := f.pointer("dst"), f.pointer("q"), f.pointer("k"), f.pointer("w"), f.pointer("nk")
	f.constants()
	l := f.logistic()
	key := f.NewLabel("key")
	f.Place(key)
	f.Scope(func() {
		acc := f.accumulators(16)
		st, here := f.alongCopies("h", q, k, w)
		st.inLanes(len(acc), func(i int, p *part) {
			t, wi := f.pairSum(here[0], here[1], i, p), f.V()
			l.of(t)
			l.tanh(t)
			f.load(wi, at(here[2], i), p)
			f.FMLA(acc[i], wi, t)
		})
		f.STRS(f.fold(acc, f.FADD), a64.At(dst, 0))
	})
	f.nextRows("h", k)
	f.Do("ADD", 4, dst)
	f.countDown(nk, key)
	f.Return()
}

func (f *neonFunc) additiveGrad() {
	dq, dk, dw, ds := f.pointer("dq"), f.pointer("dk"), f.pointer("dw"), f.pointer("ds")
	q, k, w, nk := f.pointer("q"), f.pointer("k"), f.pointer("w"), f.pointer("nk")
	f.constants()
	l, four := f.logistic(), f.num(4)
	key, skip := f.NewLabel("key"), f.NewLabel("skip")
	f.Place(key)
	f.Scope(func() {
		bits, d, d4 := f.X(), f.V(), f.V()
		f.Do("MOVWU", a64.At(ds, 0), bits)
		f.Do("LSL", 33, bits) // 0 for -0 as well
		f.Do("CBZ", bits, skip)
		f.spread(d, ds)
		f.FMUL(d4, d, four)
		st, here := f.alongCopies("h", q, k, w, dq, dk, dw)
		st.each(1, func(i int, p *part) {
			r, g, sum := f.pairSum(here[0], here[1], i, p), f.V(), f.V()
			l.of(r)
			// 1-tanh² = 4·r·(1-r)
			f.FSUB(g, l.one, r)
			f.FMUL(g, g, r)
			f.FMUL(g, g, d4)
			f.load(sum, at(here[2], i), p)
			f.FMUL(g, g, sum)
			for _, to := range here[3:5] {
				f.load(sum, at(to, i), p)
				f.FADD(sum, sum, g)
				f.store(sum, at(to, i), p)
			}
			l.tanh(r)
			f.load(sum, at(here[5], i), p)
			f.FMLA(sum, r, d)
			f.store(sum, at(here[5], i), p)
		})
	})
	f.Place(skip)
	f.nextRows("h", k, dk)
	f.Do("ADD", 4, ds)
	f.countDown(nk, key)
	f.Return()
}

// pairSum returns vector i of q plus that of k.
func (f *neonFunc) pairSum(q, k a64.X, i int, p *part) a64.V {
	x, y := f.V(), f.V()
	f.load(x, at(q, i), p)
	f.load(y, at(k, i), p)
	f.FADD(x, x, y)
	return x
}
