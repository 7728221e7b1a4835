package main

import (
	"math"

	"github.com/attn-go/attn/internal/simd/_asm/a64"
)

// hide writes the loop that sets elements that are not seen to −Inf, 16 at a time.
func (f *neonProgram) hide() {
	x, seen, n := f.pointer("x").(a64.X), f.pointer("seen").(a64.X), f.pointer("n")
	lowest := f.num(math.Inf(-1))
	f.whole(n, 16, func() {
		f.Scope(func() {
			// Bytes become masks of floats by widening them with their sign, twice: all ones stay all ones.
			hidden := f.V()
			f.readAt(hidden, a64.At(seen, 0), nil)
			f.CMEQ0B(hidden, hidden)
			for half := range 2 {
				eight := f.V()
				if half == 0 {
					f.SSHLLB(eight, hidden)
				} else {
					f.SSHLLB2(eight, hidden)
				}
				for quarter := range 2 {
					v, m, place := f.V(), f.V(), at(x, 2*half+quarter)
					if quarter == 0 {
						f.SSHLLH(m, eight)
					} else {
						f.SSHLLH2(m, eight)
					}
					f.readAt(v, place, nil)
					f.BIT(v, lowest, m)
					f.writeAt(v, place, nil)
				}
			}
		})
		f.Do("ADD", 16, seen)
		f.Do("ADD", 64, x)
	})
	f.Return()
}
