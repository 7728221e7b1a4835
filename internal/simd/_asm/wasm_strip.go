package main

import (
	"math"

	"github.com/attn-go/attn/internal/simd/_asm/wasm"
)

// hide writes the loop that sets elements that are not seen to −Inf, 16 at a time.
func (f *wasmProgram) hide() {
	x, seen, lowest, zero := f.x("x"), f.x("seen"), f.Num(math.Inf(-1)), f.Zero()
	f.whole(f.x("n"), 16, func() {
		hidden := f.readAt(seen, 0, nil).EqualBytes(zero)
		low, high := hidden.LowBytes(), hidden.HighBytes()
		for i, mask := range []wasm.V{low.LowHalves(), low.HighHalves(), high.LowHalves(), high.HighHalves()} {
			f.writeAt(lowest.Where(mask, f.readAt(x, i, nil)), x, i, nil)
		}
		seen.Advance(16)
		x.Advance(4 * vectorBytes)
	})
	f.Return()
}
