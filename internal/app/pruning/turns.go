package pruning

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/stats"
)

// turns measures two kinds of work alternately, so that both run under the same conditions. It
// returns their times in milliseconds and the ratio of these, all three from the same pairs (see
// middle), the ratio's 95% interval, and the number of pairs.
//
// It runs pairs for about the given time and at least manyTurns of them, unless that takes three
// times as long; fewestTurns is the absolute minimum. Fewer pairs make the interval wider. The order within a pair alternates. Short
// work is repeated within one measurement.
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
	// Each measurement lasts at least half a millisecond, so that reading the clock and waking up
	// hardly count.
	times := int(500*time.Microsecond/max(single, 1)) + 1
	run := func(f func()) float64 {
		start := time.Now()
		for range times {
			f()
		}
		return time.Since(start).Seconds() * 1000 / float64(times)
	}
	var pairs []pair
	enough := func(took time.Duration) bool {
		switch n := len(pairs); {
		case n < fewestTurns:
			return false
		case n < manyTurns:
			return took > 3*d
		}
		return took > d
	}
	for start := time.Now(); !enough(time.Since(start)); {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		var x, y float64
		if len(pairs)%2 == 0 {
			x, y = run(before), run(after)
		} else {
			y, x = run(after), run(before)
		}
		pairs = append(pairs, pair{x, y})
	}
	return compared(pairs), nil
}

// pair is two consecutive times, in milliseconds.
type pair struct{ before, after float64 }

// compared summarises pairs.
func compared(pairs []pair) reports.Speed {
	before, after := middle(pairs)
	low, high := stats.Interval(len(pairs), 1000, 1, func(sample []int) float64 {
		before, after := middle(stats.Pick(pairs, sample))
		return before / after
	})
	return reports.Speed{
		Before: reports.Number(before), After: reports.Number(after), Ratio: reports.Number(before / after),
		Low: reports.Number(low), High: reports.Number(high), Repeats: len(pairs),
	}
}

// middle returns the mean times over the half of the pairs whose ratios are in the middle. Like a
// median, it ignores outliers, and the quotient of the two times is the ratio. Separate medians
// of the times could come from different moments and contradict the median of the ratios. It
// sorts the pairs.
func middle(pairs []pair) (before, after float64) {
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.before/a.after, b.before/b.after) })
	kept := pairs[len(pairs)/4 : len(pairs)-len(pairs)/4]
	for _, p := range kept {
		before += p.before
		after += p.after
	}
	return before / float64(len(kept)), after / float64(len(kept))
}

const (
	fewestTurns = 5
	manyTurns   = 30
)

// quantile returns the q-quantile of x, which is sorted, with linear interpolation.
func quantile(x []reports.Number, q float64) reports.Number {
	at := float64(q * float64(len(x)-1))
	i := int(at)
	if i+1 == len(x) {
		return x[i]
	}
	return x[i] + reports.Number((at-float64(i))*float64(x[i+1]-x[i]))
}

// spread returns statistics of x, which it sorts. They are empty if any number is not finite.
func spread(x []reports.Number) reports.Spread {
	if len(x) == 0 || slices.ContainsFunc(x, func(v reports.Number) bool { return !v.Known() }) {
		return reports.Spread{Mean: reports.NaN, Low: reports.NaN, High: reports.NaN, Min: reports.NaN, Max: reports.NaN}
	}
	sum := reports.Number(0)
	for _, v := range x {
		sum += v
	}
	slices.Sort(x)
	low, high := x[0], x[len(x)-1]
	mean := min(max(sum/reports.Number(len(x)), low), high) // rounding must not make equal numbers worse than their mean
	return reports.Spread{Mean: mean, Low: quantile(x, 0.025), High: quantile(x, 0.975), Min: low, Max: high}
}
