package view

import (
	"slices"
	"sync"
)

// recent is a cache of the most recently used values, up to a number of bytes, and at least one.
type recent[K comparable, V any] struct {
	most int         // bytes
	size func(V) int // bytes of a value, which do not change

	mu    sync.Mutex
	bytes int
	items []item[K, V] // least recently used first
}

type item[K comparable, V any] struct {
	key   K
	value V
}

// get returns the value of a key, and whether there is one.
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

// put stores a value, unless its key has one, and removes the least recently used values to make
// room for it.
func (r *recent[K, V]) put(key K, value V) {
	if _, held := r.get(key); held {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.items = append(r.items, item[K, V]{key, value})
	r.bytes += r.size(value)
	for r.bytes > r.most && len(r.items) > 1 {
		r.bytes -= r.size(r.items[0].value)
		r.items = slices.Delete(r.items, 0, 1)
	}
}

// find returns the value of a key. If there is none, it calls make and stores the result.
func (r *recent[K, V]) find(key K, make func() (V, error)) (V, error) {
	if value, held := r.get(key); held {
		return value, nil
	}
	value, err := make()
	if err == nil {
		r.put(key, value)
	}
	return value, err
}
