package main

import (
	"math"

	"github.com/attn-go/attn/internal/simd/_asm/wasm"
)

// rowMax writes the loop for the largest element of each row. It ignores NaN, except in the lanes
// that it starts with.
func (f *wasmFunc) rowMax() {
	dst, x, lowest := f.x("dst"), f.x("x"), f.Num(math.Inf(-1))
	p := wasmProgram{f}
	eachRow(p, func() {
		var most []wasm.V
		for range 4 {
			most = append(most, lowest.Copy())
		}
		p.along("n", x).inLanes(len(most), func(i int, s step) {
			most[i].Set(most[i].PMax(f.keepOr(s.e, s.load(x).(wasm.V), lowest)))
		})
		f.StoreLane(f.fold(most, wasm.V.PMax), 0, dst, 0)
		x.AdvanceBy(f.x("row"))
		dst.Advance(4)
	})
	f.Return()
}

// hide writes the loop that sets elements that are not seen to −Inf, 16 at a time.
func (f *wasmFunc) hide() {
	x, seen, lowest, zero := f.x("x"), f.x("seen"), f.Num(math.Inf(-1)), f.Zero()
	f.whole(f.x("n"), 16, func() {
		hidden := f.load(seen, 0, nil).EqualBytes(zero)
		low, high := hidden.LowBytes(), hidden.HighBytes()
		for i, mask := range []wasm.V{low.LowHalves(), low.HighHalves(), high.LowHalves(), high.HighHalves()} {
			f.store(lowest.Where(mask, f.load(x, i, nil)), x, i, nil)
		}
		seen.Advance(16)
		x.Advance(4 * vectorBytes)
	})
	f.Return()
}
