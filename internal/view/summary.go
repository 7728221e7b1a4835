package view

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/attn-go/attn/heads"
)

// What is worked out of several heads, by the name that it has in an address in
// place of a head's number.
const (
	meanOfHeads  = "mean"    // of a layer
	meanOfLayers = "all"     // of one kind, with the last of them
	rollout      = "rollout" // from the first layer of a kind up to this one
)

// ofKind returns the places of the layers of a kind, by index.
func ofKind(r *heads.Record, k heads.Kind) []int {
	var list []int
	for i := range r.Layers {
		if r.Layers[i].Kind == k {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(r.Layers[a].Index, r.Layers[b].Index) })
	return list
}

// summariesOf returns the names of what can be worked out at a layer.
func summariesOf(r *heads.Record, layer int) []string {
	l := &r.Layers[layer]
	if len(l.Queries) == 0 || len(l.Keys) == 0 {
		return nil
	}
	var names []string
	if l.Heads > 1 {
		names = append(names, meanOfHeads)
	}
	list := ofKind(r, l.Kind)
	at := slices.Index(list, layer)
	sameAxes := func(i int) bool {
		o := &r.Layers[i]
		return len(o.Queries) == len(l.Queries) && len(o.Keys) == len(l.Keys)
	}
	whole := l.Kind != heads.Cross && len(l.Queries) == len(l.Keys)
	for n, i := range list[:at+1] {
		whole = whole && sameAxes(i) && r.Layers[i].Index == n && r.Layers[i].Chosen == nil
	}
	if whole {
		names = append(names, rollout)
	}
	if at > 0 && at == len(list)-1 && !slices.ContainsFunc(list, func(i int) bool { return !sameAxes(i) }) {
		names = append(names, meanOfLayers)
	}
	return names
}

// weights returns the weights of a head, or of a summary, by the name that it has in
// an address; query.head has checked it. They are value-weighted if values says so, but
// for the rollout, which is one of weights.
func (e *entry) weights(layer int, name string, values bool) ([]float32, error) {
	values = values && name != rollout
	if h, err := strconv.Atoi(name); err == nil {
		return e.valued(layer, h, values)
	}
	return e.memo.get(summaryKey{e.outline.ID, layer, name, values}, func() ([]float32, error) {
		switch name {
		case meanOfHeads:
			return e.mean(layer, values)
		case meanOfLayers:
			list := ofKind(e.record, e.record.Layers[layer].Kind)
			return heads.MeanOf(len(list), func(i int) ([]float32, error) { return e.mean(list[i], values) })
		}
		list := ofKind(e.record, e.record.Layers[layer].Kind)
		at := slices.Index(list, layer)
		mean, err := e.mean(layer, false)
		if err != nil || at == 0 {
			return heads.RollOn(nil, mean), err
		}
		before, err := e.weights(list[at-1], rollout, false) // most often it is there: the overview asks from the first layer on
		if err != nil {
			return nil, err
		}
		return heads.RollOn(before, mean), nil
	})
}

// opened returns the weights of a head that is open in the page, and keeps them: the page asks
// for single rows of it next.
func (e *entry) opened(layer int, name string, values bool) ([]float32, error) {
	if !e.outline.Unread || slices.Contains(e.outline.Layers[layer].Summaries, name) {
		return e.weights(layer, name, values)
	}
	return e.memo.get(summaryKey{e.outline.ID, layer, name, values}, func() ([]float32, error) { return e.weights(layer, name, values) })
}

func (e *entry) mean(layer int, values bool) ([]float32, error) {
	n := e.record.Layers[layer].Heads
	return heads.MeanOf(n, ahead(n, func(h int) ([]float32, error) { return e.valued(layer, h, values) }))
}

// ahead returns at, for numbers from 0 to n-1 that are asked for one after the other, and works
// out as many of them at a time as there are processors.
func ahead[T any](n int, at func(i int) (T, error)) func(i int) (T, error) {
	var next []T
	var err error
	procs := runtime.GOMAXPROCS(0)
	return func(i int) (result T, _ error) {
		if i%procs == 0 {
			if next, err = inParallel(min(procs, n-i), func(j int) (T, error) { return at(i + j) }); err != nil {
				return result, err
			}
		}
		return next[i%procs], nil
	}
}

// valued returns the weights of a head, value-weighted or not.
func (e *entry) valued(layer, h int, values bool) ([]float32, error) {
	weights, err := e.head(layer, h)
	if err != nil || !values {
		return weights, err
	}
	l := &e.record.Layers[layer]
	if l.ValueNorms == nil {
		return nil, fmt.Errorf("%s has no norms of values", l.Name)
	}
	return heads.ValueWeighted(weights, l.Norms(h)), nil
}

// summaryKey names a summary of a record that the server holds.
type summaryKey struct {
	record string
	layer  int
	name   string
	values bool
}

// memo holds the summaries that were used last: the page asks for the rows of one
// after the other. The zero value is ready for use, and nil holds nothing.
type memo struct {
	mu     sync.Mutex
	latest []memoized // the one used last at the end
}

type memoized struct {
	key     summaryKey
	weights []float32
}

const (
	mostSummaries  = 16
	mostSummarized = 8 << 20 // weights of all of them, but for the latest
)

// get returns what make returns, or has returned.
func (m *memo) get(key summaryKey, make func() ([]float32, error)) ([]float32, error) {
	if m == nil {
		return make()
	}
	find := func() []float32 {
		m.mu.Lock()
		defer m.mu.Unlock()
		at := slices.IndexFunc(m.latest, func(x memoized) bool { return x.key == key })
		if at < 0 {
			return nil
		}
		x := m.latest[at]
		m.latest = append(slices.Delete(m.latest, at, at+1), x)
		return x.weights
	}
	if w := find(); w != nil {
		return w, nil
	}
	w, err := make()
	if err != nil || find() != nil {
		return w, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.latest = append(m.latest, memoized{key, w})
	for size := 0; ; size = 0 {
		for _, x := range m.latest {
			size += len(x.weights)
		}
		if len(m.latest) == 1 || len(m.latest) <= mostSummaries && size <= mostSummarized {
			return w, nil
		}
		m.latest = slices.Delete(m.latest, 0, 1)
	}
}
