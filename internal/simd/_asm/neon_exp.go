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
