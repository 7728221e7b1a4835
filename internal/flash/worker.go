package flash

import (
	"sync"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// worker is the memory of a task.
type worker struct {
	keys, values *simd.Panels // of a head: Kᵀ, and V
	own          [2]simd.Panels
	queries      simd.AdditiveQueries
	additive     *simd.AdditiveKeys // in place of keys, in the additive form
	ownAdditive  simd.AdditiveKeys
	from         int       // the key that the panels start with
	valuesAt     simd.Mat  // V from that key on
	scores       []float32 // rows of a block, stride apart
	stride       int
	stages       [][]float32                 // scores before and after each change, if the backward pass needs them
	all, block   partial                     // of the band, and of a block of keys for a strip of it
	floats       []float32                   // that these lie in
	top          []float32                   // the shift of each row of a strip; 0 if it sees nothing
	pieces       []piece                     // of a block, that a strip attends to
	weights      weights                     // if they are asked for
	bandWeights  []float32                   // where the caller does not keep them
	direct       bool                        // scores of a strip become weights there
	shifts       []float32                   // and the shifts of the blocks of keys, bandRows each
	stripRows    int                         // rows of a strip of the band
	started      [bandRows / vectorRows]bool // whether a strip has met keys
	spans        []Span
	masked       bool // spans hold on to memory of the mask's
	seen         []bool
	bits         []uint64   // of the spans that have booleans
	ahead        simd.Ahead // what keys and values ask for
	paged
}

// weights are rows of weights, from number first on.
type weights struct {
	data                []float32
	first, keys, stride int
}

// row returns a row.
func (x weights) row(i int) []float32 { return x.data[(i-x.first)*x.stride:][:x.keys] }

// from returns the rows from row i on, from key j on.
func (x weights) from(i, j int) []float32 { return x.data[(i-x.first)*x.stride+j:] }

var workers = sync.Pool{New: func() any { return new(worker) }}

// grow returns a slice of n elements, s if it is long enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// prepare makes room for a number of queries, of which some at a time have scores
// with a number of keys.
func (w *worker) prepare(a *Attention, rows, scored, keys int) {
	// A little more than their length keeps the rows from falling into the
	// same sets of a cache.
	w.stride = keys + 16
	w.scores = grow(w.scores, scored*w.stride)
	w.floats = grow(w.floats, (rows+scored)*(a.EV+2))
	w.all, w.block = newPartial(w.floats, rows, a.EV), newPartial(w.floats[rows*(a.EV+2):], scored, a.EV)
	w.top = grow(w.top, scored)
	w.prepareLook(a, rows)
}

// prepareLook makes room for what look tells of a number of queries.
func (w *worker) prepareLook(a *Attention, rows int) {
	w.spans = grow(w.spans, rows)
	if w.masked = a.masked(); w.masked {
		w.seen = grow(w.seen, rows*a.keys())
	}
}

// newPartial returns a partial for n queries in memory of n·(ev+2) elements.
func newPartial(x []float32, n, ev int) partial { return partial{x[:n], x[n : 2*n], x[2*n:][:n*ev]} }

// load makes keys k0 to k1 of a head ready, k0 a multiple of 64.
func (w *worker) load(a *Attention, b, g, k0, k1 int) {
	if a.Pages != nil {
		return // for loadPage
	}
	w.loadKeys(a, b, g, k0, k1)
	v := from(keys(a.V, a.source(b), g), k0)
	w.values, w.valuesAt = w.ownValues(a), v
	useOrCopy(w.values, v, k1-k0, a.EV)
}

// loadKeys is load of what scores need.
func (w *worker) loadKeys(a *Attention, b, g, k0, k1 int) {
	if w.from = k0; a.Given != nil {
		return
	}
	k := from(keys(a.K, a.source(b), g), k0)
	if a.Additive != nil {
		w.additive = &w.ownAdditive
		w.additive.Set(k.Data, k.Row, k1-k0, a.E, a.Additive)
		return
	}
	w.keys = w.ownKeys(a)
	w.keys.Copy(k.T(), a.E, k1-k0)
}

// ownKeys and ownValues return the worker's panels, for a matrix to be put in.
func (w *worker) ownKeys(a *Attention) *simd.Panels {
	w.own[0].Ahead = &w.ahead
	w.own[0].Tiles = simd.TilesForHeads(a.E) && a.Gaussian == nil
	return &w.own[0]
}

func (w *worker) ownValues(a *Attention) *simd.Panels {
	w.own[1].Ahead = &w.ahead
	w.own[1].Tiles, w.own[1].Sparse = simd.TilesForHeads(a.EV), true
	return &w.own[1]
}

// loadAll is load of all keys of a head, on all processors.
func (w *worker) loadAll(a *Attention, b, g int) {
	if a.Additive != nil || a.Given != nil || a.Pages != nil {
		w.load(a, b, g, 0, a.keys())
		return
	}
	k, v := keys(a.K, a.source(b), g).T(), keys(a.V, a.source(b), g)
	w.keys, w.values = w.ownKeys(a), w.ownValues(a)
	w.from, w.valuesAt = 0, v
	w.keys.Reserve(a.E, a.keys())
	const step = 64 // a multiple of the width of any panel
	par.For((a.keys()+step-1)/step, 2, func(lo, hi int) { w.keys.Fill(k, lo*step, min(hi*step, a.keys())) })
	useOrCopy(w.values, v, a.keys(), a.EV)
}

// borrow makes w use what another worker has loaded.
func (w *worker) borrow(from *worker) {
	w.keys, w.values, w.from = from.keys, from.values, from.from
	w.additive, w.valuesAt = from.additive, from.valuesAt
}

// release hands w back without the caller's slices.
func (w *worker) release() {
	w.forget()
	workers.Put(w)
}

// forget lets go of the caller's slices.
func (w *worker) forget() {
	w.keys, w.values, w.additive, w.valuesAt = nil, nil, nil, simd.Mat{}
	w.weights, w.direct = weights{}, false
	if w.masked {
		clear(w.spans)
	}
	w.page, w.scaleKeys, w.scaleValues = nil, nil, nil
	w.storedKeys, w.storedValues, w.pageRows = simd.StoredPanels{}, simd.StoredPanels{}, simd.Mat{}
	w.ahead.Reset()
	w.own[0].Release()
	w.own[1].Release()
	w.ownAdditive.Set(nil, 0, 0, 0, nil)
}

// useOrCopy makes panels of k rows that are contiguous.
func useOrCopy(p *simd.Panels, m simd.Mat, k, n int) {
	// Rows far apart are scattered over many pages, and over few sets of the
	// caches.
	if m.Row > 256 || !p.Use(m, k, n) {
		p.Copy(m, k, n)
	}
}
