package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/internal/par"
)

// A plan is of the loops of a call, cut for as many threads as asked.
func TestPlan(t *testing.T) {
	var threads []int
	p, err := Plan(t.Context(), "some", 8, time.Millisecond, func() {
		threads = append(threads, par.Threads())
		par.For(16, 1, func(lo, hi int) { time.Sleep(20 * time.Microsecond) })
		par.For(3, 1, func(lo, hi int) {})
	})
	if err != nil || p.Loops != 2 || p.Few != 1 || threads[len(threads)-1] != 8 {
		t.Errorf("%+v, error %v, threads %d", p, err, threads)
	}
	if p.Chunks != 19 || p.Largest < 1./19 || p.Largest > 1 || p.Speedup < 1 || p.Share < 0 || p.Share > 1 {
		t.Errorf("%+v", p)
	}
}

// What a loop loses is how much longer it takes than a division without remainder.
func TestWorstLoops(t *testing.T) {
	ms := time.Millisecond
	even, uneven := par.Loop{Caller: "a/b.even", Chunks: []time.Duration{ms, ms}}, par.Loop{Caller: "a/b.uneven", Chunks: []time.Duration{ms, 3 * ms}}
	p := Planned{Threads: 2, loops: []par.Loop{even, uneven, uneven}}
	want := "b.uneven: 2 of 2 chunks, 6 ms, 2 ms longer than shared evenly\nb.even: 1 of 2 chunks, 1 ms, 0 ms longer than shared evenly"
	if got := strings.Join(p.worst(5), "\n"); got != want || len(p.worst(1)) != 1 {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
