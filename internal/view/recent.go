package view

import (
	"slices"
	"sync"
)

// recent holds values that were used last, up to a number of bytes, and always the last one.
type recent[K comparable, V any] struct {
	most int // bytes

	mu    sync.Mutex
	bytes int
	items []item[K, V] // the one used last at the end
}

type item[K comparable, V any] struct {
	key   K
	value V
	bytes int
}

// get returns what is held under a key.
func (r *recent[K, V]) get(key K) (value V, held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.items, func(x item[K, V]) bool { return x.key == key })
	if at < 0 {
		return value, false
	}
	x := r.items[at]
	r.items = append(slices.Delete(r.items, at, at+1), x)
	return x.value, true
}

// put holds a value, unless there is one under its key, and lets go of those that have not been used
// for the longest to make room for it.
func (r *recent[K, V]) put(key K, value V, bytes int) {
	if _, held := r.get(key); held {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.items = append(r.items, item[K, V]{key, value, bytes})
	r.bytes += bytes
	for r.bytes > r.most && len(r.items) > 1 {
		r.bytes -= r.items[0].bytes
		r.items = slices.Delete(r.items, 0, 1)
	}
}
