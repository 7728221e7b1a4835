// Package half knows IEEE 754 half precision, as files hold it.
package half

import "math"

// Float32 returns the value of a half: (-1)^s * 1.m * 2^(e-15), and for e = 0
// (-1)^s * 0.m * 2^-14. It is exact.
func Float32(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exponent, mantissa := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0: // a product with a power of two: exact
		return math.Float32frombits(sign | math.Float32bits(float32(mantissa)*0x1p-24))
	case 31: // infinity or NaN
		return math.Float32frombits(sign | 0xff<<23 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | mantissa<<13)
}
