package flash

import (
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Short heads, such as those of sentences, take less time than the calls for their strips. Several of them are therefore
// computed together: each has its own products, and then their rows form a single strip. A row has the same bits as
// alone, because nothing in a strip depends on other rows.

// together returns the number of heads that are computed together, or 0 if heads are computed one by one.
func (f *forward) together() int {
	a := f.Attention
	_, plain := a.exponent()
	if !plain || !a.plainDots() || a.Weights != nil || a.Row != nil || a.Only != nil || f.count > 1 {
		return 0
	}
	n := a.highStrip() / f.height
	if a.masked() && (n < 2 || a.keys() > TileKeys) { // keys that no query attends to are skipped
		return 0
	}
	return n
}

// nextHead returns the head of keys after head g of sequence b.
func (a *Attention) nextHead(b, g int) (int, int) {
	if g+1 < a.G {
		return b, g + 1
	}
	return b + 1, 0
}

// computeHeads computes n heads of keys from head z on; the next ones may be prefetched, if they are before end. It
// reports false if a result is not finite. The heads must then be computed one by one.
func (f *forward) computeHeads(w *worker, z, n, end int) bool {
	par.Check(f.Context)
	a, height, first, keys := f.Attention, f.height, z*f.height, f.keys()
	ahead, masked, group := f.prefetches(), a.masked(), a.H/a.G
	for i, b, g := 0, z/a.G, z%a.G; i < n; i++ {
		if ahead {
			f.prefetch(w, f.block(z+i), z+n+i, end)
		}
		w.loadKeys(a, b, g, 0, keys)
		scores := w.scores[i*height*w.stride:]
		simd.MultiplyPanels(simd.RowMajor(scores, w.stride), a.rows(a.Q, b, g*group), height, w.keys, 0, a.E, 0, keys, false)
		if masked {
			spans := w.spans[:height]
			a.spans(first+i*height, 0, keys, spans, w.seen)
			for r := range spans {
				spans[r].hide(scores[r*w.stride:][:keys], 0)
			}
		}
		b, g = a.nextHead(b, g)
	}
	x := w.all.rows(0, n*height, a.EV)
	w.powers(a, x, first, 0, keys, a.Dropout > 0)
	for i, b, g := 0, z/a.G, z%a.G; i < n; i++ {
		w.loadValues(a, b, g, 0, keys)
		acc, p := simd.RowMajor(x.acc[i*height*a.EV:], a.EV), simd.RowMajor(w.scores[i*height*w.stride:], w.stride)
		simd.MultiplyPanels(acc, p, height, w.values, 0, keys, 0, a.EV, false)
		b, g = a.nextHead(b, g)
	}
	if !simd.Finite(x.sum) || !simd.Finite(x.acc) {
		return false
	}
	f.statistics(first, x.shift, x.sum)
	for i, b, g := 0, z/a.G, z%a.G; i < n; i++ {
		out := a.rows(a.Out, b, g*group)
		simd.ScaleRows(out.Data, out.Row, x.acc[i*height*a.EV:], a.EV, a.EV, x.sum[i*height:][:height])
		b, g = a.nextHead(b, g)
	}
	return true
}
