package main

import "math"

// The tail of the normal distribution: with u >= 0 and t = 1/(1+tailRate·u),
//
//	Φ(-u) = exp(-u²/2) · t·(tailPoly[0] + tailPoly[1]·t + …)
//
// with a relative error of 2e-8 for u up to 15, where Φ is 0 in float32.
const (
	tailRate = 0.265
	tailEnd  = 15
)

var tailPoly = []float64{0.10573931783437729, 0.10528551787137985, 0.10241814702749252,
	0.06144443899393082, 0.13522912561893463, -0.11231190711259842, 0.21417395770549774,
	-0.1424158811569214, 0.030437268316745758}

func gelu(p program) {
	dst, x := p.pointer("dst"), p.pointer("x")
	g, zero := newGaussian(p), p.zero()
	unary(p, dst, x, p.by(1, 2, 1), func(v vec) vec {
		u, bell := g.bell(v)
		q := g.tail(u, bell)
		// x·Φ(x) = max(x, 0) - u·Φ(-u)
		p.atLeast(v, zero)
		p.subProduct(v, q, u)
		return v
	})
}

func geluGrad(p program) {
	dst, x := p.pointer("dst"), p.pointer("x")
	g, zero, one := newGaussian(p), p.zero(), p.number(1)
	density, negative := p.constant(1/math.Sqrt(2*math.Pi)), p.bits(signBit)
	unary(p, dst, x, p.by(1, 2, 1), func(v vec) vec {
		u, bell := g.bell(v)
		q := g.tail(u, bell)
		rest := p.vec()
		p.sub(rest, one, q)
		cumulative := p.choose(p.negative(v, zero), q, rest)
		// Φ(x) + x·φ(x), with the sign of x on u, which is finite
		p.mul(bell, bell, density)
		p.setSign(u, p.sign(v, negative), negative)
		p.addProduct(cumulative, bell, u)
		return cumulative
	})
}

// A gaussian contains the constants of exp(-u²/2) and of the tail.
type gaussian struct {
	p                              program
	exp, polynomial                func(x vec) vec
	end, one, positive, rate, half vec
}

func newGaussian(p program) gaussian {
	return gaussian{
		p: p, exp: exponential(p), end: p.number(tailEnd), one: p.number(1),
		positive: p.bits(notSign), rate: p.constant(tailRate), half: p.constant(-0.5),
		polynomial: p.longPolynomial(tailPoly),
	}
}

// bell returns u = min(|x|, tailEnd) and exp(-u²/2). The rounding error of u² would be multiplied
// by u²/2 in the result, so bell corrects it.
func (g gaussian) bell(x vec) (u, bell vec) {
	p := g.p
	u, square := p.vec(), p.vec()
	p.and(u, x, g.positive)
	p.atMost(u, g.end)
	p.mul(square, u, u)
	lost := p.lost(u, square)
	p.mul(square, square, g.half)
	p.mul(lost, lost, g.half)
	bell = g.exp(square)
	p.addProduct(bell, bell, lost)
	return u, bell
}

// tail returns Φ(-u).
func (g gaussian) tail(u, bell vec) vec {
	p := g.p
	t := p.copy(g.one)
	p.addProduct(t, u, g.rate)
	p.div(t, g.one, t)
	q := g.polynomial(t)
	p.mul(q, q, t)
	p.mul(q, q, bell)
	return q
}
