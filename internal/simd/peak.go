package simd

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// What PeakFLOPs runs: rounds of about a millisecond, the best of which is free
// of what else the machine does, and within a round calls that are short enough
// for Go to interrupt between them.
const (
	peakRounds = 40
	peakCalls  = 100
	peakLoop   = 1 << 11 // of 24 instructions each: some ten microseconds
)

// PeakFLOPs returns how many floating-point operations a second this machine
// can do on the given number of threads at once, with the implementation in use:
// the speed of multiply-adds, which count as two, without any memory. It is
// measured, in some 50 ms, and is what the speed of Multiply can be held
// against. GOMAXPROCS must be at least threads.
func PeakFLOPs(threads int) float64 {
	flops := float64(threads) * peakCalls * fmaLoop(1) * peakLoop
	best := time.Duration(1<<63 - 1)
	for range peakRounds {
		var ready atomic.Int32
		var all sync.WaitGroup
		begin := make([]time.Time, threads)
		end := make([]time.Time, threads)
		for i := range threads {
			all.Go(func() {
				ready.Add(1)
				for int(ready.Load()) < threads { // all at once
					runtime.Gosched()
				}
				begin[i] = time.Now()
				for range peakCalls {
					fmaLoop(peakLoop)
				}
				end[i] = time.Now()
			})
		}
		all.Wait()
		first, last := slices.MinFunc(begin, time.Time.Compare), slices.MaxFunc(end, time.Time.Compare)
		best = min(best, last.Sub(first))
	}
	return flops / max(best, 1).Seconds()
}

// fmaLoopGeneric runs n rounds of multiply-adds that do not wait for one another
// and returns the floating-point operations of a round.
func fmaLoopGeneric(n int) float64 {
	const factor, term = 0.5, 0.5
	a, b, c, d := float32(term), float32(term), float32(term), float32(term)
	e, f, g, h := a, b, c, d
	for range n {
		a, b, c, d = a*factor+term, b*factor+term, c*factor+term, d*factor+term
		e, f, g, h = e*factor+term, f*factor+term, g*factor+term, h*factor+term
	}
	if a+b+c+d+e+f+g+h < 0 { // never, but the compiler does not know
		panic("simd: fmaLoop")
	}
	return 8 * 2
}
