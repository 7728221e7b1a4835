package bench

import (
	"context"
	"math"
	"runtime"
	"slices"
	"time"
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
