package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

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

func gelu(s isa) {
	dst, x := pointer("dst"), pointer("x")
	g := s.gaussian()
	zero := s.zero()
	s.unary(dst, x, 1, func(v reg.VecVirtual) reg.VecVirtual {
		u, bell := g.bell(v)
		q := g.tail(u, bell)
		// x·Φ(x) = max(x, 0) - u·Φ(-u)
		VMAXPS(v, zero, v)
		VFNMADD231PS(u, q, v)
		return v
	})
}

func geluGrad(s isa) {
	dst, x := pointer("dst"), pointer("x")
	g := s.gaussian()
	zero, one := s.zero(), s.numReg(1)
	density, negative := s.num(1/math.Sqrt(2*math.Pi)), s.bits(signBit)
	s.unary(dst, x, 1, func(v reg.VecVirtual) reg.VecVirtual {
		u, bell := g.bell(v)
		q := g.tail(u, bell)
		rest := s.vec()
		VSUBPS(q, one, rest)
		cumulative := s.blend(s.compare(less, zero, v), q, rest)
		// Φ(x) + x·φ(x), with the sign of x on u, which is finite
		VMULPS(density, bell, bell)
		s.and(negative, v, v)
		s.or(v, u, u)
		VFMADD231PS(u, bell, cumulative)
		return cumulative
	})
}

// A gaussian contains the constants of exp(-u²/2) and of the tail.
type gaussian struct {
	s          isa
	e          exponential
	end, one   reg.VecVirtual
	positive   Op
	rate, half Op
	poly       []Op
}

func (s isa) gaussian() gaussian {
	return gaussian{
		s: s, e: s.exponential(), end: s.numReg(tailEnd), one: s.numReg(1),
		positive: s.bits(notSign), rate: s.num(tailRate), half: s.num(-0.5), poly: s.memory(tailPoly...),
	}
}

// bell returns u = min(|x|, tailEnd) and exp(-u²/2). The rounding error of u² would be multiplied
// by u²/2 in the result, so bell corrects it.
func (g gaussian) bell(x reg.VecVirtual) (u, bell reg.VecVirtual) {
	s := g.s
	u = s.vec()
	s.and(g.positive, x, u)
	VMINPS(u, g.end, u)
	square, lost := s.vec(), s.vec()
	VMULPS(u, u, square)
	VMOVUPS(square, lost)
	VFMSUB231PS(u, u, lost) // u·u - square
	VMULPS(g.half, square, square)
	VMULPS(g.half, lost, lost)
	bell = g.e.apply(square)
	VFMADD231PS(lost, bell, bell)
	return u, bell
}

// tail returns Φ(-u).
func (g gaussian) tail(u, bell reg.VecVirtual) reg.VecVirtual {
	s := g.s
	t := s.vec()
	VMOVUPS(g.one, t)
	VFMADD231PS(g.rate, u, t)
	VDIVPS(t, g.one, t)
	q := s.horner(t, g.poly)
	VMULPS(t, q, q)
	VMULPS(bell, q, q)
	return q
}
