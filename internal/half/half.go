// Package half knows IEEE 754 half precision, as files hold it.
package half

import "math"

// Float32 returns the value of a half: (-1)^s * 1.m * 2^(e-15), and for e = 0
// (-1)^s * 0.m * 2^-14. It is exact, and a NaN keeps its bits.
func Float32(h uint16) float32 {
	sign, bits := uint32(h>>15)<<31, uint32(h&0x7fff)<<13
	if bits >= 31<<23 { // infinity or NaN
		return math.Float32frombits(sign | 255<<23 | bits)
	}
	// As bits of a float32 it is too small by 2^(127-15), whatever e is.
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(bits)*0x1p112))
}
