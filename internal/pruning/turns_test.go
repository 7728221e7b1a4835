package pruning

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/attn-go/attn/internal/pruning/reports"
)

func TestTurns(t *testing.T) {
	before, after := 0, 0
	s, err := turns(context.Background(), 10*time.Millisecond,
		func() { before++; time.Sleep(3 * time.Millisecond) }, func() { after++; time.Sleep(time.Millisecond) })
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

func TestSpread(t *testing.T) {
	x := make([]float64, 41)
	for i := range x {
		x[i] = float64((i*7 + 3) % 41) // 0 to 40, mixed
	}
	if got, want := spread(x), (reports.Spread{Mean: 20, Low: 1, High: 39, Min: 0, Max: 40}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := spread([]float64{5}), (reports.Spread{Mean: 5, Low: 5, High: 5, Min: 5, Max: 5}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	for _, x := range [][]float64{nil, {1, math.NaN()}, {math.Inf(1)}} {
		if got := spread(x); !math.IsNaN(float64(got.Mean)) || !math.IsNaN(float64(got.High)) {
			t.Errorf("the spread of %v is %v", x, got)
		}
	}
}
