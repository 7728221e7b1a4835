package linear

import (
	"sync"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/recurrence"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// queries are some queries of a head and the tokens whose weights they have.
type queries struct {
	b, n     int
	tokens   segment
	from, to int // behind tokens for padding, which has no weights
}

// weights returns the weights [B N L L], or nil if only the observers receive them. out is not yet divided.
func (c *call) weights(t *tensor.Tape, out *tensor.Tensor) *tensor.Tensor {
	if !c.o.Weights && len(c.o.Observers) == 0 {
		return nil
	}
	s := attn.Sizes{B: c.b, H: c.n, G: c.g, Lq: c.l, Lk: c.l, ThreeAxes: c.flat, Layer: c.o.Layer, Signed: !c.o.Normalize}
	if c.o.Lens != nil || c.o.Documents != nil {
		for _, part := range c.segments {
			if part.last {
				s.QueryLens = append(s.QueryLens, part.to)
			}
		}
		s.KeyLens = s.QueryLens
	}
	for _, o := range c.o.Observers {
		o.Begin(s)
	}
	var all *tensor.Tensor
	if c.o.Weights {
		all = t.Make(c.b, c.n, c.l, c.l)
	}
	var free sync.Pool // blocks of rows
	tasks := c.queries()
	par.For(len(tasks), 1, func(lo, hi int) {
		for _, q := range tasks[lo:hi] {
			size := (q.to - q.from) * c.l
			var rows []float32
			if all != nil {
				rows = all.Data()[((q.b*c.n+q.n)*c.l+q.from)*c.l:][:size]
			} else if x, ok := free.Get().(*[]float32); ok {
				rows = (*x)[:size]
			} else {
				rows = make([]float32, size, recurrence.WeightRows*c.l)
			}
			c.setRows(rows, out, q)
			c.observe(rows, q)
			if all == nil {
				free.Put(&rows)
			}
		}
	})
	for _, o := range c.o.Observers {
		if e, ok := o.(interface{ End() }); ok {
			e.End()
		}
	}
	return all
}

// queries cuts the queries of all heads into blocks.
func (c *call) queries() (all []queries) {
	for _, s := range c.segments {
		for n := range c.n {
			for _, part := range c.remembered(n, s) {
				all = cutQueries(all, queries{s.b, n, part, part.from, part.to})
			}
			if s.last {
				all = cutQueries(all, queries{b: s.b, n: n, from: s.to, to: c.l})
			}
		}
	}
	return all
}

func cutQueries(all []queries, q queries) []queries {
	for to := q.to; q.from < to; q.from = q.to {
		q.to = min(q.from+recurrence.WeightRows, to)
		all = append(all, q)
	}
	return all
}

// remembered cuts a segment where a token clears the state. Tokens before it have no weight, whatever they are.
func (c *call) remembered(n int, s segment) (all []segment) {
	d := c.o.Decay
	if d == nil {
		return []segment{s}
	}
	size := d.Len() / (c.b * c.g * c.l)
	g := n / (c.n / c.g)
	x := make([]float32, size)
	for t := s.from + 1; t < s.to; t++ {
		simd.Exp(x, d.Data()[((s.b*c.g+g)*c.l+t)*size:][:size])
		if simd.Max(x) == 0 {
			before := s
			before.to = t
			all = append(all, before)
			s.from = t
		}
	}
	return append(all, s)
}

// setRows sets rows to the weights of some queries.
func (c *call) setRows(rows []float32, out *tensor.Tensor, q queries) {
	clear(rows)
	if q.from >= q.tokens.to {
		return
	}
	n := q.to - q.from
	s := c.sequence(&q.tokens, q.n/(c.n/c.g), q.n%(c.n/c.g))
	s.Check = c.stop
	recurrence.Weights(&s, q.from-q.tokens.from, n, recurrence.Rows{Data: rows[q.tokens.from:], Step: c.l})
	if !c.o.Normalize {
		return
	}
	for i := range n {
		row := rows[i*c.l:][:c.l]
		sum := out.Data()[((q.b*c.n+q.n)*c.l+q.from+i+1)*c.v-1]
		if sum == 0 {
			clear(row)
			continue
		}
		for j := range row {
			row[j] /= sum
		}
	}
}

// observe calls the observers with rows of weights.
func (c *call) observe(rows []float32, q queries) {
	for i := q.from; i < q.to; i++ {
		at := attn.Row{Batch: q.b, Head: q.n, Query: i, Position: i}
		for _, o := range c.o.Observers {
			o.Row(at, rows[(i-q.from)*c.l:][:c.l])
		}
	}
}
