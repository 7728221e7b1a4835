package bench

import (
	"context"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/attn-go/attn/internal/simd"
)

// Sample has the times of calls of a function.
type Sample struct {
	Median, Min, Max float64 // milliseconds per call
	Bytes            float64 // allocated per call
}

const (
	// fewest is the least number of samples, however long they take.
	fewest = 5
	// most is the largest number of samples.
	most = 1 << 16
	// shortest is the least duration of a sample: shorter calls are timed several at a time,
	// because reading the clock takes time too.
	shortest = 100 * time.Microsecond
)

// Measure calls f repeatedly, first to warm up and then for about the given time, and returns
// the time per call. If ctx ends, it returns early with the context's error.
func Measure(ctx context.Context, d time.Duration, f func()) (Sample, error) {
	// Memory and caches fill, the workers start, and the processor reaches a stable
	// frequency.
	start := time.Now()
	calls := 0
	for took := time.Duration(0); calls < 2 || took < d/5; took = time.Since(start) {
		if err := ctx.Err(); err != nil {
			return Sample{}, err
		}
		f()
		calls++
	}
	start = time.Now()
	f()
	batch := int(shortest/max(time.Since(start), 1)) + 1

	times := make([]float64, 0, 1024)
	for start = time.Now(); len(times) < fewest || (time.Since(start) < d && len(times) < most); {
		if err := ctx.Err(); err != nil {
			return Sample{}, err
		}
		begin := time.Now()
		for range batch {
			f()
		}
		times = append(times, time.Since(begin).Seconds()*1000/float64(batch))
	}
	s := Sample{Median: Median(times), Min: slices.Min(times), Max: slices.Max(times)}

	var before, after runtime.MemStats
	count := int(min(100, max(1, 20/s.Median)))
	runtime.ReadMemStats(&before)
	for range count {
		f()
	}
	runtime.ReadMemStats(&after)
	s.Bytes = math.Round(float64(after.TotalAlloc-before.TotalAlloc) / float64(count))
	return s, ctx.Err()
}

// Median returns the median of x: the mean of the two middle numbers if their count is even. It
// sorts x.
func Median(x []float64) float64 {
	slices.Sort(x)
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}

// Result is a measurement by Run. Values that do not apply are 0.
type Result struct {
	Work    Work
	Threads int
	Sample
	PeakGFLOPS   float64 // of this machine with this number of threads
	PeakReadGBps float64 // of a buffer with the size of the keys and values
}

// GFLOPS returns the useful operations per second.
func (r Result) GFLOPS() float64 { return r.Work.FLOPs() / r.Median / 1e6 }

// PeakShare returns the fraction of the machine's peak.
func (r Result) PeakShare() float64 { return r.GFLOPS() / r.PeakGFLOPS }

// GTriples returns the triples per second of additive scores.
func (r Result) GTriples() float64 { return r.Work.Triples() / r.Median / 1e6 }

// ReadGBps returns the speed at which a decoder's step reads keys and values.
func (r Result) ReadGBps() float64 { return r.Work.CacheBytes() / r.Median / 1e6 }

// ReadShare returns the fraction of the read speed.
func (r Result) ReadShare() float64 { return r.ReadGBps() / r.PeakReadGBps }

// A Measurer measures prepared work for about the given time.
type Measurer func(ctx context.Context, d time.Duration) (Result, error)

// New prepares work for a number of threads. The work must be a result of Complete.
func New(w Work, threads int) Measurer {
	bytes := 0
	if w.base() == "decode" {
		bytes = int(w.CacheBytes())
	}
	measure := Calls(threads, bytes, w.Prepare())
	return func(ctx context.Context, d time.Duration) (Result, error) {
		r, err := measure(ctx, d)
		r.Work = w
		return r, err
	}
}

// Calls measures calls of a function that uses a number of threads. bytes is the number of bytes that a memory-bound
// function reads in a call, and otherwise 0. The peaks are measured before and after, so that the machine is in the
// same state.
func Calls(threads, bytes int, call func()) Measurer {
	var read func() // nil unless the function is memory-bound
	if bytes > 0 {
		read = reading(bytes)
	}
	return func(ctx context.Context, d time.Duration) (r Result, err error) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
		r.Threads, r.PeakGFLOPS = threads, simd.PeakFLOPs(threads)/1e9
		if r.Sample, err = Measure(ctx, d, call); err != nil {
			return r, err
		}
		if read != nil {
			s, err := Measure(ctx, d/2, read)
			if err != nil {
				return r, err
			}
			r.PeakReadGBps = float64(bytes) / s.Min / 1e6
		}
		r.PeakGFLOPS = max(r.PeakGFLOPS, simd.PeakFLOPs(threads)/1e9)
		return r, nil
	}
}

// orInterrupted returns the result of f, or the context's error as soon as ctx ends. The current call is then
// abandoned: the program should end soon.
func orInterrupted[R any](ctx context.Context, f func() (R, error)) (R, error) {
	type answer struct {
		r   R
		err error
	}
	done := make(chan answer, 1)
	go func() {
		r, err := f()
		done <- answer{r, err}
	}()
	select {
	case a := <-done:
		return a.r, a.err
	case <-ctx.Done():
		var none R
		return none, ctx.Err()
	}
}
