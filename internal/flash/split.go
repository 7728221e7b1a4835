package flash

import (
	"sync"

	"github.com/attn-go/attn/internal/par"
)

// splitRows is the largest number of queries of a head for which the keys are split between
// processors. A step of a decoder has too few queries to split these instead.
const splitRows = 4 * vectorRows

// splitKeys computes the blocks of keys in separate tasks. It merges their results in the order in
// which a single task would compute them, so the result has the same bits.
func (f *forward) splitKeys(rows int) {
	a := f.Attention
	live := f.blocks()
	blocks := len(live)
	if f.Weights == nil && f.Row != nil { // no task has a whole row of weights for Row
		all := borrowFloats(a.B * a.H * a.Lq * a.keys())
		a.Weights = *all
		defer func() { a.Weights = nil; returnFloats(all) }()
	}
	f.apart = true
	heads, each := a.B*a.G*f.count, rows*(a.EV+2)
	parts := borrowFloats(heads * blocks * each)
	part := func(head, block int) partial { return newPartial((*parts)[(head*blocks+block)*each:], rows, a.EV) }
	par.For(a.B*a.G*blocks, 1, func(lo, hi int) {
		w := f.worker()
		for u := lo; u < hi; u++ {
			z, block := u/blocks, u%blocks
			k0 := live[block] * blockKeys
			k1 := min(k0+blockKeys, a.keys())
			w.load(a, z/a.G, z%a.G, k0, k1)
			for i := range f.count {
				t := a.queryBlock(z/a.G, z%a.G, i, f.count)
				f.attend(w, t, 0, t.n, k0, k1)
				p := part(z*f.count+i, block)
				copy(p.shift, w.all.shift)
				copy(p.sum, w.all.sum)
				copy(p.acc, w.all.acc)
			}
		}
		w.release()
	})
	c, _ := a.exponent()
	par.For(heads, max(1, 1<<12/(each*blocks)), func(lo, hi int) {
		w := f.worker()
		for z := lo; z < hi; z++ {
			all := w.all.rows(0, rows, a.EV)
			all.none()
			for k := range blocks {
				p := part(z, k)
				all.merge(p, c, a.EV)
				if w.weights.data != nil {
					copy(w.shifts[live[k]*bandRows:], p.shift)
				}
			}
			f.finish(w, a.queryBlock(z/f.count/a.G, z/f.count%a.G, z%f.count, f.count), 0, rows)
		}
		w.release()
	})
	returnFloats(parts)
}

// blocks returns the blocks of keys that must be computed. If weights are requested, these are all
// blocks, because the weights of keys without a page must be set to 0.
func (f *forward) blocks() []int {
	a := f.Attention
	n := (a.keys() + blockKeys - 1) / blockKeys
	if a.Pages != nil && f.Weights == nil && f.Row == nil {
		return a.Pages.live(n)
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// memories recycles arrays that more than one task uses. A worker has separate memory.
var memories = sync.Pool{New: func() any { return new([]float32) }}

func borrowFloats(n int) *[]float32 {
	m := memories.Get().(*[]float32)
	*m = grow(*m, n)
	return m
}

func returnFloats(m *[]float32) { memories.Put(m) }
