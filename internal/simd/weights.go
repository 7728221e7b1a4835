package simd

import "math"

// The functions of this file process a row of attention weights.

// AbovePadding is the number of elements of dst that Above may overwrite in addition to its
// results.
const AbovePadding = 16

// Above writes the indices i of the elements x[i] > least to dst, in order, and returns their
// number. NaN is not above least. dst must have at least len(x) + AbovePadding elements.
func Above(dst []int32, x []float32, least float32) int {
	if len(dst) < len(x)+AbovePadding {
		mismatch("Above", "dst", len(dst), "x with padding", len(x)+AbovePadding)
	}
	count, first := 0, 0
	for len(x) > 0 {
		n := min(len(x), piece)
		count += above(x[:n], least, int32(first), dst[count:])
		x, first = x[n:], first+n
	}
	return count
}

// MostRanks is the largest length that Ranks supports.
const MostRanks = 64

// Ranks sets dst[i] to the rank of x[i] in descending order, where equal elements keep their order.
// This is the number of x[j] > x[i] plus the number of x[j] = x[i] with j < i.
func Ranks(dst []int32, x []float32) {
	sameLen("Ranks", "dst", len(dst), "x", len(x))
	if len(x) > MostRanks {
		mismatch("Ranks", "x", len(x), "at most", MostRanks)
	}
	if len(x) > 0 {
		ranks(dst, x)
	}
}

// Entropy returns −Σ x[i]·ln x[i], for numbers that are not negative, where 0·ln 0 is 0. The
// relative error of a logarithm is below 1e-7, and for denormal numbers the error is below 1e-38.
// The lanes of the sum are the lanes of Sum.
func Entropy(x []float32) float32 { return entropy(x) }

func aboveGeneric(x []float32, least float32, first int32, dst []int32) int {
	n := 0
	for i, v := range x {
		dst[n] = first + int32(i)
		if v > least {
			n++
		}
	}
	return n
}

func ranksGeneric(dst []int32, x []float32) {
	for i, own := range x {
		dst[i] = 0
		for j, other := range x {
			if other > own || other == own && j < i {
				dst[i]++
			}
		}
	}
}

func entropyGeneric(x []float32) float32 {
	var sum float64
	for _, v := range x {
		if v != 0 {
			sum -= float64(float64(v) * math.Log(float64(v)))
		}
	}
	return float32(sum)
}
