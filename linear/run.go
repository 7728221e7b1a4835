package linear

import (
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/recurrence"
	"github.com/attn-go/attn/tensor"
)

// run computes the outputs and the last states.
func (c *call) run(t *tensor.Tape) Output {
	y := Output{Out: t.Make(c.b, c.n, c.l, c.v)}
	c.clearPadding(y.Out)
	states := c.forward(t, y.Out)
	if c.continued == nil {
		y.State = t.Make(c.b, c.g, c.e, c.v)
		par.For(len(states), 1, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				states[i].Get(y.State.Data()[i*c.e*c.v:][:c.e*c.v], c.e, c.v)
			}
		})
	}
	c.record(t, y)
	y.Weights = c.weights(t, y.Out)
	if c.o.Bidirectional {
		y.Out = c.readLast(t, y.State)
	}
	if c.o.Normalize {
		y.Out = mean(t, y.Out)
	}
	return y
}

// readLast returns what all queries read from the last states.
func (c *call) readLast(t *tensor.Tape, states *tensor.Tensor) *tensor.Tensor {
	q := tensor.Scale(t, c.q, c.o.Scale)
	if c.h < c.g {
		q = tensor.BroadcastTo(t, tensor.Reshape(t, q, c.b, c.h, 1, c.l, c.e), c.b, c.h, c.g/c.h, c.l, c.e)
	}
	out := tensor.MatMul(t, tensor.Reshape(t, q, c.b, c.g, c.n/c.g*c.l, c.e), states)
	return c.withoutPadding(t, tensor.Reshape(t, out, c.b, c.n, c.l, c.v))
}

// withoutPadding returns x with 0 behind the last token of each sequence.
func (c *call) withoutPadding(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	if c.o.Lens == nil {
		return x
	}
	y := t.Make(x.Shape()...)
	copy(y.Data(), x.Data())
	c.clearPadding(y)
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx := t.GradOf(x)
			for b, n := range c.o.Lens {
				for head := range c.n {
					at := (b*c.n + head) * c.l * c.v
					tensor.AddTo(dx[at:at+n*c.v], dy[at:at+n*c.v])
				}
			}
		})
	}
	return y
}

// clearPadding sets the outputs behind the last segment of each sequence to 0.
func (c *call) clearPadding(out *tensor.Tensor) {
	for b, all := range c.segments {
		for n := range c.n {
			clear(out.Data()[((b*c.n+n)*c.l+all[len(all)-1].to)*c.v:][:(c.l-all[len(all)-1].to)*c.v])
		}
	}
}

// A pass is a sequence that passes through the state of a head.
type pass struct {
	recurrence.Sequence
	state  *recurrence.State
	lo, hi int // blocks of columns
	last   bool
}

// forward sets out, and returns the last state [B G] of each head.
func (c *call) forward(t *tensor.Tape, out *tensor.Tensor) []*recurrence.State {
	if s := c.continued; s != nil {
		for b := range s.seqs {
			s.seqs[b].begin()
		}
	}
	var passes []pass
	last := make([]*recurrence.State, c.b*c.g)
	for b, all := range c.segments {
		for i, s := range all {
			for g := range c.g {
				state := c.first(b, g, i)
				if i == len(all)-1 {
					last[b*c.g+g] = state
				}
				for r := c.n/c.g - 1; r >= 0; r-- {
					p := pass{state: state, hi: recurrence.Blocks(c.v), last: r == 0}
					if !p.last { // several heads of queries read the states of one
						p.state = state.Copy()
					}
					p.Sequence = c.sequence(b, g, g*(c.n/c.g)+r, s)
					p.Out = rows(out, b*c.n+g*(c.n/c.g)+r, s)
					p.Check = func() { par.Check(t.Context()) }
					passes = append(passes, p)
				}
			}
		}
	}
	passes = split(passes)
	par.For(len(passes), 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			p := &passes[i]
			recurrence.Run(&p.Sequence, p.state, p.lo, p.hi)
		}
	})
	for i := range passes {
		if p := &passes[i]; p.last && p.lo == 0 {
			recurrence.Commit(&p.Sequence, p.state)
		}
	}
	if s := c.continued; s != nil {
		for b := range s.seqs {
			s.seqs[b].n += c.segments[b][0].to
		}
	}
	return last
}

// split cuts passes into blocks of columns until there are enough for all threads.
func split(passes []pass) []pass {
	if len(passes) == 0 {
		return nil
	}
	parts := min((par.Threads()+len(passes)-1)/len(passes), passes[0].hi)
	if parts < 2 {
		return passes
	}
	var all []pass
	for _, p := range passes {
		for i := range parts {
			part := p
			part.lo, part.hi = i*p.hi/parts, (i+1)*p.hi/parts
			all = append(all, part)
		}
	}
	return all
}

// first returns the state before segment i of sequence b.
func (c *call) first(b, g, i int) *recurrence.State {
	if c.continued != nil {
		return c.continued.seqs[b].heads[g]
	}
	s := recurrence.NewState(c.e, c.v)
	if i == 0 && c.o.State != nil {
		s.Set(c.firstState(b, g), c.e, c.v)
	}
	return s
}

func (c *call) firstState(b, g int) []float32 {
	return c.o.State.Data()[(b*c.g+g)*c.e*c.v:][:c.e*c.v]
}

