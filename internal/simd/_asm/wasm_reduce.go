package main

import (
	"math"

	"github.com/attn-go/attn/internal/simd/_asm/wasm"
)

// wasmSums is the number of vectors of a sum.
const wasmSums = 4

func (f *wasmFunc) sum() {
	x, sums := f.x("x"), f.Zeros(wasmSums)
	f.along("n", x).inLanes(len(sums), func(j, i int, n *wasm.X) { sums[j].Accumulate(f.load(x, i, n)) })
	f.Return(f.total(sums).First())
}

func (f *wasmFunc) dot() {
	x, y, sums := f.x("x"), f.x("y"), f.Zeros(wasmSums)
	f.along("n", x, y).inLanes(len(sums), func(j, i int, n *wasm.X) {
		sums[j].Accumulate(f.load(x, i, n).Mul(f.load(y, i, n)))
	})
	f.Return(f.total(sums).First())
}

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

// finite writes the loop that looks for x-x != 0, which is true for infinities and NaN.
func (f *wasmFunc) finite() {
	x, seen := f.x("x"), f.Zero()
	f.along("n", x).each(4, func(i int, n *wasm.X) {
		v := f.load(x, i, n)
		seen.Set(seen.Or(v.Sub(v)))
	})
	f.Return(seen.Any().Not())
}

func (f *wasmFunc) magnitude() {
	x, most := f.x("x"), f.Zeros(wasmSums)
	f.along("n", x).inLanes(len(most), func(j, i int, n *wasm.X) {
		most[j].Set(most[j].Max(f.load(x, i, n).Abs()))
	})
	f.Return(f.fold(most, wasm.V.Max).First())
}
