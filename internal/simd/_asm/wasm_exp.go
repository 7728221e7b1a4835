package main

import (
	"math"

	"github.com/attn-go/attn/internal/simd/_asm/wasm"
)

// The products of wasmLn2High and integers of 15 bits are exact.
const (
	wasmLn2High = 0.693359375
	wasmLn2Low  = math.Ln2 - wasmLn2High
)

// A wasmExponential contains the constants of exp.
type wasmExponential struct {
	high, low, magic, log2e, ln2Hi, ln2Lo wasm.V
	poly                                  []wasm.V
}

func (f *wasmFunc) exponential() wasmExponential {
	var twice []float64 // see isa.exponential
	for _, c := range expPoly {
		twice = append(twice, 2*c)
	}
	return wasmExponential{
		high: f.Num(expHigh), low: f.Num(expLow), magic: f.Num(magic + 126), log2e: f.Num(math.Log2E),
		ln2Hi: f.Num(wasmLn2High), ln2Lo: f.Num(wasmLn2Low), poly: f.nums(twice...),
	}
}

// of returns exp(x), and 0 for x below expLow.
func (e wasmExponential) of(x wasm.V) wasm.V {
	x = x.PMin(e.high)
	t := x.Mul(e.log2e).Add(e.magic)
	n := t.Sub(e.magic)
	r := x.Sub(n.Mul(e.ln2Hi)).Sub(n.Mul(e.ln2Lo))
	// 2 + (2r + r²·(…)): the terms after the first are small, and so are their errors.
	y := r.Mul(r).Mul(horner(r, e.poly[2:])).Add(r.Add(r)).Add(e.poly[0])
	return y.Mul(t.ShlInts(23)).AndNot(x.Less(e.low))
}

func (f *wasmFunc) exp() { f.unary(1, f.exponential().of) }

func (f *wasmFunc) expSum() {
	dst, x, shift := f.x("dst"), f.x("x"), f.broadcast("shift")
	e, sums := f.exponential(), f.Zeros(4)
	f.along("n", dst, x).inLanes(len(sums), func(j, i int, n *wasm.X) {
		v := e.of(f.load(x, i, n).Sub(shift))
		f.store(v, dst, i, n)
		sums[j].Accumulate(f.keep(n, v))
	})
	f.Return(f.total(sums).First())
}

func (f *wasmFunc) sigmoid() {
	e, one := f.exponential(), f.Num(1)
	f.unary(1, func(v wasm.V) wasm.V { return one.Div(e.of(v.Neg()).Add(one)) })
}

// tanh writes the loop that isa.tanh describes.
func (f *wasmFunc) tanh() {
	high, round, one, two := f.Num(tanhHigh), f.Num(magic+127), f.Num(1), f.Num(2)
	log2e2, ln2Hi, ln2Lo := f.Num(2*math.Log2E), f.Num(wasmLn2High), f.Num(wasmLn2Low)
	negative, poly := f.Spread(signBit), f.nums(tanhPoly...)
	f.unary(1, func(v wasm.V) wasm.V {
		a := v.Abs().PMin(high)
		t := a.Mul(log2e2).Add(round)
		n := t.Sub(round)
		r := a.Add(a).Sub(n.Mul(ln2Hi)).Sub(n.Mul(ln2Lo))
		q := horner(r, poly).Mul(r.Mul(r)).Add(r) // exp(r)-1
		power := t.ShlInts(23)
		e := q.Mul(power).Add(power.Sub(one))
		return v.Where(negative, e.Div(e.Add(two)))
	})
}
