package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/par"
)

// Names of summaries of several heads. In an address they replace the number of a head.
const (
	meanOfHeads  = "mean"    // of a layer
	meanOfLayers = "all"     // of one kind, shown at the last of them
	rollout      = "rollout" // from the first layer of a kind up to this one
)

// ofKind returns the positions in r of the layers of a kind, sorted by Index.
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

// summariesOf returns the names of the summaries of a layer.
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
	whole := !l.Kind.OfTwo() && len(ofKind(r, heads.Mamba)) == 0 && len(l.Queries) == len(l.Keys)
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

// weights returns the weights of a head or a summary, by its name in an address, which
// entry.named has checked. If values is set, they are value-weighted, except for the
// rollout, which always uses weights.
func (e *entry) weights(layer int, name string, values bool) ([]float32, error) {
	values = values && name != rollout
	if h, err := strconv.Atoi(name); err == nil {
		return e.valued(layer, h, values)
	}
	return e.memo.find(summaryKey{e.outline.ID, layer, name, values}, func() ([]float32, error) {
		list := ofKind(e.record, e.record.Layers[layer].Kind)
		switch name {
		case meanOfHeads:
			return e.eachHead(context.Background(), layer, values, nil)
		case meanOfLayers:
			return e.overall(list, values)
		}
		at := slices.Index(list, layer)
		mean, err := e.meanShares(layer)
		if err != nil || at == 0 {
			return heads.RollOn(nil, mean), err
		}
		before, err := e.weights(list[at-1], rollout, false) // usually cached: the overview requests layers in order
		if err != nil {
			return nil, err
		}
		return heads.RollOn(before, mean), nil
	})
}

// meanShares returns the mean of the shares of the heads of a layer.
func (e *entry) meanShares(layer int) ([]float32, error) {
	l := &e.record.Layers[layer]
	if !l.Signed {
		return e.weights(layer, meanOfHeads, false)
	}
	return heads.MeanOf(l.Heads, func(h int) ([]float32, error) {
		weights, err := e.head(layer, h)
		if err != nil {
			return nil, err
		}
		return oneHead(l, weights).Shares(0), nil
	})
}

// opened returns the weights of a head that is open in the page and caches them, because the page
// requests single rows of it next.
func (e *entry) opened(layer int, name string, values bool) ([]float32, error) {
	if !e.outline.Unread || slices.Contains(e.outline.Layers[layer].Summaries, name) {
		return e.weights(layer, name, values)
	}
	return e.memo.find(summaryKey{e.outline.ID, layer, name, values}, func() ([]float32, error) { return e.weights(layer, name, values) })
}

// eachHead computes the weights of all heads of a layer, value-weighted or not, one head per
// processor at a time. It calls see with each, unless see is nil, and returns their mean.
func (e *entry) eachHead(ctx context.Context, layer int, values bool, see func(h int, weights []float32)) ([]float32, error) {
	n, procs := e.record.Layers[layer].Heads, par.Threads()
	var sum total
	for first := 0; first < n; first += procs {
		if err := ctx.Err(); err != nil {
			return nil, err // the page no longer needs it
		}
		some, err := inParallel(min(procs, n-first), func(i int) ([]float32, error) {
			weights, err := e.valued(layer, first+i, values)
			if err == nil && see != nil {
				see(first+i, weights)
			}
			return weights, err
		})
		if err != nil {
			return nil, err
		}
		sum.add(some...)
	}
	return sum.mean(), nil
}

// cached is the number of elements of a sum that stay in the CPU cache from map to map.
const cached = 1 << 12

// total is a sum of n maps. The entry stores that of the means of the first layers of a kind, so that the mean of all
// layers, which the overview requests last, need not compute them again.
type total struct {
	n   int
	sum []float64
}

// add adds maps in the order of the list.
func (t *total) add(maps ...[]float32) {
	if t.sum == nil {
		t.sum = make([]float64, len(maps[0]))
	}
	t.n += len(maps)
	par.For(len(t.sum), cached, func(from, to int) {
		part := t.sum[from:to]
		for _, weights := range maps {
			for j, w := range weights[from:to] {
				part[j] += float64(w)
			}
		}
	})
}

// mean returns the mean of the maps.
func (t *total) mean() []float32 {
	mean := make([]float32, len(t.sum))
	par.For(len(mean), cached, func(from, to int) {
		for j := from; j < to; j++ {
			mean[j] = float32(t.sum[j] / float64(t.n))
		}
	})
	return mean
}

type totalKey struct {
	kind   heads.Kind
	values bool
}

// tally adds to the total of the layers of one kind the cached means of the next layers, up to the first missing one.
// The entry keeps the total for the next call, or else the caller finishes it: it is large.
func (e *entry) tally(list []int, values, keep bool) total {
	e.sums.Lock()
	defer e.sums.Unlock()
	key := totalKey{e.record.Layers[list[0]].Kind, values}
	t := e.totals[key]
	for t.n < len(list) {
		mean, held := e.memo.get(e.meanKey(list[t.n], values))
		if !held {
			break
		}
		t.add(mean)
	}
	delete(e.totals, key)
	if keep {
		e.totals[key] = t
	}
	return t
}

// overall returns the mean of the means of the layers of one kind, which have the same axes.
func (e *entry) overall(list []int, values bool) ([]float32, error) {
	t := e.tally(list, values, false)
	for t.n < len(list) {
		mean, err := e.weights(list[t.n], meanOfHeads, values)
		if err != nil {
			return nil, err
		}
		t.add(mean)
	}
	return t.mean(), nil
}

// meanKey names the mean of the heads of a layer.
func (e *entry) meanKey(layer int, values bool) summaryKey {
	return summaryKey{e.outline.ID, layer, meanOfHeads, values}
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

// summaryKey is the key of a cached summary or head.
type summaryKey struct {
	record string
	layer  int
	name   string
	values bool
}

const (
	mostSummaries  = 64
	mostSummarized = 128 << 20 // bytes of all of them; the last one may be larger
)

// newMemo returns a cache of summaries and heads, because the page requests the rows of one in turn. Each counts as at
// least 1/mostSummaries of the bytes.
func newMemo() *recent[summaryKey, []float32] {
	size := func(weights []float32) int { return max(4*len(weights), mostSummarized/mostSummaries) }
	return &recent[summaryKey, []float32]{most: mostSummarized, size: size}
}
