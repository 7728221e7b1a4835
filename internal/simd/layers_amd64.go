//go:build amd64 && !purego

package simd

// The loops of layers, dispatched as those in dispatch_amd64.go.

func dropout(dst, x []float32, key uint64, threshold uint32, keep float32) {
	if active == generic {
		dropoutGeneric(dst, x, key, threshold, keep)
		return
	}
	for len(x) > 0 {
		n := min(len(x), piece)
		if active == avx512 {
			dropoutAVX512(&dst[0], &x[0], n, key, threshold, keep)
		} else {
			dropoutAVX2(&dst[0], &x[0], n, key, threshold, keep)
		}
		dst, x, key = dst[n:], x[n:], key+uint64(n)*golden
	}
}

func dropoutAdd(dst, x, y []float32, key uint64, threshold uint32, keep float32) {
	if active == generic {
		dropoutAddGeneric(dst, x, y, key, threshold, keep)
		return
	}
	for len(x) > 0 {
		n := min(len(x), piece)
		if active == avx512 {
			dropoutAddAVX512(&dst[0], &x[0], &y[0], n, key, threshold, keep)
		} else {
			dropoutAddAVX2(&dst[0], &x[0], &y[0], n, key, threshold, keep)
		}
		dst, x, y, key = dst[n:], x[n:], y[n:], key+uint64(n)*golden
	}
}
