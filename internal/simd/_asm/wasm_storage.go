package main

// wasmFromStored writes the loop that converts stored numbers to floats, 16 at a time.
func wasmFromStored(s stored) func(f *wasmFunc) {
	return func(f *wasmFunc) {
		dst, x := f.x("dst"), f.x("x")
		f.whole(f.x("n"), 16, func() {
			for i := range 4 {
				f.store(f.widen(s, x, i), dst, i, nil)
			}
			dst.Advance(4 * vectorBytes)
			x.Advance(16 * s.bytes)
		})
		f.Return()
	}
}
