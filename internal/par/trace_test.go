package par

import (
	"slices"
	"testing"
	"time"
)

// Trace cuts work for other numbers of threads and sees every loop, but none within the body of another.
func TestTrace(t *testing.T) {
	for _, threads := range []int{2, 16, 64} {
		s := Trace(threads, 3, func() {
			For(100, 100/Threads(), func(lo, hi int) { For(10, 1, func(lo, hi int) {}) })
			For(1, 1, func(lo, hi int) { For(6, 2, func(lo, hi int) { burn(time.Millisecond) }) }) // one chunk: only the loop within it counts
			For(5, 5, func(lo, hi int) {})
			For(0, 1, func(lo, hi int) {})
		})
		var chunks []int
		for _, l := range s.Loops {
			chunks = append(chunks, len(l.Chunks))
		}
		each := 100 / threads
		if want := []int{(99 + each) / each, 3, 1}; !slices.Equal(chunks, want) || s.Threads != threads {
			t.Errorf("%d threads: chunks %d, want %d", s.Threads, chunks, want)
		}
		if s.Loops[1].Span(1) < 3*time.Millisecond || s.Loops[1].Caller != "github.com/attn-go/attn/internal/par.TestTrace.func1.2" {
			t.Errorf("the second loop: %v", s.Loops[1])
		}
	}
	if n := Threads(); tracing.Load() != nil || n < 1 {
		t.Errorf("%d threads after Trace", n)
	}
}

func TestSchedule(t *testing.T) {
	ms := time.Millisecond
	s := Schedule{Threads: 2, Serial: 2 * ms, Loops: []Loop{
		{Chunks: []time.Duration{3 * ms, 1 * ms, 1 * ms, 4 * ms}, ordered: true}, // in order: one has 3, the other 1 + 1 + 4
		{Chunks: []time.Duration{1 * ms, 1 * ms, 4 * ms, 4 * ms}},                // one has its own 1 + 1, and then the other's second 4
		{Chunks: []time.Duration{ms}},
	}}
	if one, two, few := s.Time(1), s.Time(2), s.Few(); one != 22*ms || two != 15*ms || few != 1 {
		t.Errorf("%v, %v on two threads, %d loops with too few chunks", one, two, few)
	}
}
