// Package tensortest checks tensors and differentiable operations in tests: against exact numbers, against numeric
// derivatives, bit by bit, and against golden files.
package tensortest

import (
	"math"
	"testing"

	"github.com/attn-go/attn/tensor"
)

// Close fails the test unless every element of got is close to its exact value in want:
//
//	|got − want| ≤ 2·budget + 2⁻²⁰·max(1, max|want|)
//
// The budget is the largest error of the plain formula in float32. The floor is not relative to a single element,
// because an exact zero may be the difference of large numbers.
func Close(tb testing.TB, what string, got []float32, want []float64, budget float64) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Errorf("%s: %d elements, want %d", what, len(got), len(want))
		return
	}
	allowed := 2*budget + math.Ldexp(max(1, largest(want)), -20)
	worst, at, count := -1.0, 0, 0
	for i, w := range want {
		off := math.Abs(float64(got[i]) - w)
		switch {
		case off <= allowed:
			continue
		case off != off: // NaN or infinities: right only if both are the same
			if float64(got[i]) == w || (w != w && got[i] != got[i]) {
				continue
			}
			off = math.Inf(1)
		}
		count++
		if off > worst {
			worst, at = off, i
		}
	}
	if count > 0 {
		tb.Errorf("%s: element %d of %d is %v, want %v: off by %.3g, allowed %.3g (budget %.3g); %d elements are off",
			what, at, len(want), got[at], want[at], worst, allowed, budget, count)
	}
}

// Near fails the test unless two tensors are equal up to rounding.
func Near(tb testing.TB, what string, got, want *tensor.Tensor) {
	tb.Helper()
	budget := 2e-6
	if want.Len() == 1 { // the gradient of a single factor sums over all pairs and features, with terms of both signs
		budget *= 2
	}
	Close(tb, what, got.Data(), want.Float64s(), budget)
}

// Same fails the test unless got and want have the same bits. All NaNs count as equal.
func Same(tb testing.TB, what string, got, want []float32) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Errorf("%s: %d elements, want %d", what, len(got), len(want))
		return
	}
	first, count := -1, 0
	for i, w := range want {
		if g := got[i]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
			if first < 0 {
				first = i
			}
			count++
		}
	}
	if count > 0 {
		tb.Errorf("%s: element %d of %d is %v (%#08x), want the bits of %v (%#08x); %d elements differ", what, first, len(want),
			got[first], math.Float32bits(got[first]), want[first], math.Float32bits(want[first]), count)
	}
}

// poisoned is the number of floats of a new Tape that are NaN.
const poisoned = 1 << 16

// Tape returns a tape with seed 0 whose first memory, enough for a small test, is full of NaN. It exposes operations
// that assume zeroed memory or do not write every element.
func Tape(mode tensor.Mode) *tensor.Tape {
	t := tensor.NewTape(mode)
	t.Seed(0, 0)
	nan := float32(math.NaN())
	for i, x := 0, t.Floats(poisoned); i < len(x); i++ {
		x[i] = nan
	}
	t.Reset()
	return t
}

// largest returns the largest finite magnitude in x.
func largest[F float32 | float64](x []F) float64 {
	m := 0.0
	for _, v := range x {
		if a := math.Abs(float64(v)); a > m && !math.IsInf(a, 0) {
			m = a
		}
	}
	return m
}
