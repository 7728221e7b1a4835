package flash

import (
	"sync"
	"sync/atomic"

	"github.com/attn-go/attn/internal/par"
)

// team is the state of several tasks that use the same data.
type team struct {
	next, done atomic.Int32 // pieces of the data begun, and complete
	failed     atomic.Bool  // a task panicked while it computed a piece
	ended      atomic.Int32 // tasks
}

// divide calls compute for each of n pieces of the data, in one of the tasks that call divide. It then waits for
// the pieces in progress. It returns false if compute panicked in another task: the loop then panics, too.
func (t *team) divide(n int, compute func(piece int)) bool {
	t.compute(n, compute)
	par.Await(func() bool { return int(t.done.Load()) >= n || t.failed.Load() })
	return !t.failed.Load()
}

func (t *team) compute(n int, compute func(piece int)) {
	complete := false
	defer func() {
		if !complete {
			t.failed.Store(true)
		}
	}()
	for i := int(t.next.Add(1)) - 1; i < n; i = int(t.next.Add(1)) - 1 {
		compute(i)
		t.done.Add(1)
	}
	complete = true
}

// last ends one of the given number of tasks, and reports whether all have ended.
func (t *team) last(tasks int) bool { return int(t.ended.Add(1)) == tasks }

// pool recycles slices of states. Their elements are zero.
type pool[T any] struct{ sync.Pool }

func (p *pool[T]) borrow(n int) *[]T {
	list, ok := p.Get().(*[]T)
	if !ok {
		list = new([]T)
	}
	*list = grow(*list, n)
	return list
}

func (p *pool[T]) put(list *[]T) {
	clear(*list)
	p.Put(list)
}

var teamPool pool[team]
