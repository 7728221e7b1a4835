package main

import (
	"math"

	"github.com/attn-go/attn/internal/simd/_asm/wasm"
)

// wasmSums is the number of vectors of a sum.
const wasmSums = 4

func (f *wasmFunc) maximum() {
	x, lowest := f.x("x"), f.Num(math.Inf(-1))
	var most []wasm.V
	for range wasmSums {
		most = append(most, lowest.Copy())
	}
	f.along("n", x).inLanes(len(most), func(j, i int, n *wasm.X) {
		most[j].Set(most[j].Max(f.keepOr(n, f.load(x, i, n), lowest)))
	})
	f.Return(f.fold(most, wasm.V.Max).First())
}

func (f *wasmFunc) magnitude() {
	x, most := f.x("x"), f.Zeros(wasmSums)
	f.along("n", x).inLanes(len(most), func(j, i int, n *wasm.X) {
		most[j].Set(most[j].Max(f.load(x, i, n).Abs()))
	})
	f.Return(f.fold(most, wasm.V.Max).First())
}
