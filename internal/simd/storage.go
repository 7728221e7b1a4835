package simd

import "math"

// FromBFloat16 sets dst[i] to the value of the bfloat16 x[i], which is the upper half of
// a float32.
func FromBFloat16(dst []float32, x []uint16) {
	if len(dst) != len(x) {
		mismatch("FromBFloat16", "dst", len(dst), "x", len(x))
	}
	fromBFloat16(dst, x)
}

// FromInt8 sets dst[i] = x[i].
func FromInt8(dst []float32, x []int8) {
	if len(dst) != len(x) {
		mismatch("FromInt8", "dst", len(dst), "x", len(x))
	}
	fromInt8(dst, x)
}

// BFloat16 returns the bfloat16 nearest to x, of two the even one. NaN stays NaN.
func BFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 1<<6
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func fromBFloat16Generic(dst []float32, x []uint16) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = math.Float32frombits(uint32(v) << 16)
	}
}

func fromInt8Generic(dst []float32, x []int8) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = float32(v)
	}
}
