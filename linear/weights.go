package linear

import (
	"fmt"
	"math"
	"slices"
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

// sizes returns the sizes that observers and Inspect receive.
func (c *call) sizes() attn.Sizes {
	s := attn.Sizes{B: c.b, H: c.n, G: c.g, Lq: c.l, Lk: c.l, ThreeAxes: c.flat, Layer: c.o.Layer, Signed: !c.o.Normalize}
	if c.o.Lens != nil || c.o.Documents != nil {
		for _, part := range c.segments {
			if part.last {
				s.QueryLens = append(s.QueryLens, part.to)
			}
		}
		s.KeyLens = s.QueryLens
	}
	return s
}

// setDivisors keeps what outputs are divided by, if weights are to be.
func (c *call) setDivisors(out *tensor.Tensor) {
	if !c.o.Normalize || !c.o.Weights && len(c.o.Observers) == 0 && c.o.Inspect == nil {
		return
	}
	c.divisors = make([]float32, c.b*c.n*c.l)
	for i := range c.divisors {
		c.divisors[i] = out.Data()[(i+1)*c.v-1]
	}
}

// weights returns the weights [B N L L], or nil if at most the observers receive them.
func (c *call) weights(t *tensor.Tape) *tensor.Tensor {
	if !c.o.Weights && len(c.o.Observers) == 0 {
		return nil
	}
	s := c.sizes()
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
			c.setRows(rows, q)
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
			all = c.cutHead(all, s, n)
		}
	}
	return all
}

// cutHead cuts the queries of a segment of a head, and the padding behind it.
func (c *call) cutHead(all []queries, s segment, n int) []queries {
	for _, part := range c.remembered(n, s) {
		all = cutQueries(all, queries{s.b, n, part, part.from, part.to})
	}
	if s.last {
		all = cutQueries(all, queries{b: s.b, n: n, from: s.to, to: c.l})
	}
	return all
}

// inspect calls Inspect. out are the outputs of the heads before their gates.
func (c *call) inspect(out *tensor.Tensor) {
	if c.o.Inspect == nil {
		return
	}
	again := &call{ // without values and states, which weights do not depend on
		op: c.op, b: c.b, h: c.h, kh: c.kh, g: c.g, n: c.n, l: c.l, e: c.e, v: c.v, q: c.q, k: c.k, divisors: c.divisors,
		o: Options{Decay: c.o.Decay, Beta: c.o.Beta, Scale: c.o.Scale, Normalize: c.o.Normalize, Bidirectional: c.o.Bidirectional}, segments: slices.Clone(c.segments),
	}
	p := attn.Parts{
		ValueNorms: c.valueNorms, Outputs: func() *tensor.Tensor { return out }, Sizes: c.sizes(),
		Weights: again.headWeights, RetainedBytes: 4 * (c.q.Len() + c.k.Len() + len(c.divisors)),
	}
	for _, x := range []*tensor.Tensor{c.o.Decay, c.o.Beta} {
		if x != nil {
			p.RetainedBytes += 4 * x.Len()
		}
	}
	c.o.Inspect(c.o.Layer, p)
}

// headWeights computes the weights [L L] of a head.
func (c *call) headWeights(b, n int) []float32 {
	if b < 0 || b >= c.b || n < 0 || n >= c.n {
		badValue(c.op, "head", fmt.Sprintf("%d of sequence %d", n, b), fmt.Sprintf("less than %d, of a sequence less than %d", c.n, c.b))
	}
	var tasks []queries
	for _, s := range c.segments {
		if s.b == b {
			tasks = c.cutHead(tasks, s, n)
		}
	}
	all := make([]float32, c.l*c.l)
	par.For(len(tasks), 1, func(lo, hi int) {
		for _, q := range tasks[lo:hi] {
			c.setRows(all[q.from*c.l:q.to*c.l], q)
		}
	})
	return all
}

// valueNorms returns the lengths of the values [B N L].
func (c *call) valueNorms() *tensor.Tensor {
	v := c.v
	if c.o.Normalize {
		v-- // the sum of keys
	}
	norms := tensor.Zeros(c.b, c.n, c.l)
	for i := range norms.Data() {
		head, l := i/c.l, i%c.l
		at := (head/c.n*c.g+head%c.n/(c.n/c.g))*c.l + l
		norms.Data()[i] = float32(math.Sqrt(float64(simd.SumSquares(c.value.Data()[at*c.v:][:v]))))
	}
	return norms
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
	if d == nil || c.l == 0 {
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
func (c *call) setRows(rows []float32, q queries) {
	clear(rows)
	if q.from >= q.tokens.to {
		return
	}
	n := q.to - q.from
	s := c.sequence(&q.tokens, q.n/(c.n/c.g), q.n%(c.n/c.g))
	s.Check = c.stop
	if c.o.Bidirectional {
		c.setProducts(rows, &s, q)
	} else {
		recurrence.Weights(&s, q.from-q.tokens.from, n, recurrence.Rows{Data: rows[q.tokens.from:], Step: c.l})
	}
	if !c.o.Normalize {
		return
	}
	for i := range n {
		row := rows[i*c.l:][:c.l]
		sum := c.divisors[(q.b*c.n+q.n)*c.l+q.from+i]
		if sum == 0 {
			clear(row)
			continue
		}
		for j := range row {
			row[j] /= sum
		}
	}
}

// setProducts sets rows to the weights of some queries that see all tokens: scale·q·k.
func (c *call) setProducts(rows []float32, s *recurrence.Sequence, q queries) {
	n := q.to - q.from
	x := tensor.New(s.Query.Data[(q.from-q.tokens.from)*c.e:][:n*c.e], n, c.e)
	all := tensor.Scale(nil, tensor.MatMulT(nil, x, tensor.New(s.Key.Data, s.N, c.e)), c.o.Scale)
	for i := range n {
		copy(rows[i*c.l+q.tokens.from:], all.Data()[i*s.N:][:s.N])
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
