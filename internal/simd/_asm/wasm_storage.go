package main

import "github.com/attn-go/attn/internal/simd/_asm/wasm"

// wasmFromStored writes the loop that converts stored numbers to floats, 16 at a time.
func wasmFromStored(s stored) func(f *wasmFunc) {
	return func(f *wasmFunc) {
		dst, x := f.x("dst"), f.x("x")
		f.whole(f.x("n"), 16, func() {
			for i := range 4 {
				var v wasm.V
				if s.bytes == 2 {
					v = f.LoadHalves(x, 8*i).ShlInts(16)
				} else {
					v = f.bytes(x, i)
				}
				f.store(v, dst, i, nil)
			}
			dst.Advance(4 * vectorBytes)
			x.Advance(16 * s.bytes)
		})
		f.Return()
	}
}
