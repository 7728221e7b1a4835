package main

import (
	"math"

	"github.com/attn-go/attn/internal/simd/_asm/wasm"
)

// wasmSums is the number of vectors of a sum.
const wasmSums = 4

func (f *wasmProgram) maximum() {
	x, lowest := f.x("x"), f.Num(math.Inf(-1))
	most := as[wasm.V](copies(f, lowest, wasmSums))
	f.along("n", x).inLanes(len(most), func(i int, s step) {
		most[i].Set(most[i].Max(s.or(x, lowest).(wasm.V)))
	})
	f.Return(f.fold(most, wasm.V.Max).First())
}

func (f *wasmProgram) magnitude() {
	x, most := f.x("x"), f.Zeros(wasmSums)
	f.along("n", x).inLanes(len(most), func(i int, s step) {
		most[i].Set(most[i].Max(s.load(x).(wasm.V).Abs()))
	})
	f.Return(f.fold(most, wasm.V.Max).First())
}
