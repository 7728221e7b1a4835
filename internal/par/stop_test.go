package par_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"testing"

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
