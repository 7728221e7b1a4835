package flash

import (
	"math"
	"sync"

	"github.com/attn-go/attn/internal/par"
)

// part returns the number of rows of a task, or 0 if a task has all rows of its heads: if there are many heads, or each
// thread has as many and they are short.
func (f *forward) part() int {
	threads, each := par.Threads(), f.keys()*(f.E+f.EV) // work of a row
	from, to := f.heads()
	heads, rows := to-from, f.units*f.height
	if threads == 1 || heads >= 4*threads || heads%threads == 0 && rows/heads*each < 1<<22 || rows*each < 1<<16 {
		return 0
	}
	// A task costs as much as some more rows: it begins, and moves keys and values into its caches. The loop takes at
	// most (rows + more·tasks)/threads and the time of a task. This is least for the following number of rows.
	more := 4 + 1<<16/(each+1)
	part := int(math.Sqrt(float64(rows*more/threads)))/TileRows*TileRows + TileRows
	if part >= rows/heads {
		return 0
	}
	return min(part, bandRows)
}

// splitRows gives each task part rows of a query block. The tasks of a head pack its keys and values together. Heads
// follow one another, so that the keys of few heads are in memory. The last rows of a query block come first, because
// they take the longest with a causal mask.
func (f *forward) splitRows(part int) {
	a := f.Attention
	each := (f.height + part - 1) / part // tasks of a query block
	from, to := f.heads()
	heads := packings.borrow(to - from)
	par.For(f.units*each, 1, func(lo, hi int) {
		w := f.worker()
		for u := lo; u < hi; u++ {
			t := f.block(f.first + u/each)
			z := (f.first + u/each) / f.count
			h := &(*heads)[z-from]
			if !h.share(w, a, z) {
				break
			}
			end := t.n - u%each*part
			f.attend(w, t, max(0, end-part), end, 0, a.keys())
			if h.last(f.units/(to-from)*each) && h.packed != nil {
				h.packed.release()
			}
		}
		w.release()
	})
	packings.put(heads)
}

// packing is the state of a head whose tasks share its keys and values.
type packing struct {
	team
	begin        sync.Once
	packed       *worker // has the keys and values
	keys, values int     // pieces to pack
}

const (
	packedKeys   = 128 // keys of a piece, a multiple of the width of any panel
	packedValues = 64  // elements of a value of a piece
)

// share makes w use the keys and values of head z. It returns false if another task panicked while it packed them.
func (p *packing) share(w *worker, a *Attention, z int) bool {
	if a.Pages != nil {
		return true
	}
	p.begin.Do(func() { p.reserve(a, z) })
	b, g := z/a.G, z%a.G
	if p.packed == nil || !p.divide(p.values+p.keys, func(n int) {
		if n < p.values {
			j := n * packedValues
			p.packed.values.Set(j, min(packedValues, a.EV-j), from(keys(a.V, a.source(b), g).T(), j).T())
		} else if n -= p.values; a.Additive != nil {
			p.packed.loadKeys(a, b, g, 0, a.keys())
		} else {
			j := n * packedKeys
			p.packed.keys.Set(j, min(packedKeys, a.keys()-j), from(keys(a.K, a.source(b), g), j).T())
		}
	}) {
		return false
	}
	w.borrow(p.packed)
	return true
}

// reserve allocates memory for the keys and values of head z, and counts the pieces.
func (p *packing) reserve(a *Attention, z int) {
	w, v := workers.Get().(*worker), keys(a.V, a.source(z/a.G), z%a.G)
	w.from, w.valuesAt = 0, v
	w.values = w.ownValues(a)
	if !use(w.values, v, a.keys(), a.EV) {
		w.values.Reserve(a.keys(), a.EV)
		p.values = (a.EV + packedValues - 1) / packedValues
	}
	switch {
	case a.Given != nil:
	case a.Additive != nil:
		p.keys = 1
	default:
		w.keys = w.ownKeys(a)
		w.keys.Reserve(a.E, a.keys())
		p.keys = (a.keys() + packedKeys - 1) / packedKeys
	}
	p.packed = w
}

var packings pool[packing]
