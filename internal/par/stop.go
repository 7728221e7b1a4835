package par

import "context"

// stopped is the panic value of Check.
type stopped struct{ err error }

// Check panics if ctx has ended; Stopped recovers from this panic. A nil ctx never ends. Long computations call Check
// between pieces of work, on any goroutine: from the body of For, the panic reaches the caller of For.
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
