package main

import "github.com/attn-go/attn/internal/simd/_asm/a64"

// neonFromStored writes the loop that converts stored numbers to floats, 16 at a time.
func neonFromStored(n stored) func(f *neonFunc) {
	return func(f *neonFunc) {
		dst, x, left := f.pointer("dst"), f.pointer("x"), f.pointer("n")
		f.whole(left, 16, func() {
			f.Scope(func() {
				for i := range 4 {
					v := f.V()
					f.widen(n, v, a64.At(x, i*f.lanes*n.bytes))
					f.store(v, at(dst, i), nil)
				}
			})
			f.Do("ADD", 16*n.bytes, x)
			f.Do("ADD", 64, dst)
		})
		f.Return()
	}
}
