package flash

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/attn-go/attn/internal/par"
)

// part returns the number of rows of a task. With enough heads, these are all rows.
func (f *forward) part() int {
	threads, rows, each := par.Threads(), f.units*f.height, f.keys()*(f.E+f.EV)
	from, to := f.heads()
	if threads == 1 || to-from >= 4*threads || rows*each < 1<<16 {
		return rows
	}
	// A task takes as long as some more rows: it begins, and moves keys and values into its caches. The loop then takes
	// at most (rows + more·tasks)/threads, and the time of a task. This is least for the following number of rows.
	more := 4 + 1<<14/(each+1)
	part := int(math.Sqrt(float64(rows * more / threads)))
	strip := f.stripRows()
	return min(max(1, (part+strip-1)/strip)*strip, bandRows)
}

// splitRows gives each task part rows of a query block. The tasks of a head pack its keys and values together. Heads
// follow one another, so that the keys of few heads are in memory, and the last rows of a query block come first: with a
// causal mask they take the longest.
func (f *forward) splitRows(part int) {
	a := f.Attention
	each := (f.height + part - 1) / part // tasks of a query block
	from, to := f.heads()
	heads := borrowHeads(to-from, f.units/(to-from)*each)
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
			if h.last() && h.packed != nil {
				h.packed.release()
			}
		}
		w.release()
	})
	returnHeads(heads)
}

// head is the state of a head of keys that several tasks use. They pack its keys and values together, piece by piece:
// each packs pieces that nobody has begun, and then waits for those in progress.
type head struct {
	begin      sync.Once
	packed     *worker // has the keys and values
	keys       int     // pieces of keys, which come after those of values
	values     int
	next, done atomic.Int32 // pieces begun and packed
	failed     atomic.Bool  // a task panicked while it packed
	running    atomic.Int32 // tasks that have not ended
}

const (
	packedKeys   = 128 // keys of a piece, a multiple of the width of any panel
	packedValues = 64  // elements of a value of a piece
)

// share makes w use the keys and values of head z. It returns false if another task panicked while it packed them.
func (h *head) share(w *worker, a *Attention, z int) bool {
	if a.Pages != nil {
		return true
	}
	h.pack(a, z)
	par.Await(func() bool { return int(h.done.Load()) == h.keys+h.values || h.failed.Load() })
	if h.failed.Load() {
		return false
	}
	w.borrow(h.packed)
	return true
}

// pack packs pieces until all are begun.
func (h *head) pack(a *Attention, z int) {
	complete := false
	defer func() {
		if !complete {
			h.failed.Store(true)
		}
	}()
	h.begin.Do(func() { h.reserve(a, z) })
	if h.packed == nil {
		return
	}
	b, g := z/a.G, z%a.G
	for n := int(h.next.Add(1)) - 1; n < h.values+h.keys; n = int(h.next.Add(1)) - 1 {
		if n < h.values {
			h.packed.values.Fill(keys(a.V, a.source(b), g), n*packedValues, min((n+1)*packedValues, a.EV))
		} else if n -= h.values; a.Additive != nil {
			h.packed.loadKeys(a, b, g, 0, a.keys())
		} else {
			h.packed.keys.Fill(keys(a.K, a.source(b), g).T(), n*packedKeys, min((n+1)*packedKeys, a.keys()))
		}
		h.done.Add(1)
	}
	complete = true
}

// reserve allocates memory for the keys and values of head z, and counts the pieces.
func (h *head) reserve(a *Attention, z int) {
	w, v := workers.Get().(*worker), keys(a.V, a.source(z/a.G), z%a.G)
	w.from, w.valuesAt = 0, v
	w.values = w.ownValues(a)
	if !use(w.values, v, a.keys(), a.EV) {
		w.values.Reserve(a.keys(), a.EV)
		h.values = (a.EV + packedValues - 1) / packedValues
	}
	switch {
	case a.Given != nil:
	case a.Additive != nil:
		w.additive, h.keys = &w.ownAdditive, 1
	default:
		w.keys = w.ownKeys(a)
		w.keys.Reserve(a.E, a.keys())
		h.keys = (a.keys() + packedKeys - 1) / packedKeys
	}
	h.packed = w
}

// last ends a task, and reports whether it was the last of the head.
func (h *head) last() bool { return h.running.Add(-1) == 0 }

var headStates = sync.Pool{New: func() any { return new([]head) }}

// borrowHeads returns the states of n heads, with the given number of tasks each.
func borrowHeads(n, tasks int) *[]head {
	heads := headStates.Get().(*[]head)
	*heads = grow(*heads, n)
	for i := range *heads {
		(*heads)[i].running.Store(int32(tasks))
	}
	return heads
}

func returnHeads(heads *[]head) {
	clear(*heads)
	headStates.Put(heads)
}
