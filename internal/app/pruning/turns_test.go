package pruning

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/attn-go/attn/internal/app/pruning/reports"
)

func TestTurns(t *testing.T) {
	before, after := 0, 0
	s, err := turns(context.Background(), 10*time.Millisecond,
		func() { before++; time.Sleep(3 * time.Millisecond) }, func() { after++ })
	if err != nil {
		t.Fatal(err)
	}
	if s.Repeats < fewestTurns || s.Repeats > manyTurns || before != after || before < s.Repeats {
		t.Errorf("%d pairs of %d and %d runs", s.Repeats, before, after)
	}
	if !(s.Low <= s.Ratio && s.Ratio <= s.High && s.Before > s.After && s.Ratio > 1) {
		t.Errorf("%+v", s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := turns(ctx, time.Hour, func() {}, func() {}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The reported times are from the pairs of runs that the ratio is from, whatever the load was at other times.
func TestComparedTimesAreOfTheRatio(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var pairs []pair
	for i := range 40 {
		p := pair{4.05, 4.05 / 1.28}
		if i%3 == 0 { // another process uses the CPU
			p = pair{3.9 + 0.1*rng.Float64(), 4.63 + 9*rng.Float64()}
		}
		pairs = append(pairs, p)
	}
	s := compared(pairs)
	if got := s.Before / s.After; math.Abs(float64(got-s.Ratio)) > 1e-9 {
		t.Errorf("%.3f → %.3f ms is a ratio of %.3f, but %.3f is told", s.Before, s.After, got, s.Ratio)
	}
	if !(s.Low <= s.Ratio && s.Ratio <= s.High) || s.Repeats != 40 {
		t.Errorf("%+v", s)
	}
	if s := compared([]pair{{3, 2}}); s.Before != 3 || s.After != 2 || s.Low != 1.5 || s.High != 1.5 {
		t.Errorf("one pair: %+v", s)
	}
}

func TestSpread(t *testing.T) {
	x := make([]reports.Number, 41)
	for i := range x {
		x[i] = reports.Number((i*7 + 3) % 41) // 0 to 40, mixed
	}
	if got, want := spread(x), (reports.Spread{Mean: 20, Low: 1, High: 39, Min: 0, Max: 40}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	const v = reports.Number(3.262130849432028) // 20 of them divided by 20 are rounded
	if got := spread(slices.Repeat([]reports.Number{v}, 20)); got.Mean != v {
		t.Errorf("the mean of equal numbers is %v, want %v", got.Mean, v)
	}
	if got, want := spread([]reports.Number{5}), (reports.Spread{Mean: 5, Low: 5, High: 5, Min: 5, Max: 5}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	for _, x := range [][]reports.Number{nil, {1, reports.NaN}, {reports.Number(math.Inf(1))}} {
		if got := spread(x); !math.IsNaN(float64(got.Mean)) || !math.IsNaN(float64(got.High)) {
			t.Errorf("the spread of %v is %v", x, got)
		}
	}
}

// The progress of the measurement says how to skip it, unless the goal is a speed, which needs it.
func TestSpeedSaysHowToSkip(t *testing.T) {
	m, parts := brief(t)
	for _, c := range []struct {
		goal Goal
		want string
	}{
		{Goal{Left: 5}, "speed (--speed-time 0 skips it)"},
		{Goal{Speed: 1.01}, "speed"},
	} {
		e, stages := experiment(t, m, parts, c.goal), map[string]bool{}
		e.SpeedTime, e.Progress = 1, func(stage string, _, _ int) { stages[stage] = true }
		x := e.start(new(reports.Report))
		x.left = e.Subject
		if err := x.speed(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(stages) != 1 || !stages[c.want] {
			t.Errorf("stages %v, want %s", stages, c.want)
		}
	}
}
