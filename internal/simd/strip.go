package simd

import (
	"fmt"
	"math"
	"unsafe"
)

// The functions of this file process strips of attention: a few rows of scores, stride floats
// apart, with n elements in each. The number of rows is the length of the slice that has one number
// for each row.

// RowMax sets dst[i] to the largest element of row i of x, and to -Inf if n is 0. It may or may not
// ignore a NaN: the result is NaN if a row has only NaN or has one near its end. Use Max to detect
// NaN reliably.
func RowMax(dst, x []float32, stride, n int) {
	checkStrip("RowMax", len(dst), len(x), stride, n)
	if n == 0 {
		fill(dst, float32(math.Inf(-1)))
		return
	}
	eachPiece(len(dst), n, func(lo, hi int) { rowMax(dst[lo:hi], x[lo*stride:], stride, n) })
}

// PowerRows replaces x by 2^(c·(x − shift[i])), where i is the row, and sets sum[i] to the sum of
// the row: the inner part of a softmax. An element equal to the shift becomes exactly 1. The
// relative error is the error of rounding the difference and the product to float32, plus less than
// 1 unit in the last place. Results below 2^-125 are 0. Exponents must not exceed 100.
//
// Element j of a row is added to lane j%16, and the lanes are added as in ExpSum, so zeros at the
// end change nothing.
func PowerRows(x []float32, stride, n int, c float32, shift, sum []float32) {
	sameLen("PowerRows", "shift", len(shift), "sum", len(sum))
	checkStrip("PowerRows", len(shift), len(x), stride, n)
	if n == 0 {
		clear(sum)
		return
	}
	eachPiece(len(shift), n, func(lo, hi int) { powerRows(x[lo*stride:], stride, n, c, shift[lo:hi], sum[lo:hi]) })
}

// WeightRows replaces x by 2^(c·(x − shift[i]))·factor[i]: the results of PowerRows, normalised.
func WeightRows(x []float32, stride, n int, c float32, shift, factor []float32) {
	sameLen("WeightRows", "shift", len(shift), "factor", len(factor))
	checkStrip("WeightRows", len(shift), len(x), stride, n)
	eachPiece(len(shift), n, func(lo, hi int) { weightRows(x[lo*stride:], stride, n, c, shift[lo:hi], factor[lo:hi]) })
}

// GradRows replaces dw by w·(dw − mean[i])·factor, and by 0 where w is 0, even if dw is NaN. This
// is the backward step of a softmax w with gradient dw, where mean[i] is the sum of w·dw over row
// i.
func GradRows(dw, w []float32, stride, n int, mean []float32, factor float32) {
	checkStrip("GradRows", len(mean), min(len(dw), len(w)), stride, n)
	eachPiece(len(mean), n, func(lo, hi int) { gradRows(dw[lo*stride:], w[lo*stride:], stride, n, mean[lo:hi], factor) })
}

// ScaleRows sets row i of dst to factor[i] times row i of src.
func ScaleRows(dst []float32, dstStride int, src []float32, srcStride, n int, factor []float32) {
	checkStrip("ScaleRows", len(factor), len(dst), dstStride, n)
	checkStrip("ScaleRows", len(factor), len(src), srcStride, n)
	eachPiece(len(factor), n, func(lo, hi int) {
		scaleRows(dst[lo*dstStride:], dstStride, src[lo*srcStride:], srcStride, n, factor[lo:hi])
	})
}

// StreamRows is ScaleRows for a dst that is larger than a cache and is not read soon. If the rows
// of dst start at multiples of 64 bytes, it bypasses the caches.
func StreamRows(dst []float32, dstStride int, src []float32, srcStride, n int, factor []float32) {
	checkStrip("StreamRows", len(factor), len(dst), dstStride, n)
	checkStrip("StreamRows", len(factor), len(src), srcStride, n)
	if n == 0 || len(factor) == 0 {
		return
	}
	if (uintptr(unsafe.Pointer(&dst[0]))|uintptr(4*dstStride))%64 != 0 {
		ScaleRows(dst, dstStride, src, srcStride, n, factor)
		return
	}
	eachPiece(len(factor), n, func(lo, hi int) {
		streamRows(dst[lo*dstStride:], dstStride, src[lo*srcStride:], srcStride, n, factor[lo:hi])
	})
}

