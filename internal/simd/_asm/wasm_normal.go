package main

import (
	"math"

	"github.com/attn-go/attn/internal/simd/_asm/wasm"
)

func (f *wasmFunc) gelu() {
	g, zero := f.gaussian(), f.Zero()
	f.unary(1, func(v wasm.V) wasm.V {
		u, bell := g.bell(v)
		return v.Max(zero).Sub(u.Mul(g.tail(u, bell))) // x·Φ(x) = max(x, 0) - u·Φ(-u)
	})
}

func (f *wasmFunc) geluGrad() {
	g, zero := f.gaussian(), f.Zero()
	density, negative := f.Num(1/math.Sqrt(2*math.Pi)), f.Spread(signBit)
	f.unary(1, func(v wasm.V) wasm.V {
		u, bell := g.bell(v)
		q := g.tail(u, bell)
		cumulative := q.Where(v.Less(zero), g.one.Sub(q))
		// Φ(x) + x·φ(x), with the sign of x on u, which is finite
		return cumulative.Add(v.Where(negative, u).Mul(bell.Mul(density)))
	})
}

// A wasmGaussian contains the constants of exp(-u²/2) and of the tail.
type wasmGaussian struct {
	e                                     wasmExponential
	end, one, rate, half, minusHalf, high wasm.V
	poly                                  []wasm.V
}

func (f *wasmFunc) gaussian() wasmGaussian {
	return wasmGaussian{
		e: f.exponential(), end: f.Num(tailEnd), one: f.Num(1), rate: f.Num(tailRate),
		half: f.Num(0.5), minusHalf: f.Num(-0.5), high: f.Spread(0xfffff000), poly: f.nums(tailPoly...),
	}
}

// bell returns u = min(|x|, tailEnd) and exp(-u²/2), corrected for the rounding of u². The products
// of the upper and lower halves of u are exact.
func (g wasmGaussian) bell(x wasm.V) (u, bell wasm.V) {
	u = x.Abs().PMin(g.end)
	square, upper := u.Mul(u), u.And(g.high)
	lower := u.Sub(upper)
	cross := upper.Mul(lower)
	lost := square.Sub(upper.Mul(upper)).Sub(cross.Add(cross)).Sub(lower.Mul(lower)) // square - u·u
	bell = g.e.of(square.Mul(g.minusHalf))
	return u, bell.Add(bell.Mul(lost.Mul(g.half)))
}

// tail returns Φ(-u).
func (g wasmGaussian) tail(u, bell wasm.V) wasm.V {
	t := g.one.Div(g.one.Add(u.Mul(g.rate)))
	return horner(t, g.poly).Mul(t).Mul(bell)
}
