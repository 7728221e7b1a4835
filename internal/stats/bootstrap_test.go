package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// none is a system that scores 0 on any sample.
func none([]int) float64 { return 0 }

// sum returns the sum of the numbers of a sample's items.
func sum(x []float64) Statistic {
	return func(sample []int) float64 {
		s := 0.
		for _, i := range sample {
			s += x[i]
		}
		return s
	}
}

// 6 of 20 items count, so their number in a resample has the distribution Binomial(20, 0.3). Its
// distribution function is 0.0076, 0.0355 at 1, 2 and 0.9520, 0.9829 at 9, 10: the 2.5% quantiles are
// 2 and 10.
func TestBinomial(t *testing.T) {
	x := make([]float64, 20)
	for i := range 6 {
		x[3*i] = 1
	}
	for seed := range uint64(5) {
		if low, high := Difference(20, 20_000, seed, none, sum(x)); low != 2 || high != 10 {
			t.Errorf("seed %d: the interval of b is %v to %v, want 2 to 10", seed, low, high)
		}
		if low, high := Difference(20, 20_000, seed, sum(x), none); low != -10 || high != -2 {
			t.Errorf("seed %d: the interval of −a is %v to %v, want -10 to -2", seed, low, high)
		}
	}
}

// The interval of a mean of many numbers is that of the normal distribution: ±1.96 s/√n, where
// s² is their variance.
func TestNormal(t *testing.T) {
	const n = 1009
	rng := rand.New(rand.NewPCG(1, 2))
	a, b := make([]float64, n), make([]float64, n)
	mean, squares := 0., 0.
	for i := range a {
		a[i] = 100 * rng.NormFloat64() // common to both systems, so it cancels
		d := 3 + 2*rng.ExpFloat64()
		b[i] = a[i] + d
		mean, squares = mean+d/n, squares+d*d/n
	}
	half := 1.96 * math.Sqrt((squares-mean*mean)/n)
	low, high := Difference(n, 4000, 7, sum(a), sum(b))
	if got, want := low/n, mean-half; math.Abs(got-want) > 0.1*half {
		t.Errorf("the lower end is %v, want %v", got, want)
	}
	if got, want := high/n, mean+half; math.Abs(got-want) > 0.1*half {
		t.Errorf("the upper end is %v, want %v", got, want)
	}
}

// 2.5% of the resamples, rounded down, are cut off at each end.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		resamples int
		low, high float64
	}{{1, 0, 0}, {2, 0, 1}, {39, 0, 38}, {40, 1, 38}, {79, 1, 77}, {1000, 25, 974}} {
		// A statistic that is 0, 1, 2, … in a scrambled order: c.resamples is not a multiple of 7.
		calls := 0
		count := func([]int) float64 { calls++; return float64((calls - 1) * 7 % c.resamples) }
		if low, high := Difference(3, c.resamples, 1, none, count); low != c.low || high != c.high {
			t.Errorf("%d resamples: %v to %v, want %v to %v", c.resamples, low, high, c.low, c.high)
		}
		if calls != c.resamples {
			t.Errorf("%d samples, want %d", calls, c.resamples)
		}
	}
}

// Both systems get the same samples of n items. All items are equally likely, and the seed
// determines the samples.
func TestSamples(t *testing.T) {
	const n, resamples = 13, 2000
	record := func(seed uint64) (drawn [2][]int) {
		keep := func(to *[]int) Statistic {
			return func(sample []int) float64 {
				if len(sample) != n {
					t.Fatalf("a sample of %d items, want %d", len(sample), n)
				}
				*to = append(*to, sample...)
				return 0
			}
		}
		Difference(n, resamples, seed, keep(&drawn[0]), keep(&drawn[1]))
		return drawn
	}
	first, again, other := record(1), record(1), record(2)
	var times [n]int
	same := 0
	for i, item := range first[0] {
		if item != first[1][i] || item != again[0][i] {
			t.Fatalf("draw %d is %d, %d and in another run %d", i, item, first[1][i], again[0][i])
		}
		if item == other[0][i] {
			same++
		}
		times[item]++
	}
	if same > 2*resamples {
		t.Errorf("%d of %d draws are those of another seed", same, n*resamples)
	}
	for item, got := range times { // 2000 on average, ± 43
		if got < 1800 || got > 2200 {
			t.Errorf("item %d was drawn %d times in %d resamples", item, got, resamples)
		}
	}
}

// One item has only one sample; a single NaN makes the interval NaN.
func TestEdges(t *testing.T) {
	if low, high := Difference(1, 100, 1, none, sum([]float64{5})); low != 5 || high != 5 {
		t.Errorf("one item: %v to %v, want 5 to 5", low, high)
	}
	calls := 0
	once := func([]int) float64 {
		if calls++; calls == 50 {
			return math.NaN()
		}
		return 1
	}
	if low, high := Difference(5, 1000, 1, none, once); !math.IsNaN(low) || !math.IsNaN(high) {
		t.Errorf("NaN on one resample: %v to %v, want NaN", low, high)
	}
	inf := func([]int) float64 { return math.Inf(1) }
	if low, high := Difference(5, 100, 1, none, inf); !math.IsInf(low, 1) || !math.IsInf(high, 1) {
		t.Errorf("infinity: %v to %v", low, high)
	}
	for _, c := range [][2]int{{0, 10}, {10, 0}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d items and %d resamples do not panic", c[0], c[1])
				}
			}()
			Difference(c[0], c[1], 1, none, none)
		}()
	}
}
