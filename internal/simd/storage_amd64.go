//go:build amd64 && !purego

package simd

// The kernels take whole vectors. The rest goes the generic way, which gives the same
// bits.

func fromBFloat16(dst []float32, x []uint16) {
	if active != generic {
		for len(x) >= 16 {
			n := min(len(x)&^15, piece)
			if active == avx512 {
				fromBFloat16AVX512(&dst[0], &x[0], n)
			} else {
				fromBFloat16AVX2(&dst[0], &x[0], n)
			}
			dst, x = dst[n:], x[n:]
		}
	}
	fromBFloat16Generic(dst, x)
}

func fromInt8(dst []float32, x []int8) {
	if active != generic {
		for len(x) >= 16 {
			n := min(len(x)&^15, piece)
			if active == avx512 {
				fromInt8AVX512(&dst[0], &x[0], n)
			} else {
				fromInt8AVX2(&dst[0], &x[0], n)
			}
			dst, x = dst[n:], x[n:]
		}
	}
	fromInt8Generic(dst, x)
}
