package flash

import (
	"sync"

	"github.com/attn-go/attn/internal/simd"
)

// worker is the memory of a task.
type worker struct {
	keys, values *simd.Panels // Kᵀ and V of a head
	own          [2]simd.Panels
	queries      simd.AdditiveQueries
	additive     *simd.AdditiveKeys // instead of keys, in the additive form
	ownAdditive  simd.AdditiveKeys
	from         int       // the first key of the panels
	valuesAt     simd.Mat  // V from that key on
	scores       []float32 // rows of a block, stride apart
	stride       int
	stages       [][]float32               // scores before and after each change, for the backward pass
	all, block   partial                   // of the band, and of a block of keys for one strip
	floats       []float32                 // memory of all and block
	top          []float32                 // the shift of each row of a strip; 0 if it attends to no key
	pieces       []piece                   // parts of a block that a strip attends to
	segments     []segment                 // rows of a strip
	weights      weights                   // if requested
	bandWeights  []float32                 // if the caller does not keep the weights
	direct       bool                      // scores of a strip become weights in bandWeights
	shifts       []float32                 // shifts of the blocks of keys, bandRows each
	stripRows    int                       // rows per strip of the band
	started      [bandRows / TileRows]bool // whether a strip has been combined with keys
	spans        []Span
	masked       bool // spans refer to memory of the mask
	seen         []bool
	bits         []uint64   // of spans with booleans
	ahead        simd.Ahead // prefetches keys and values
	paged
}

// weights are rows of weights. The first row has number first.
type weights struct {
	data                []float32
	first, keys, stride int
}

// row returns row number i.
func (x weights) row(i int) []float32 { return x.data[(i-x.first)*x.stride:][:x.keys] }

// from returns the rows from row i on, from key j on.
func (x weights) from(i, j int) []float32 { return x.data[(i-x.first)*x.stride+j:] }

var workers = sync.Pool{New: func() any { return new(worker) }}

// grow returns a slice of n elements: s, if it is large enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// denseKeys is the largest number of keys whose scores are without gaps between rows if there is
// dropout, which then takes one call instead of one for each row.
const denseKeys = 128

// plainDots reports whether the scores are dot products that are computed in place by vector
// kernels. Others write whole panels of scores.
func (a *Attention) plainDots() bool {
	return a.Given == nil && a.Additive == nil && a.Gaussian == nil && a.Pages == nil
}

// prepare allocates memory for the given numbers of queries, of queries with scores at a time,
// and of keys with scores.
func (w *worker) prepare(a *Attention, rows, scored, keys int) {
	// A few extra elements per row keep the rows from mapping to the same sets of a cache.
	w.stride = keys + 16
	if a.Dropout > 0 && a.keys() <= denseKeys && a.plainDots() {
		w.stride = a.keys()
	}
	w.scores = grow(w.scores, scored*w.stride)
	w.floats = grow(w.floats, (rows+scored)*(a.EV+2))
	w.all, w.block = newPartial(w.floats, rows, a.EV), newPartial(w.floats[rows*(a.EV+2):], scored, a.EV)
	w.top = grow(w.top, scored)
	w.prepareLook(a, rows)
}

// prepareLook allocates memory for the spans of the given number of queries.
func (w *worker) prepareLook(a *Attention, rows int) {
	w.spans = grow(w.spans, rows)
	if w.masked = a.masked(); w.masked {
		w.seen = grow(w.seen, rows*a.keys())
	}
}

// newPartial returns a partial for n queries in memory of n·(ev+2) elements.
func newPartial(x []float32, n, ev int) partial { return partial{x[:n], x[n : 2*n], x[2*n:][:n*ev]} }

// load loads keys k0 to k1 of a head. k0 is a multiple of 64.
func (w *worker) load(a *Attention, b, g, k0, k1 int) {
	if a.Pages != nil {
		return // loadPage loads them
	}
	w.loadKeys(a, b, g, k0, k1)
	w.loadValues(a, b, g, k0, k1)
}

// loadValues is load for the values only.
func (w *worker) loadValues(a *Attention, b, g, k0, k1 int) {
	w.values, w.valuesAt = w.ownValues(a), from(keys(a.V, a.source(b), g), k0)
	useOrCopy(w.values, w.valuesAt, k1-k0, a.EV)
}

// loadKeys is load for the keys only.
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

// ownKeys and ownValues return the worker's panels, to be filled with a matrix.
func (w *worker) ownKeys(a *Attention) *simd.Panels {
	w.own[0].Ahead = &w.ahead
	w.own[0].Rounded = a.Rounded && a.Gaussian == nil
	return &w.own[0]
}

func (w *worker) ownValues(a *Attention) *simd.Panels {
	w.own[1].Ahead = &w.ahead
	w.own[1].Rounded = a.Rounded
	return &w.own[1]
}

// borrow makes w use the keys and values that another worker has loaded.
func (w *worker) borrow(from *worker) {
	w.keys, w.values, w.from = from.keys, from.values, from.from
	w.additive, w.valuesAt = from.additive, from.valuesAt
}

// release returns w to the pool without references to the caller's slices.
func (w *worker) release() {
	w.forget()
	workers.Put(w)
}

// forget drops references to the caller's slices.
func (w *worker) forget() {
	w.keys, w.values, w.additive, w.valuesAt = nil, nil, nil, simd.Mat{}
	clear(w.segments)
	w.weights, w.direct = weights{}, false
	if w.masked {
		clear(w.spans)
	}
	w.page, w.scaleKeys, w.scaleValues = nil, nil, nil
	w.ahead.Reset()
	w.own[0].Release()
	w.own[1].Release()
	w.ownAdditive.Set(nil, 0, 0, 0, nil)
}

// useOrCopy sets p to a matrix of k contiguous rows.
func useOrCopy(p *simd.Panels, m simd.Mat, k, n int) {
	if !use(p, m, k, n) {
		p.Copy(m, k, n)
	}
}

// use sets p to m without a copy, and reports whether it did: not if rows are so far apart that they use many memory
// pages and few sets of the caches.
func use(p *simd.Panels, m simd.Mat, k, n int) bool { return m.Row <= 256 && p.Use(m, k, n) }
