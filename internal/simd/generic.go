package simd

import "math"

// The conversions float32(x*y), here and wherever results are computed, prevent the compiler from
// fusing a product with the following sum. On most architectures it would fuse them, possibly in
// one loop and not in another. The command internal/tools/fma finds missing conversions.
//
// The generated functions with the same names but without Generic say what the functions compute.

func maximumGeneric(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		if v > m {
			m = v
		} else if v != v {
			return v
		}
	}
	return m
}

// sumGeneric adds in 4 lanes, which keep an adder busy.
func sumGeneric(x []float32) float32 {
	var s0, s1, s2, s3 float32
	for ; len(x) >= 4; x = x[4:] {
		s0 += x[0]
		s1 += x[1]
		s2 += x[2]
		s3 += x[3]
	}
	if len(x) > 0 {
		s0 += x[0]
	}
	if len(x) > 1 {
		s1 += x[1]
	}
	if len(x) > 2 {
		s2 += x[2]
	}
	return (s0 + s2) + (s1 + s3)
}

// dotGeneric multiplies and adds in 4 lanes, like sumGeneric.
func dotGeneric(x, y []float32) float32 {
	var s0, s1, s2, s3 float32
	for ; len(x) >= 4 && len(y) >= 4; x, y = x[4:], y[4:] {
		s0 += float32(x[0] * y[0])
		s1 += float32(x[1] * y[1])
		s2 += float32(x[2] * y[2])
		s3 += float32(x[3] * y[3])
	}
	y = y[:len(x)]
	if len(x) > 0 {
		s0 += float32(x[0] * y[0])
	}
	if len(x) > 1 {
		s1 += float32(x[1] * y[1])
	}
	if len(x) > 2 {
		s2 += float32(x[2] * y[2])
	}
	return (s0 + s2) + (s1 + s3)
}

func axpyGeneric(a float32, x, y []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += float32(a * v)
	}
}

func scaleGeneric(dst []float32, a float32, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = a * v
	}
}

func scaleShiftGeneric(dst []float32, a float32, x []float32, b float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = float32(a*v) + b
	}
}

func addGeneric(dst, x, y []float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = v + y[i]
	}
}

func mulGeneric(dst, x, y []float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] = v * y[i]
	}
}

func mulAddGeneric(dst, x, y []float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		dst[i] += float32(v * y[i])
	}
}

// finiteGeneric looks for an exponent of all ones.
func finiteGeneric(x []float32) bool {
	const exponent = 0x7f800000
	for _, v := range x {
		if math.Float32bits(v)&exponent == exponent {
			return false
		}
	}
	return true
}
