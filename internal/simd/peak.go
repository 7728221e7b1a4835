package simd

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// PeakFLOPs takes the best of several rounds of about a millisecond, so that other work of the
// machine does not count. Within a round, calls are short enough for Go to interrupt between them.
const (
	peakRounds = 40
	peakCalls  = 100
	peakLoop   = 1 << 11 // of 24 instructions each: about ten microseconds
)

// PeakFLOPs measures, in about 50 ms, the floating-point operations per second that this machine
// reaches on the given number of threads at once, with the implementation in use. It runs
// multiply-adds, which count as two operations, without memory accesses. Compare the speed of
// Multiply with it. GOMAXPROCS must be at least threads.
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
				for int(ready.Load()) < threads { // start all at once
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

func fmaLoopGeneric(n int) float64 {
	const factor, term = 0.5, 0.5
	a, b, c, d := float32(term), float32(term), float32(term), float32(term)
	e, f, g, h := a, b, c, d
	for range n {
		a, b, c, d = a*factor+term, b*factor+term, c*factor+term, d*factor+term
		e, f, g, h = e*factor+term, f*factor+term, g*factor+term, h*factor+term
	}
	if a+b+c+d+e+f+g+h < 0 { // never happens, but the compiler cannot see that
		panic("simd: fmaLoop")
	}
	return 8 * 2
}
