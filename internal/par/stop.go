package par

import (
	"context"
	"sync/atomic"
)

// stopped is the panic value of Check.
type stopped struct{ err error }

// Check panics if ctx has ended; Stopped recovers from this panic. A nil ctx never ends. Long computations call Check
// between pieces of work: from the body of For, the panic reaches the caller of For. There, ctx is one of Share.
func Check(ctx context.Context) {
	if ctx == nil {
		return
	}
	if err := ctx.Err(); err != nil {
		panic(stopped{err})
	}
}

// Stopped calls f. If a Check within f panics, it returns the error of the context. Other panics pass through.
func Stopped(f func()) (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case stopped:
			err = e.err
		default:
			panic(e)
		}
	}()
	f()
	return nil
}

// shared is a context whose Err may be called on workers.
type shared struct {
	context.Context
	err atomic.Pointer[error] // nil until the context has ended
}

func (s *shared) Err() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Share returns a context that ends with ctx, and that the bodies of For may check: Err of a cancelled context receives
// from its channel, which ends the program if the context is of a bubble of testing/synctest and a worker calls Err.
// stop frees what ctx keeps for it; the returned context then never ends. stop is nil if there is nothing to free.
func Share(ctx context.Context) (_ context.Context, stop func() bool) {
	if _, done := ctx.(*shared); done || ctx.Done() == nil {
		return ctx, nil
	}
	s := &shared{Context: ctx}
	end := func() {
		err := ctx.Err()
		s.err.Store(&err)
	}
	if ctx.Err() != nil {
		end()
	}
	return s, context.AfterFunc(ctx, end)
}
