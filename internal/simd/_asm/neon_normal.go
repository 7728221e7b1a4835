package main

import (
	"math"

	"github.com/attn-go/attn/internal/simd/_asm/a64"
)

func (f *neonFunc) gelu() {
	dst, x := f.pointer("dst"), f.pointer("x")
	g, zero := f.gaussian(), f.zero()
	f.unary(dst, x, 2, func(v a64.V) a64.V {
		u, bell := g.bell(v)
		q := g.tail(u, bell)
		// x·Φ(x) = max(x, 0) - u·Φ(-u)
		f.FMAX(v, v, zero)
		f.FMLS(v, u, q)
		return v
	})
}

func (f *neonFunc) geluGrad() {
	dst, x := f.pointer("dst"), f.pointer("x")
	g := f.gaussian()
	density, negative := f.num(1/math.Sqrt(2*math.Pi)), f.constant(bits4(signBit))
	f.unary(dst, x, 2, func(v a64.V) a64.V {
		u, bell := g.bell(v)
		q := g.tail(u, bell)
		cumulative, below := f.V(), f.V()
		f.FSUB(cumulative, g.one, q)
		f.FCMLT0(below, v)
		f.BIT(cumulative, q, below)
		// Φ(x) + x·φ(x), with the sign of x on u, which is finite
		f.FMUL(bell, bell, density)
		f.BIT(u, v, negative)
		f.FMLA(cumulative, u, bell)
		return cumulative
	})
}

// A neonGaussian contains the constants of exp(-u²/2) and of the tail.
type neonGaussian struct {
	f                               *neonFunc
	e                               neonExponential
	end, one, rate, half, minusHalf a64.V
}

func (f *neonFunc) gaussian() neonGaussian {
	return neonGaussian{
		f: f, e: f.exponential(), end: f.num(tailEnd), one: f.num(1), rate: f.num(tailRate),
		half: f.num(0.5), minusHalf: f.num(-0.5),
	}
}

// bell returns u = min(|x|, tailEnd) and exp(-u²/2), corrected for the rounding of u².
func (g neonGaussian) bell(x a64.V) (u, bell a64.V) {
	f := g.f
	u, bell = f.V(), f.V()
	f.FABS(u, x)
	f.FMIN(u, u, g.end)
	f.FMUL(bell, u, u)
	lost := f.copy(bell)
	f.FMLS(lost, u, u) // square - u·u
	f.FMUL(bell, bell, g.minusHalf)
	f.FMUL(lost, lost, g.half)
	g.e.apply(bell)
	f.FMLA(bell, bell, lost)
	return u, bell
}

// tail returns Φ(-u).
func (g neonGaussian) tail(u, bell a64.V) a64.V {
	f := g.f
	t := f.copy(g.one)
	f.FMLA(t, u, g.rate)
	f.FDIV(t, g.one, t)
	q := f.horner(t, tailPoly)
	f.FMUL(q, q, t)
	f.FMUL(q, q, bell)
	return q
}
