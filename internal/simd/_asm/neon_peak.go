package main

import "github.com/attn-go/attn/internal/simd/_asm/a64"

// neonChains is the number of sums that fmaLoop keeps in flight: four units of latency 4 need 16.
const neonChains = 2 * fmaChains

// fmaLoop writes a loop of fused multiply-adds and nothing else: n rounds of one multiply-add for
// each chain, as many as on amd64. The numbers stay 1.
func (f *neonProgram) fmaLoop() {
	n := f.pointer("n")
	one, tiny := f.num(1), f.num(0x1p-30)
	chains := as[a64.V](copies(f, one, neonChains))
	f.repeat(n, func() {
		for _, v := range chains {
			f.FMLA(v, one, tiny)
		}
	})
	f.Return()
}
