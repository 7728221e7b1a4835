// Package bootstrap tells how sure a difference between two systems is that were measured on
// the same data.
package bootstrap

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Statistic is a number that a system has on a sample: on the items with these numbers, of
// which some stand there several times. It may keep nothing of the slice.
type Statistic func(sample []int) float64

// Difference returns the 95% interval of a statistic of b minus that of a, by the percentile
// bootstrap: the range of the difference over resamples of n items, drawn with replacement
// and the same for both, without the 2.5% at either end. 1000 resamples are usual; of fewer
// than 40, none is left out. If the difference is NaN on any resample, both ends are NaN.
// The result depends on nothing but the arguments.
//
// Panics if there are no items or no resamples.
//
// Source: Koehn, "Statistical Significance Tests for Machine Translation
// Evaluation", 2004, section 4, https://aclanthology.org/W04-3250.
func Difference(n, resamples int, seed uint64, a, b Statistic) (low, high float64) {
	if n < 1 || resamples < 1 {
		panic("bootstrap: Difference: no items or no resamples")
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	differences, sample := make([]float64, resamples), make([]int, n)
	for r := range differences {
		for i := range sample {
			sample[i] = rng.IntN(n)
		}
		differences[r] = b(sample) - a(sample)
	}
	slices.Sort(differences)
	if math.IsNaN(differences[0]) { // which sorts in front of all others
		return math.NaN(), math.NaN()
	}
	out := resamples / 40
	return differences[out], differences[resamples-1-out]
}
