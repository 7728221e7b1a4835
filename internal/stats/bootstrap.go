// Package stats groups items, and computes confidence intervals of statistics, such as the difference between
// two systems on the same data.
package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Statistic computes a number on a sample: the indexes of its items, some of them more than
// once. It must not keep the slice.
type Statistic func(sample []int) float64

// Interval returns the 95% interval of a statistic by the percentile bootstrap: it resamples n
// items with replacement, and returns the range of the statistic without the lowest and the
// highest 2.5%. 1000 resamples are usual; with fewer than 40, nothing is cut off. If the
// statistic is NaN on any resample, both ends are NaN. The result depends only on the arguments.
//
// Panics if there are no items or no resamples.
func Interval(n, resamples int, seed uint64, s Statistic) (low, high float64) {
	if n < 1 || resamples < 1 {
		panic("stats: no items or no resamples")
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	values, sample := make([]float64, resamples), make([]int, n)
	for r := range values {
		for i := range sample {
			sample[i] = rng.IntN(n)
		}
		values[r] = s(sample)
	}
	slices.Sort(values)
	if math.IsNaN(values[0]) { // slices.Sort puts NaN first
		return math.NaN(), math.NaN()
	}
	out := resamples / 40
	return values[out], values[resamples-1-out]
}

// Difference returns the Interval of b minus a, both computed on the same resamples: the paired
// bootstrap.
//
// Source: Koehn, "Statistical Significance Tests for Machine Translation
// Evaluation", 2004, section 4, https://aclanthology.org/W04-3250.
func Difference(n, resamples int, seed uint64, a, b Statistic) (low, high float64) {
	return Interval(n, resamples, seed, func(sample []int) float64 { return b(sample) - a(sample) })
}
