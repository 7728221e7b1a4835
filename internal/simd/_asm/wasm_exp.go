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
