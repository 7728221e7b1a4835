package simd

// Dropout sets dst[i] = keep·x[i] where Draw(key, first+i) is at least threshold,
// and dst[i] = 0 elsewhere, whatever x[i] is.
//
// Which elements are dropped follows from key and their number alone, so a long
// slice may be taken in pieces, and a backward pass finds the same ones.
func Dropout(dst, x []float32, key uint64, first int, threshold uint32, keep float32) {
	if len(dst) != len(x) {
		mismatch("Dropout", "dst", len(dst), "x", len(x))
	}
	dropout(dst, x, key+uint64(first)*golden, threshold, keep)
}

// DropoutAdd sets dst[i] = x[i] + keep·y[i] where Dropout keeps element i of y,
// and dst[i] = x[i] elsewhere.
func DropoutAdd(dst, x, y []float32, key uint64, first int, threshold uint32, keep float32) {
	checkThree("DropoutAdd", dst, x, y)
	dropoutAdd(dst, x, y, key+uint64(first)*golden, threshold, keep)
}

// Draw returns number i of the random stream key, uniform over 32 bits.
func Draw(key uint64, i int) uint32 { return uint32(Mix64(key+uint64(i)*golden) >> 32) }

// golden is 2⁶⁴ divided by the golden ratio, odd: the step of SplitMix64.
const golden = 0x9e3779b97f4a7c15

// Mix64 is the output function of SplitMix64, a bijection that makes successive
// multiples of golden pass for random numbers.
//
// Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014.
func Mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// The loops take the key of the element they begin with.

func dropoutGeneric(dst, x []float32, key uint64, threshold uint32, keep float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = 0
		if Draw(key, i) >= threshold {
			dst[i] = keep * v
		}
	}
}

func dropoutAddGeneric(dst, x, y []float32, key uint64, threshold uint32, keep float32) {
	dst, y = dst[:len(x)], y[:len(x)]
	for i, v := range x {
		if Draw(key, i) >= threshold {
			v += float32(keep * y[i])
		}
		dst[i] = v
	}
}
