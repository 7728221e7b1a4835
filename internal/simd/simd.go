package simd

import "fmt"

// mismatch panics because two slices that must have the same length have not.
func mismatch(op, aName string, a int, bName string, b int) {
	panic(fmt.Sprintf("simd: %s: len(%s)=%d, len(%s)=%d", op, aName, a, bName, b))
}

// Exp sets dst[i] = exp(x[i]). Results below the smallest normal number may be
// flushed to 0. The error is below 1 ulp.
func Exp(dst, x []float32) {
	if len(dst) != len(x) {
		mismatch("Exp", "dst", len(dst), "x", len(x))
	}
	expGeneric(dst, x)
}

// ExpSum sets dst[i] = exp(x[i]-shift) and returns the sum of dst. Where shift
// is the maximum of x this is the inner part of a softmax.
//
// Element i is added to lane i%16, in order of i, and the lanes are then added
// in pairs: first 8 apart, then 4, 2 and 1.
func ExpSum(dst, x []float32, shift float32) float32 {
	if len(dst) != len(x) {
		mismatch("ExpSum", "dst", len(dst), "x", len(x))
	}
	return expSumGeneric(dst, x, shift)
}

// Tanh sets dst[i] = tanh(x[i]).
func Tanh(dst, x []float32) {
	if len(dst) != len(x) {
		mismatch("Tanh", "dst", len(dst), "x", len(x))
	}
	tanhGeneric(dst, x)
}

// Sigmoid sets dst[i] = 1/(1+exp(-x[i])).
func Sigmoid(dst, x []float32) {
	if len(dst) != len(x) {
		mismatch("Sigmoid", "dst", len(dst), "x", len(x))
	}
	sigmoidGeneric(dst, x)
}

// GELU sets dst[i] = x[i]·Φ(x[i]), where Φ(x) = (1+erf(x/√2))/2 is the normal
// distribution function. This is the exact form, not the one with tanh.
//
// Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016,
// https://arxiv.org/abs/1606.08415.
func GELU(dst, x []float32) {
	if len(dst) != len(x) {
		mismatch("GELU", "dst", len(dst), "x", len(x))
	}
	geluGeneric(dst, x)
}

// GELUGrad sets dst[i] to the derivative of GELU at x[i],
// Φ(x) + x·exp(-x²/2)/√(2π).
func GELUGrad(dst, x []float32) {
	if len(dst) != len(x) {
		mismatch("GELUGrad", "dst", len(dst), "x", len(x))
	}
	geluGradGeneric(dst, x)
}

// Max returns the largest element of x: NaN if any is, -Inf if there is none.
func Max(x []float32) float32 { return maxGeneric(x) }

// Sum returns the sum of x, and 0 for no elements. As in Dot and SumSquares,
// element i is added to a lane that depends on i only, in order of i, and the
// lanes are added at the end.
func Sum(x []float32) float32 { return sumGeneric(x) }

// Dot returns the sum of x[i]·y[i].
func Dot(x, y []float32) float32 {
	if len(x) != len(y) {
		mismatch("Dot", "x", len(x), "y", len(y))
	}
	return dotGeneric(x, y)
}

// SumSquares returns the sum of x[i]².
func SumSquares(x []float32) float32 { return dotGeneric(x, x) }

// Axpy sets y[i] += a·x[i].
func Axpy(a float32, x, y []float32) {
	if len(x) != len(y) {
		mismatch("Axpy", "x", len(x), "y", len(y))
	}
	axpyGeneric(a, x, y)
}

// Scale sets dst[i] = a·x[i].
func Scale(dst []float32, a float32, x []float32) {
	if len(dst) != len(x) {
		mismatch("Scale", "dst", len(dst), "x", len(x))
	}
	scaleGeneric(dst, a, x)
}

// Add sets dst[i] = x[i]+y[i].
func Add(dst, x, y []float32) {
	checkThree("Add", dst, x, y)
	addGeneric(dst, x, y)
}

// Mul sets dst[i] = x[i]·y[i].
func Mul(dst, x, y []float32) {
	checkThree("Mul", dst, x, y)
	mulGeneric(dst, x, y)
}

// MulAdd sets dst[i] += x[i]·y[i].
func MulAdd(dst, x, y []float32) {
	checkThree("MulAdd", dst, x, y)
	mulAddGeneric(dst, x, y)
}

func checkThree(op string, dst, x, y []float32) {
	if len(dst) != len(x) {
		mismatch(op, "dst", len(dst), "x", len(x))
	}
	if len(dst) != len(y) {
		mismatch(op, "dst", len(dst), "y", len(y))
	}
}

// Finite reports whether no element of x is NaN or infinite.
func Finite(x []float32) bool { return finiteGeneric(x) }
