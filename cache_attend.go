package attn

import (
	"fmt"

	"github.com/attn-go/attn/internal/flash"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
)

// Attend is the function Attend with the keys and values of the cache. The queries are at the
// last positions of their sequences: the last query is aligned with the last key. If the queries
// of some sequences are padded, Options.QueryLens has the number of real queries.
//
// Shapes: q [B H Lq E], with H a multiple of G; out [B H Lq V]; weights [B H Lq Lk],
// where Lk is the length of the longest sequence; log-sum-exp [B H Lq].
//
// It panics like the function Attend, and also if the tape records. It panics with a
// *tensor.ShapeError if a rolling cache has discarded keys that a query would attend to.
func (c *Cache) Attend(t *tensor.Tape, q *tensor.Tensor, o Options) Output {
	const op = "attn: Attend"
	tensor.Want(op, "query", q)
	wantNoRecord(op, t)
	s := &c.shape
	if q.Rank() != 4 || q.Dim(0) != len(c.seqs) || q.Dim(1)%s.G != 0 {
		badShape(op, "query", "", q.Shape(), "[B=%d H Lq E] with H a multiple of G=%d", len(c.seqs), s.G)
	}
	if o.QueryPositions.given() || o.KeyPositions.given() {
		refusePositions(op)
	}
	out, y := newCall(op, headFirst(q), KV{cache: c}, &o).attend(t, nil)
	y.Out = out.x
	return y
}

// wantNoRecord panics if the tape records: gradients do not pass through a cache.
func wantNoRecord(op string, t *tensor.Tape) {
	if t.Recording() {
		badValue(op, "tape", "one that records", "nil or one of mode Infer: no gradient passes through a cache")
	}
}

// resolve completes the sizes and options of a call whose queries attend to the cache.
func (c *Cache) resolve(d *call) {
	op, o := d.op, &d.o
	if c.config.Score != nil {
		if o.Score != nil {
			badValue(op, "score", fmt.Sprintf("a %T", o.Score), "nil: the cache uses the score of its CacheConfig")
		}
		o.Score = c.config.Score
	}
	if o.KeyLens != nil {
		badValue(op, "key lengths", "given", "none: the cache counts the keys of each sequence")
	}
	panicAs(op, "query lengths", checkCounts("number of queries", o.QueryLens, "Lq", d.B, d.Lq))
	for b, s := range c.seqs {
		if s.n != d.Lk {
			d.KeyLens = c.Lens()
		}
		if first := s.n - count(o.QueryLens, b, d.Lq); s.from > 0 && first < s.from {
			sequence := fmt.Sprintf("sequence %d", b)
			badShape(op, sequence, "first query at position", []int{first}, "at least %d: the rolling cache has discarded keys of earlier windows", s.from)
		}
	}
	if c.config.Window > 0 {
		o.Mask = And(o.Mask, NewMask(band{window: c.config.Window, sinks: c.config.Sinks}))
	}
}

// pages returns the pages in the form that the kernels read.
func (c *Cache) pages() *flash.Pages {
	p := &flash.Pages{PageShape: &c.shape, Of: make([][]*flash.Page, len(c.seqs))}
	for b, s := range c.seqs {
		p.Of[b] = s.pages[:(s.n+flash.BlockKeys-1)/flash.BlockKeys]
	}
	return p
}

// tensors returns the stored keys and values as tensors [B G Lk E] and [B G Lk V], with zeros for
// padding and discarded pages. It is for scores that need all keys in one tensor.
func (c *Cache) tensors(t *tensor.Tape) (k, v *tensor.Tensor) {
	s, lk := &c.shape, c.longest()
	k, v = t.Make(len(c.seqs), s.G, lk, s.E), t.Make(len(c.seqs), s.G, lk, s.EV)
	n := len(c.seqs) * s.G * lk
	par.For(n, par.Chunk(n, s.E+s.EV), func(lo, hi int) {
		for n := lo; n < hi; n++ {
			z, j := n/lk, n%lk
			seq := &c.seqs[z/s.G]
			key, value := k.Data()[n*s.E:][:s.E], v.Data()[n*s.EV:][:s.EV]
			if j >= seq.n || seq.pages[j/flash.BlockKeys] == nil {
				clear(key)
				clear(value)
				continue
			}
			seq.pages[j/flash.BlockKeys].Get(z%s.G, j%flash.BlockKeys, key, value)
		}
	})
	return k, v
}

// band is the mask of a rolling cache: a query attends to the keys up to window before it, to all
// keys after those, and to the first keys, the sinks.
type band struct{ window, sinks int }

func (band) Check(Sizes) error { return nil }

func (m band) Keys(s Sizes, at Row) (lo, hi int) {
	if m.sinks > 0 {
		return 0, s.Lk
	}
	return at.Position - m.window, s.Lk
}

func (m band) Holes() bool { return m.sinks > 0 }

func (m band) Hide(_ Sizes, at Row, lo, hi int, attended []bool) {
	for j := max(lo, m.sinks); j < min(hi, at.Position-m.window); j++ {
		attended[j] = false
	}
}
