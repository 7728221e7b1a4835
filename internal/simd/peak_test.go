package simd

import (
	"runtime"
	"testing"
)

// The exact speed of a machine cannot be tested, only that it is plausible.
func TestPeakFLOPs(t *testing.T) {
	onEach(t, func(t *testing.T) {
		for _, threads := range []int{1, runtime.GOMAXPROCS(0)} {
			p := PeakFLOPs(threads) / 1e9
			t.Logf("%d threads: %.0f GFLOP/s", threads, p)
			if p < 0.01 || p > 1000*float64(threads) {
				t.Errorf("%d threads: %.3g GFLOP/s", threads, p)
			}
		}
	})
}

// Implementation returns the name of the one in use.
func TestImplementation(t *testing.T) {
	onEach(t, func(t *testing.T) {
		if got := Implementation(); got != active.String() || got == "" {
			t.Errorf("%q", got)
		}
	})
}
