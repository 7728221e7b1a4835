package main

import (
	"math"

	"github.com/attn-go/attn/internal/simd/_asm/a64"
)

// maximum needs no record of NaN, as on amd64: FMAX with NaN is NaN.
func (f *neonProgram) maximum() {
	x := f.pointer("x")
	lowest := f.num(math.Inf(-1))
	acc := as[a64.V](copies(f, lowest, 8))
	f.along("n", x).each(len(acc), func(s step) {
		f.FMAX(acc[s.i], acc[s.i], s.or(x, lowest).(a64.V))
	})
	f.Do("FMOVS", f.fold(acc, f.FMAX), f.Result(0))
	f.Return()
}
