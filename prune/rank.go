package prune

import (
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn/tensor"
)

// Spearman returns the rank correlation of two lists of scores of the same heads:
//
//	Σ (r_i − r̄)(s_i − s̄) / √(Σ (r_i − r̄)²·Σ (s_i − s̄)²)
//
// where r and s are the ranks within a and b, and equal scores share the mean of their ranks. Pairs with a
// NaN are left out. The result is 1 if both lists order the heads in the same way, −1 if one order is the
// reverse of the other, and NaN if fewer than two pairs remain or all scores of a list are equal.
//
// It panics with a *tensor.ShapeError if the lists differ in length.
//
// Source: Spearman, "The Proof and Measurement of Association between Two Things",
// 1904; with ties as in SciPy's spearmanr.
func Spearman(a, b []float64) float64 {
	x, y := known("prune: Spearman", a, b)
	return correlation(ranks(x), ranks(y))
}

// Pearson returns the correlation of two lists of numbers:
//
//	Σ (a_i − ā)(b_i − b̄) / √(Σ (a_i − ā)²·Σ (b_i − b̄)²)
//
// Pairs with a NaN are left out. The result is NaN if fewer than two pairs remain or all numbers of a list
// are equal.
//
// It panics with a *tensor.ShapeError if the lists differ in length.
func Pearson(a, b []float64) float64 { return correlation(known("prune: Pearson", a, b)) }

// known returns the pairs without a NaN.
func known(op string, a, b []float64) (x, y []float64) {
	if len(a) != len(b) {
		panic(&tensor.ShapeError{Op: op, Arg: "b", What: "number of values", Got: []int{len(b)}, Want: fmt.Sprintf("%d as in a", len(a))})
	}
	for i := range a {
		if !math.IsNaN(a[i]) && !math.IsNaN(b[i]) {
			x, y = append(x, a[i]), append(y, b[i])
		}
	}
	return x, y
}

func correlation(x, y []float64) float64 {
	mean := func(list []float64) (m float64) {
		for _, v := range list {
			m += v
		}
		return m / float64(len(list))
	}
	mx, my := mean(x), mean(y)
	var xy, xx, yy float64
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		xy, xx, yy = xy+float64(dx*dy), xx+float64(dx*dx), yy+float64(dy*dy)
	}
	return xy / math.Sqrt(xx*yy)
}

// ranks returns the rank of each number, from 0. Equal numbers share the mean of their ranks.
func ranks(list []float64) []float64 {
	sorted := slices.Sorted(slices.Values(list))
	r := make([]float64, len(list))
	for i, v := range list {
		first, _ := slices.BinarySearch(sorted, v)
		end := first
		for end < len(sorted) && sorted[end] == v {
			end++
		}
		r[i] = float64(first+end-1) / 2
	}
	return r
}
