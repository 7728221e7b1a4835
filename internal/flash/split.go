package flash

import (
	"sync"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/stats"
)

// fewRows is the largest number of queries of a head for which the keys are split between
// processors. A step of a decoder has too few queries to split these instead.
const fewRows = 4 * TileRows

// splitKeys gives each task a block of the keys of a head. The last task of a head merges the results in the order in
// which a single task would compute them, so the result has the same bits.
func (f *forward) splitKeys() {
	a := f.Attention
	live := f.blocks()
	blocks := len(live)
	if f.Weights == nil && f.Row != nil { // no task has a whole row of weights for Row
		all := borrowFloats(a.B * a.H * a.Lq * a.keys())
		a.Weights = *all
		defer func() { a.Weights = nil; returnFloats(all) }()
	}
	f.apart = true
	each := f.height * (a.EV + 2)
	parts := borrowFloats(f.units * blocks * each)
	part := func(block, k int) partial {
		return newPartial((*parts)[((block-f.first)*blocks+k)*each:], f.height, a.EV)
	}
	from, to := f.heads()
	teams := teamPool.borrow(to - from)
	par.For((to-from)*blocks, 1, func(lo, hi int) {
		w := f.worker()
		for u := lo; u < hi; u++ {
			z, k := from+u/blocks, u%blocks
			k0 := live[k] * blockKeys
			k1 := min(k0+blockKeys, a.keys())
			w.load(a, z/a.G, z%a.G, k0, k1)
			first, end := f.blocksOf(z)
			for n := first; n < end; n++ {
				t := f.block(n)
				f.attend(w, t, 0, t.n, k0, k1)
				p := part(n, k)
				copy(p.shift, w.all.shift)
				copy(p.sum, w.all.sum)
				copy(p.acc, w.all.acc)
			}
			if !(*teams)[z-from].last(blocks) {
				continue
			}
			for n := first; n < end; n++ {
				f.merge(w, n, live, part)
			}
		}
		w.release()
	})
	teamPool.put(teams)
	returnFloats(parts)
}

// merge merges the results of the given blocks of keys for a query block, and finishes its rows.
func (f *forward) merge(w *worker, block int, live []int, part func(block, k int) partial) {
	c, _ := f.exponent()
	all := w.all.rows(0, f.height, f.EV)
	all.none()
	for k := range live {
		p := part(block, k)
		all.merge(p, c, f.EV)
		if w.weights.data != nil {
			copy(w.shifts[live[k]*bandRows:], p.shift)
		}
	}
	f.finish(w, f.block(block), 0, f.height)
}

// blocks returns the blocks of keys that must be computed. If weights are requested, these are all
// blocks, because the weights of keys without a page must be set to 0.
func (f *forward) blocks() []int {
	a := f.Attention
	n := (a.keys() + blockKeys - 1) / blockKeys
	if a.Pages != nil && f.Weights == nil && f.Row == nil {
		if live := a.Pages.live(n); len(live) > 0 {
			return live
		}
		n = 1 // which results in rows that attend to no key
	}
	return stats.Numbers(n)
}

// memories recycles arrays that more than one task uses. A worker has separate memory.
var memories = sync.Pool{New: func() any { return new([]float32) }}

func borrowFloats(n int) *[]float32 {
	m := memories.Get().(*[]float32)
	*m = grow(*m, n)
	return m
}

func returnFloats(m *[]float32) { memories.Put(m) }
