package flash

import (
	"sync/atomic"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// splitKeys gives each task one chunk of the keys of a head. With a causal mask, the first chunks take the longest. The
// first chunks of all heads are followed by the second ones, so the chunks of a head end almost in their order.
func (b *backward) splitKeys() {
	heads := b.a.B * b.a.G
	b.orders, b.delays = orderPool.borrow(heads), delayPool.borrow(heads*b.nChunks)
	par.InOrder(heads*b.nChunks, 1, func(lo, hi int) {
		w := b.worker()
		for u := lo; u < hi; u++ {
			b.chunk(w, u%heads, u/heads)
		}
		w.release()
	})
	orderPool.put(b.orders)
	delayPool.put(b.delays)
}

// chunk computes chunk c of the keys of head z.
func (b *backward) chunk(w *backWorker, z, c int) {
	a, rows := b.a, b.a.H/b.a.G*b.a.Lq
	each := max(1, 1<<12/(a.EV+1)) // rows of a piece of the means
	x, first := &(*b.orders)[z], z*rows
	if !x.divide((rows+each-1)/each, func(n int) { b.means(first+n*each, first+min((n+1)*each, rows)) }) {
		return
	}
	list := (*b.delays)[z*b.nChunks:][:b.nChunks]
	d := &list[c]
	d.waits = x.turn.Load() != int32(c)
	w.chunk(b, z/a.G, z%a.G, c, d)
	d.ended.Store(true)
	x.add(b, first, list)
}

// order is the state of a head whose chunks of keys add to the gradients of its queries in their order.
type order struct {
	team
	turn atomic.Int32 // the first chunk whose gradients are not yet added
	busy atomic.Bool  // a task adds the gradients of chunks that had to wait
}

// delay is a chunk of keys. If it begins before the chunks in front of it have ended, it stores the gradients of the
// queries until its turn.
type delay struct {
	waits  bool
	grads  *[]float32 // [hi-lo E], of rows lo to hi of the head; nil if there are none
	lo, hi int
	ended  atomic.Bool
}

var (
	orderPool pool[order]
	delayPool pool[delay]
)

// store stores the gradients of n rows from row number row of the head on. Rows are stored in their order.
func (d *delay) store(a *Attention, row, n int, grads []float32) {
	if d.grads == nil {
		d.grads = borrowFloats((a.H/a.G*a.Lq - row) * a.E)
		d.lo, d.hi = row, row
	}
	to := (*d.grads)[(d.hi-d.lo)*a.E:]
	skipped := (row - d.hi) * a.E
	clear(to[:skipped])
	copy(to[skipped:], grads[:n*a.E])
	d.hi = row + n
}

// add adds the gradients of all chunks whose turn it is. If another task does this, it also adds those of a chunk that
// has just ended.
func (x *order) add(b *backward, first int, chunks []delay) {
	next := func() *delay {
		if c := int(x.turn.Load()); c < len(chunks) && chunks[c].ended.Load() {
			return &chunks[c]
		}
		return nil
	}
	for next() != nil && x.busy.CompareAndSwap(false, true) {
		for d := next(); d != nil; d = next() {
			if d.grads != nil {
				b.addDelayed(d, first)
				returnFloats(d.grads)
			}
			x.turn.Add(1)
		}
		x.busy.Store(false)
	}
}

// addDelayed adds the gradients that d has stored to those of the queries. The head starts at row number first.
func (b *backward) addDelayed(d *delay, first int) {
	size := b.a.E
	for row := d.lo; row < d.hi; {
		s, h, i := b.a.split(first + row)
		n := min(d.hi-row, b.a.Lq-i)
		simd.AddRows(b.g.Q.at(s, h, i), b.g.Q.Row, (*d.grads)[(row-d.lo)*size:], size, n, size)
		row += n
	}
}
