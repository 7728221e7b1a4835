package main

import (
	"math"

	"github.com/attn-go/attn/internal/simd/_asm/a64"
)

// A neonExponential contains the constants of exp.
type neonExponential struct {
	f                                     *neonFunc
	high, low, magic, log2e, ln2Hi, ln2Lo a64.V
	poly                                  []float64
}

func (f *neonFunc) exponential() neonExponential {
	var twice []float64 // see isa.exponential
	for _, c := range expPoly {
		twice = append(twice, 2*c)
	}
	return neonExponential{
		f: f, high: f.num(expHigh), low: f.num(expLow), magic: f.num(magic + 126),
		log2e: f.num(math.Log2E), ln2Hi: f.num(ln2High), ln2Lo: f.num(ln2Low), poly: twice,
	}
}

// apply replaces x by exp(x), and by 0 for x below expLow, and returns it.
func (e neonExponential) apply(x a64.V) a64.V {
	f := e.f
	f.Scope(func() {
		f.FMIN(x, x, e.high)
		small, n, t := f.V(), f.V(), f.num(magic+126)
		f.FCMGT(small, e.low, x)
		f.FMLA(t, x, e.log2e)
		f.FSUB(n, t, e.magic)
		f.FMLS(x, n, e.ln2Hi)
		f.FMLS(x, n, e.ln2Lo)
		y := f.horner(x, e.poly)
		f.SHL(t, t, 23)
		f.FMUL(x, y, t)
		f.BIC(x, x, small)
	})
	return x
}

func (f *neonFunc) exp() {
	dst, x := f.pointer("dst"), f.pointer("x")
	f.unary(dst, x, 2, f.exponential().apply)
}

func (f *neonFunc) expSum() {
	dst, x := f.pointer("dst"), f.pointer("x")
	shift := f.broadcast("shift")
	e := f.exponential()
	acc := f.accumulators(16)
	f.along("n", dst, x).inLanes(len(acc), func(i int, p *part) {
		v := f.V()
		f.load(v, at(x, i), p)
		f.FSUB(v, v, shift)
		e.apply(v)
		f.store(v, at(dst, i), p)
		f.keep(p, v)
		f.FADD(acc[i], acc[i], v)
	})
	f.returnFirst(f.fold(acc, f.FADD))
}

func (f *neonFunc) sigmoid() {
	dst, x := f.pointer("dst"), f.pointer("x")
	e, one := f.exponential(), f.num(1)
	f.unary(dst, x, 2, func(v a64.V) a64.V {
		f.FNEG(v, v)
		e.apply(v)
		f.FADD(v, v, one)
		f.FDIV(v, one, v)
		return v
	})
}

// tanh writes the loop that isa.tanh describes.
func (f *neonFunc) tanh() {
	dst, x := f.pointer("dst"), f.pointer("x")
	high, round, one, two := f.num(tanhHigh), f.num(magic+127), f.num(1), f.num(2)
	log2e2, ln2Hi, ln2Lo := f.num(2*math.Log2E), f.num(ln2High), f.num(ln2Low)
	negative := f.constant(bits4(signBit))
	f.along("n", dst, x).each(2, func(i int, p *part) {
		v, a, n, t := f.V(), f.V(), f.V(), f.num(magic+127)
		f.load(v, at(x, i), p)
		f.FABS(a, v)
		f.FMIN(a, a, high)
		f.FMLA(t, a, log2e2)
		f.FSUB(n, t, round)
		f.FADD(a, a, a)
		f.FMLS(a, n, ln2Hi)
		f.FMLS(a, n, ln2Lo)
		q, square := f.horner(a, tanhPoly), f.V()
		f.FMUL(square, a, a)
		f.FMLA(a, q, square) // exp(r)-1
		f.SHL(t, t, 23)
		e := f.V()
		f.FSUB(e, t, one)
		f.FMLA(e, a, t)
		f.FADD(t, e, two)
		f.FDIV(e, e, t)
		f.BIT(e, v, negative)
		f.store(e, at(dst, i), p)
	})
	f.Return()
}
