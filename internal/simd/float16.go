package simd

import "math"

// Float16Value returns the value of a half-precision number: (-1)^s * 1.m * 2^(e-15), and for e = 0
// (-1)^s * 0.m * 2^-14. It is exact, and a NaN keeps its bits.
func Float16Value(h uint16) float32 {
	sign, bits := uint32(h>>15)<<31, uint32(h&0x7fff)<<13
	if bits >= 31<<23 { // infinity or NaN
		return math.Float32frombits(sign | 255<<23 | bits)
	}
	// Interpreted as a float32, the bits are too small by a factor of 2^(127-15), for every
	// exponent e.
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(bits)*0x1p112))
}

// NearestFloat16 returns the half-precision number nearest to v; ties round to even. 65520 and above
// give infinity. NaN stays NaN, but its payload may lose bits.
func NearestFloat16(v float32) uint16 {
	u := math.Float32bits(v)
	sign, u := uint16(u>>16&0x8000), u&0x7fffffff
	switch {
	case u > 0x7f800000: // NaN, made quiet
		return sign | 0x7e00 | uint16(u>>13&0x1ff)
	case u >= 0x47800000: // 2¹⁶ and above
		return sign | 0x7c00
	case u < 0x38800000: // below 2⁻¹⁴: a multiple of 2⁻²⁴
		// The sum's unit in the last place is 2⁻²⁴, so the addition rounds.
		return sign | uint16(math.Float32bits(math.Float32frombits(u)+0.5)&0x7ff)
	}
	// Here the exponent fits, or rounding carries into infinity.
	u += 0xfff + u>>13&1
	return sign | uint16((u-(127-15)<<23)>>13)
}
