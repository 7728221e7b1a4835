package bench

import (
	"context"
	"runtime"
	"time"

	"github.com/attn-go/attn/internal/simd"
)

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

// A Measurer measures prepared work.
type Measurer struct {
	Call func() // does the work once
	// Measure measures the work for about the given time.
	Measure func(ctx context.Context, d time.Duration) (Result, error)
}

// New prepares work for a number of threads. The work must be a result of Complete.
func New(w Work, threads int) Measurer {
	bytes := 0
	if w.base() == "decode" {
		bytes = int(w.CacheBytes())
	}
	m := Calls(threads, bytes, w.prepare())
	measure := m.Measure
	m.Measure = func(ctx context.Context, d time.Duration) (Result, error) {
		r, err := measure(ctx, d)
		r.Work = w
		return r, err
	}
	return m
}

// Calls measures calls of a function that uses a number of threads. bytes is the number of bytes that a memory-bound
// function reads in a call, and otherwise 0. The peaks are measured before and after, so that the machine is in the
// same state.
func Calls(threads, bytes int, call func()) Measurer {
	var read func() // nil unless the function is memory-bound
	if bytes > 0 {
		read = reading(bytes)
	}
	return Measurer{call, func(ctx context.Context, d time.Duration) (r Result, err error) {
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
	}}
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
