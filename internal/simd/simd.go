package simd

import (
	"fmt"
	"math"
)

// piece is the number of elements that a kernel processes in one call. Go does not interrupt
// assembly, not even to collect garbage, so no call may run for long; a piece takes about ten
// microseconds. Longer slices are summed piece by piece, and the sums of the pieces are added in
// order.
const piece = 1 << 14

// mismatch panics because two slices that must have the same length do not. It is not inlined, so
// that sameLen is.
//
//go:noinline
func mismatch(op, aName string, a int, bName string, b int) {
	panic(fmt.Sprintf("simd: %s: len(%s)=%d, len(%s)=%d", op, aName, a, bName, b))
}

// sameLen panics unless two slices have the same length.
func sameLen(op, aName string, a int, bName string, b int) {
	if a != b {
		mismatch(op, aName, a, bName, b)
	}
}

// Exp sets dst[i] = exp(x[i]). The error is below 1 unit in the last place.
// Results below 2e-38, about the smallest normal number, may come out as 0.
func Exp(dst, x []float32) {
	sameLen("Exp", "dst", len(dst), "x", len(x))
	exp(dst, x)
}

// ExpSum sets dst[i] = exp(x[i]-shift) and returns the sum of dst. If shift is the maximum of x,
// this is the inner part of a softmax.
//
// Element i is added to lane i%16, in order of i. The lanes are then added in pairs: first 8 apart,
// then 4, 2 and 1. Longer slices are summed in blocks of 16384 elements, and the sums of the blocks
// are added in order. So zeros appended to the end change nothing.
func ExpSum(dst, x []float32, shift float32) float32 {
	sameLen("ExpSum", "dst", len(dst), "x", len(x))
	return expSum(dst, x, shift)
}

// Tanh sets dst[i] = tanh(x[i]). The error is below 2.5 units in the last place.
func Tanh(dst, x []float32) {
	sameLen("Tanh", "dst", len(dst), "x", len(x))
	tanh(dst, x)
}

// Sigmoid sets dst[i] = 1/(1+exp(-x[i])). The error is below 2.5 units in the
// last place. Results below 2e-38 may come out as 0.
func Sigmoid(dst, x []float32) {
	sameLen("Sigmoid", "dst", len(dst), "x", len(x))
	sigmoid(dst, x)
}

// GELU sets dst[i] = x[i]·Φ(x[i]), where Φ(x) = (1+erf(x/√2))/2 is the normal
// distribution function. This is the exact form, not the one with tanh. The
// error is below 6 units in the last place, also where x is far below 0.
//
// Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016,
// https://arxiv.org/abs/1606.08415.
func GELU(dst, x []float32) {
	sameLen("GELU", "dst", len(dst), "x", len(x))
	gelu(dst, x)
}

// GELUGrad sets dst[i] to the derivative of GELU at x[i],
// Φ(x) + x·exp(-x²/2)/√(2π). The error is below 3e-7.
func GELUGrad(dst, x []float32) {
	sameLen("GELUGrad", "dst", len(dst), "x", len(x))
	geluGrad(dst, x)
}

// Max returns the largest element of x: NaN if any is NaN, -Inf if x is empty.
func Max(x []float32) float32 {
	m := float32(math.Inf(-1))
	for len(x) > 0 {
		n := min(len(x), piece)
		m = max(m, maximum(x[:n]))
		x = x[n:]
	}
	return m
}

// Sum returns the sum of x, and 0 if x is empty. As in ExpSum, Dot and SumSquares, element i is
// added to a lane that depends on i only, and the lanes are added after every 16384 elements. Sum
// has 64 lanes, 16 in WebAssembly and 4 in generic Go.
func Sum(x []float32) float32 { return sum(x) }

// Dot returns the sum of x[i]·y[i].
func Dot(x, y []float32) float32 {
	sameLen("Dot", "x", len(x), "y", len(y))
	return dot(x, y)
}

// SumSquares returns the sum of x[i]².
func SumSquares(x []float32) float32 { return Dot(x, x) }

// Axpy sets y[i] += a·x[i].
func Axpy(a float32, x, y []float32) {
	sameLen("Axpy", "x", len(x), "y", len(y))
	axpy(a, x, y)
}

// Scale sets dst[i] = a·x[i].
func Scale(dst []float32, a float32, x []float32) {
	sameLen("Scale", "dst", len(dst), "x", len(x))
	scale(dst, a, x)
}

// ScaleShift sets dst[i] = a·x[i] + b.
func ScaleShift(dst []float32, a float32, x []float32, b float32) {
	sameLen("ScaleShift", "dst", len(dst), "x", len(x))
	scaleShift(dst, a, x, b)
}

// Add sets dst[i] = x[i]+y[i].
func Add(dst, x, y []float32) {
	checkThree("Add", dst, x, y)
	add(dst, x, y)
}

// Mul sets dst[i] = x[i]·y[i].
func Mul(dst, x, y []float32) {
	checkThree("Mul", dst, x, y)
	mul(dst, x, y)
}

// MulAdd sets dst[i] += x[i]·y[i].
func MulAdd(dst, x, y []float32) {
	checkThree("MulAdd", dst, x, y)
	mulAdd(dst, x, y)
}

// MulAddSparse adds d·x to dst, elementwise, where d is a gradient: an element of d that is zero adds nothing, even if
// that of x is not finite.
func MulAddSparse(dst, d, x []float32) {
	if Finite(x) {
		MulAdd(dst, d, x)
		return
	}
	var factors [256]float32
	for len(d) > 0 {
		n := min(len(d), len(factors))
		for i, v := range d[:n] {
			if factors[i] = 0; v != 0 {
				factors[i] = x[i]
			}
		}
		MulAdd(dst[:n], d[:n], factors[:n])
		dst, d, x = dst[n:], d[n:], x[n:]
	}
}

func checkThree(op string, dst, x, y []float32) {
	sameLen(op, "dst", len(dst), "x", len(x))
	sameLen(op, "dst", len(dst), "y", len(y))
}

// Finite reports whether no element of x is NaN or infinite.
func Finite(x []float32) bool { return finite(x) }
