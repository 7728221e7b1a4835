package main

import "github.com/attn-go/attn/internal/simd/_asm/wasm"

// fmaLoop writes a loop of multiplications and additions, and nothing else: n rounds of one of each
// for each chain of the version for amd64, half of them at a time because of the registers. The
// numbers stay positive. The branch that is never taken makes the engine compute them.
func (f *wasmProgram) fmaLoop() {
	n, one, tiny, zero := f.x("n"), f.Num(1), f.Num(0x1p-30), f.Zero()
	chains := as[wasm.V](copies(f, one, fmaChains))
	f.Loop(func(again wasm.Label) {
		f.repeat(n, func() {
			for range 2 {
				for _, v := range chains {
					v.Set(v.Mul(one).Add(tiny))
				}
			}
		})
		least := chains[0]
		for _, v := range chains[1:] {
			least = least.PMin(v)
		}
		f.BranchIf(again, least.Less(zero).Any())
	})
	f.Return()
}