// sequence returns the tokens of a segment for head g of values and head n of outputs.
func (c *call) sequence(b, g, n int, s segment) recurrence.Sequence {
	q := recurrence.Sequence{N: s.to - s.from, E: c.e, V: c.v, Scale: c.o.Scale}
	q.Query = rows(c.q, b*c.h+n/(c.n/c.h), s)
	q.Key = rows(c.k, b*c.kh+g/(c.g/c.kh), s)
	q.Value = rows(c.value, b*c.g+g, s)
	if c.o.Decay != nil {
		q.Decay, q.DecayEach = rows(c.o.Decay, b*c.g+g, s), c.o.Decay.Rank() == 4
	}
	if c.o.Beta != nil {
		q.Beta = rows(c.o.Beta, b*c.g+g, s)
	}
	return q
}

// rows returns the vectors of a segment of a head of x, [B H L E] or, for numbers, [B H L].
func rows(x *tensor.Tensor, head int, s segment) recurrence.Rows { return rowsOf(x.Data(), x, head, s) }

// rowsOf returns rows of data, which has the layout of x: its values or its gradient, which may be nil.
func rowsOf(data []float32, x *tensor.Tensor, head int, s segment) recurrence.Rows {
	if data == nil {
		return recurrence.Rows{}
	}
	size := 1
	if x.Rank() == 4 {
		size = x.Dim(3)
	}
	return recurrence.Rows{Data: data[(head*x.Dim(2)+s.from)*size:][:(s.to-s.from)*size], Step: size}
}

// record records the gradients of the output and of the last state, which are one step: see attn's call.record.
func (c *call) record(t *tensor.Tape, y Output) {
	if !t.Needs(c.q, c.k, c.value, c.o.Decay, c.o.Beta, c.o.State) {
		return
	}
	all := t.Make(1)
	t.Record(all, func([]float32) { c.back(t, y) })
	for _, x := range []*tensor.Tensor{y.Out, y.State} {
		t.Record(x, func([]float32) { t.GradOf(all) })
	}
}

// back computes the gradients. Heads that share queries or keys are in one task, in their order.
func (c *call) back(t *tensor.Tape, y Output) {
	dq, dk, dv := t.GradOf(c.q), t.GradOf(c.k), t.GradOf(c.value)
	ddecay, dbeta, dstate := t.GradOf(c.o.Decay), t.GradOf(c.o.Beta), t.GradOf(c.o.State)
	dout, dlast := gradOf(y.Out), gradOf(y.State)
	if dout == nil {
		dout = make([]float32, y.Out.Len())
	}
	each := c.g / divisor(c.kh, min(c.h, c.g)) // heads of values that share nothing with others
	type unit struct{ b, i, g int }
	var units []unit
	for b, all := range c.segments {
		for i := range all {
			for g := 0; g < c.g; g += each {
				units = append(units, unit{b, i, g})
			}
		}
	}
	par.For(len(units), 1, func(lo, hi int) {
		for _, u := range units[lo:hi] {
			segments := c.segments[u.b]
			s := segments[u.i]
			for g := u.g; g < u.g+each; g++ {
				at := (u.b*c.g + g) * c.e * c.v
				for r := range c.n / c.g {
					n := g*(c.n/c.g) + r
					q := c.sequence(u.b, g, n, s)
					q.Check = func() { par.Check(t.Context()) }
					grads := recurrence.Grads{
						Out: rowsOf(dout, y.Out, u.b*c.n+n, s), Query: rowsOf(dq, c.q, u.b*c.h+n/(c.n/c.h), s),
						Key: rowsOf(dk, c.k, u.b*c.kh+g/(c.g/c.kh), s), Value: rowsOf(dv, c.value, u.b*c.g+g, s),
					}
					if c.o.Decay != nil {
						grads.Decay = rowsOf(ddecay, c.o.Decay, u.b*c.g+g, s)
					}
					if c.o.Beta != nil {
						grads.Beta = rowsOf(dbeta, c.o.Beta, u.b*c.g+g, s)
					}
					if dlast != nil && u.i == len(segments)-1 && r == 0 {
						grads.Last = dlast[at:][:c.e*c.v]
					}
					var first []float32
					if u.i == 0 && c.o.State != nil {
						first = c.firstState(u.b, g)
						if dstate != nil {
							grads.First = dstate[at:][:c.e*c.v]
						}
					}
					recurrence.Backward(&q, first, &grads)
				}
			}
		}
	})
}

// divisor returns the greatest common divisor.
func divisor(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// gradOf returns the gradient of x in this backward pass, or nil if there is none.
func gradOf(x *tensor.Tensor) []float32 {
	if g := x.Grad(); g != nil {
		return g.Data()
	}
	return nil
}

// mean returns the values divided by the sum of keys that the query reads, the last element of each vector; 0 where
// this is 0.
func mean(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	v := x.Dim(3) - 1
	y := t.Make(x.Dim(0), x.Dim(1), x.Dim(2), v)
	n := y.Len() / max(v, 1)
	par.For(n, par.Chunk(n, v), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			from, to := x.Data()[i*(v+1):][:v+1], y.Data()[i*v:][:v]
			if clear(to); from[v] != 0 {
				for j := range to {
					to[j] = from[j] / from[v]
				}
			}
		}
	})
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx := t.GradOf(x)
			par.For(n, par.Chunk(n, v), func(lo, hi int) {
				for i := lo; i < hi; i++ {
					to, from, y := dx[i*(v+1):][:v+1], dy[i*v:][:v], y.Data()[i*v:][:v]
					sum := x.Data()[i*(v+1)+v]
					if sum == 0 {
						continue
					}
					for j, d := range from {
						to[j] += d / sum
						to[v] -= float32(d / sum * y[j])
					}
				}
			})
		})
	}
	return y
}