// Hide sets elements of x to -Inf where seen is false.
func Hide(x []float32, seen []bool) {
	sameLen("Hide", "x", len(x), "seen", len(seen))
	hide(x, seen)
}

// Bits sets bit k%64 of dst[k/64] to seen[k], and the bits after the last to 0. dst must have
// exactly the number of words required.
func Bits(dst []uint64, seen []bool) {
	sameLen("Bits", "dst", len(dst), "words for seen", (len(seen)+63)/64)
	for len(seen) >= 64 {
		n := min(len(seen)/64, piece)
		packBits(dst[:n], seen[:64*n])
		dst, seen = dst[n:], seen[64*n:]
	}
	if len(seen) > 0 {
		var last [64]bool
		copy(last[:], seen)
		packBitsGeneric(dst, last[:])
	}
}

// eachPiece calls f for groups of rows with about piece elements each.
func eachPiece(rows, n int, f func(lo, hi int)) {
	if n == 0 {
		return
	}
	step := max(1, piece/n)
	for lo := 0; lo < rows; lo += step {
		f(lo, min(lo+step, rows))
	}
}

// checkStrip panics unless the rows fit in length floats. Rows must not be longer than piece,
// because Go could not interrupt the kernel.
func checkStrip(op string, rows, length, stride, n int) {
	if n < 0 || n > piece || stride < n || rows > 0 && (rows-1)*stride+n > length {
		panic(fmt.Sprintf("simd: %s: %d rows of %d, %d apart, in %d floats", op, rows, n, stride, length))
	}
}

func rowMaxGeneric(dst, x []float32, stride, n int) {
	for i := range dst {
		m := float32(math.Inf(-1))
		for j, v := range x[i*stride:][:n] {
			if v > m || j == 0 {
				m = v
			}
		}
		dst[i] = m
	}
}

func powerRowsGeneric(x []float32, stride, n int, c float32, shift, sum []float32) {
	for i := range sum {
		var lane [16]float32
		row := x[i*stride:][:n]
		for j, v := range row {
			p := power32(c * (v - shift[i]))
			row[j] = p
			lane[j%16] += p
		}
		sum[i] = sumOfLanes(&lane)
	}
}

func weightRowsGeneric(x []float32, stride, n int, c float32, shift, factor []float32) {
	for i, f := range factor {
		row := x[i*stride:][:n]
		for j, v := range row {
			row[j] = power32(c*(v-shift[i])) * f
		}
	}
}

// power32 returns 2^x, and 0 where the kernels return 0.
func power32(x float32) float32 {
	if x < -125 {
		return 0
	}
	return float32(exp64(float64(x) * math.Ln2))
}

func gradRowsGeneric(dw, w []float32, stride, n int, mean []float32, factor float32) {
	for i, m := range mean {
		d, p := dw[i*stride:][:n], w[i*stride:][:n]
		for j, v := range p {
			if v == 0 {
				d[j] = 0
			} else {
				d[j] = v * (d[j] - m) * factor
			}
		}
	}
}

func scaleRowsGeneric(dst []float32, dstStride int, src []float32, srcStride, n int, factor []float32) {
	for i, f := range factor {
		scaleGeneric(dst[i*dstStride:][:n], f, src[i*srcStride:][:n])
	}
}

func streamRowsGeneric(dst []float32, dstStride int, src []float32, srcStride, n int, factor []float32) {
	scaleRowsGeneric(dst, dstStride, src, srcStride, n, factor)
}

func hideGeneric(x []float32, seen []bool) {
	seen = seen[:len(x)]
	for j, s := range seen {
		if !s {
			x[j] = float32(math.Inf(-1))
		}
	}
}

func packBitsGeneric(dst []uint64, seen []bool) {
	for i := range dst {
		var word uint64
		for k, s := range seen[64*i:][:64] {
			var bit uint64
			if s {
				bit = 1
			}
			word |= bit << k
		}
		dst[i] = word
	}
}
