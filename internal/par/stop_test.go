package par_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/par/partest"
)

// When a context ends, no further chunk of a loop starts: at most the chunks in progress on other processors check it
// again.
func TestStopped(t *testing.T) {
	const n, procs = 10_000, 4
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	for _, end := range []int{1, 2, 77, n} {
		ctx, done := partest.NewCountdown(end), atomic.Int64{}
		err := par.Stopped(func() {
			par.For(n, 1, func(int, int) {
				par.For(2, 1, func(_, hi int) {
					if hi == 1 {
						par.Check(ctx)
						done.Add(1)
					}
				})
			})
		})
		if !errors.Is(err, context.Canceled) || done.Load() != int64(end-1) || ctx.Late() > procs {
			t.Errorf("end %d: %v, %d chunks done, %d checks after the end", end, err, done.Load(), ctx.Late())
		}
	}
	var none context.Context
	for _, ctx := range []context.Context{none, partest.NewCountdown(math.MaxInt)} {
		if err := par.Stopped(func() { par.Check(ctx) }); err != nil {
			t.Errorf("error %v of a context that has not ended", err)
		}
	}
	defer func() {
		if r := recover(); r != "other" {
			t.Errorf("recovered %v, want the other panic", r)
		}
	}()
	_ = par.Stopped(func() { panic("other") })
}

// A context that has ended before Share has ended for workers at once.
func TestShareAfterTheEnd(t *testing.T) {
	for range 1000 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if shared, stop := par.Share(ctx); !errors.Is(shared.Err(), context.Canceled) || stop == nil {
			t.Fatalf("error %v of a context that has ended", shared.Err())
		}
	}
}

// There are no more threads than processors.
func TestThreadsAreUsable(t *testing.T) {
	defer func(usable, procs int) { par.Usable = usable; runtime.GOMAXPROCS(procs) }(par.Usable, runtime.GOMAXPROCS(7))
	for usable, want := range map[int]int{3: 3, 7: 7, 12: 7} {
		if par.Usable = usable; par.Threads() != want {
			t.Errorf("%d threads on %d processors with GOMAXPROCS 7, want %d", par.Threads(), usable, want)
		}
	}
}

// After a panic, no further chunk starts: only those in progress on other threads end.
func TestNoChunkAfterAPanic(t *testing.T) {
	const n, procs = 400, 4
	defer func(usable, procs int) { par.Usable = usable; runtime.GOMAXPROCS(procs) }(par.Usable, runtime.GOMAXPROCS(procs))
	par.Usable = procs
	for name, loop := range map[string]func(n, chunk int, body func(lo, hi int)){"For": par.For, "InOrder": par.InOrder} {
		var after, failed atomic.Int64
		func() {
			defer func() { _ = recover() }()
			loop(n, 1, func(lo, _ int) {
				if failed.Load() == 1 {
					after.Add(1)
					time.Sleep(2 * time.Millisecond) // the thread that panics may have to wait for a processor
				}
				if lo == 3 {
					failed.Store(1)
					panic("in a chunk")
				}
				for i := 0; i < 1000 && failed.Load() == 0; i++ { // until the panic, or long enough
					runtime.Gosched()
				}
			})
		}()
		if after.Load() > n/2 {
			t.Errorf("%s: %d chunks started after the panic", name, after.Load())
		}
	}
}
