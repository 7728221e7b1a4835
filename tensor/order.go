package tensor

import (
	"cmp"
	"slices"
)

// compare orders numbers as PyTorch does: NaN is larger than all others. (Package floats of gonum is for float64.)
func compare(a, b float32) int {
	if a != a || b != b {
		return cmp.Compare(b, a)
	}
	return cmp.Compare(a, b)
}

// ArgMax returns the index of the largest element of each row of the last axis. It is TopK with k = 1.
func ArgMax(x *Tensor) []int {
	_, at := TopK(x, 1)
	return at
}

// TopK returns the k largest elements of each row of the last axis, the largest first and equal ones in their order, and
// their indices in the row. NaN is larger than all numbers, as in PyTorch. No gradient flows to x. It is fast for small k.
//
// Shapes: x [… N], values [… k], and k indices for each row. It panics with a *ShapeError unless k is 1 to N.
func TopK(x *Tensor, k int) (values *Tensor, indices []int) {
	operand("TopK", "x", x)
	if x.Rank() == 0 || k < 1 || k > x.Dim(-1) {
		badShape("TopK", "x", x.shape, "[… N] with 1 ≤ k ≤ N, where k is %d", k)
	}
	values = Zeros(append(slices.Clone(x.shape[:x.Rank()-1]), k)...)
	for row := range slices.Chunk(x.data, x.Dim(-1)) {
		first := len(indices)
		for i, v := range row {
			top := indices[first:]
			if len(top) == k && compare(v, row[top[k-1]]) <= 0 {
				continue
			}
			at, _ := slices.BinarySearchFunc(top, v, func(j int, v float32) int { return cmp.Or(compare(v, row[j]), -1) })
			indices = slices.Insert(indices, first+at, i)[:min(first+k, len(indices)+1)]
		}
		for i, j := range indices[first:] {
			values.data[first+i] = row[j]
		}
	}
	return values, indices
}

// Sort returns x with each row of the last axis in ascending order, NaN last. No gradient flows to x.
func Sort(x *Tensor) *Tensor {
	checkAxis("Sort", x, max(x.Rank()-1, 0))
	y := x.Clone()
	for row := range slices.Chunk(y.data, max(x.Dim(-1), 1)) {
		slices.SortFunc(row, compare)
	}
	return y
}

// Linspace returns n numbers from one to another, both included, with equal steps that are computed in float64: [n]. The
// numbers 0 to n-1 are Linspace(0, float64(n-1), n).
func Linspace(from, to float64, n int) *Tensor {
	x := Zeros(n)
	for i := range x.data {
		at := float64(i) / float64(max(n-1, 1))
		x.data[i] = float32(float64(from*(1-at)) + float64(to*at))
	}
	return x
}

// FromFloat64s is New of numbers that are rounded to float32, and copied.
func FromFloat64s(data []float64, shape ...int) *Tensor {
	x := New(make([]float32, len(data)), shape...)
	for i, v := range data {
		x.data[i] = float32(v)
	}
	return x
}

// Float64s returns the elements of x, row-major. They are copied.
func (x *Tensor) Float64s() []float64 {
	list := make([]float64, x.Len())
	for i, v := range x.Data() {
		list[i] = float64(v)
	}
	return list
}
