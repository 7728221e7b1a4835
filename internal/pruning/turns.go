package pruning

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/attn-go/attn/internal/bench"
	"github.com/attn-go/attn/internal/pruning/reports"
)

// turns measures two kinds of work in turns, so that both meet the same state of
// the machine, and returns medians in milliseconds, the median of the ratios of
// neighbours with its 95% interval, and the number of pairs.
//
// Pairs are run for about the given time, but manyTurns of them at least, unless
// that takes ten times as long, and fewestTurns at the very least. Which of the two
// goes first alternates. Short work is run several times at a time.
func turns(ctx context.Context, d time.Duration, before, after func()) (s reports.Speed, err error) {
	const warm = 2
	var single time.Duration
	for range warm {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		start := time.Now()
		before()
		after()
		single = time.Since(start) / 2
	}
	// Each measurement lasts half a millisecond at least: reading the clock and
	// waking up would count otherwise.
	times := int(500*time.Microsecond/max(single, 1)) + 1
	run := func(f func()) float64 {
		start := time.Now()
		for range times {
			f()
		}
		return time.Since(start).Seconds() * 1000 / float64(times)
	}
	var a, b, ratios []float64
	enough := func(took time.Duration) bool {
		switch n := len(a); {
		case n < fewestTurns:
			return false
		case n < manyTurns:
			return took > 10*d
		}
		return took > d
	}
	for start := time.Now(); !enough(time.Since(start)); {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		var x, y float64
		if len(a)%2 == 0 {
			x, y = run(before), run(after)
		} else {
			y, x = run(after), run(before)
		}
		a, b, ratios = append(a, x), append(b, y), append(ratios, x/y)
	}
	low, high := medianInterval(ratios)
	return reports.Speed{
		Before: reports.Number(bench.Median(a)), After: reports.Number(bench.Median(b)), Ratio: reports.Number(bench.Median(ratios)),
		Low: reports.Number(low), High: reports.Number(high), Repeats: len(ratios),
	}, nil
}

const (
	fewestTurns = 5
	manyTurns   = 30
)

// medianInterval returns the 95% interval of the median, by bootstrap.
func medianInterval(x []float64) (low, high float64) {
	const resamples = 1000
	rng := rand.New(rand.NewPCG(1, 1))
	medians := make([]float64, resamples)
	sample := make([]float64, len(x))
	for i := range medians {
		for j := range sample {
			sample[j] = x[rng.IntN(len(x))]
		}
		medians[i] = bench.Median(sample)
	}
	return quantile(medians, 0.025), quantile(medians, 0.975)
}

// quantile returns the q-quantile of x, between neighbours in proportion. It
// sorts x.
func quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	slices.Sort(x)
	at := q * float64(len(x)-1)
	i := int(at)
	if i+1 == len(x) {
		return x[i]
	}
	return x[i] + (at-float64(i))*(x[i+1]-x[i])
}

// spread describes x, which it sorts. Of numbers that are not finite nothing can
// be said.
func spread(x []float64) reports.Spread {
	if len(x) == 0 || slices.ContainsFunc(x, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
		return reports.Spread{Mean: reports.NaN, Low: reports.NaN, High: reports.NaN, Min: reports.NaN, Max: reports.NaN}
	}
	sum := 0.
	for _, v := range x {
		sum += v
	}
	return reports.Spread{
		Mean: reports.Number(sum / float64(len(x))), Low: reports.Number(quantile(x, 0.025)), High: reports.Number(quantile(x, 0.975)),
		Min: reports.Number(x[0]), Max: reports.Number(x[len(x)-1]),
	}
}
