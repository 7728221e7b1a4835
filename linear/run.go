package linear

import (
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/recurrence"
	"github.com/attn-go/attn/tensor"
)

// run computes the outputs and the last states.
func (c *call) run(t *tensor.Tape) Output {
	y := Output{Out: t.Make(c.b, c.n, c.l, c.v)}
	if c.continued == nil {
		y.State = t.Make(c.b, c.g, c.e, c.v)
	}
	if ctx := t.Context(); ctx != nil {
		c.stop = func() { par.Check(ctx) }
	}
	needed := t.Needs(c.q, c.k, c.value, c.o.Decay, c.o.Beta, c.o.State)
	if needed && c.o.Beta != nil {
		c.reads = t.Make(c.b, c.g, c.l, c.v)
	}
	if c.o.Bidirectional && c.o.Documents != nil {
		c.ends = t.Make(len(c.segments), c.g, c.e, c.v)
	}
	c.clearPadding(y.Out)
	c.forward(y)
	if needed {
		c.record(t, y)
	}
	if c.o.Bidirectional {
		y.Out = c.readLast(t, y.State)
	}
	if c.running != nil && y.State != nil {
		y.State = tensor.Concat(t, 3, y.State, tensor.New(c.running.last, c.b, c.g, c.e, 1))
	}
	c.setDivisors(y.Out)
	y.Weights = c.weights(t)
	if c.o.Normalize {
		y.Out = mean(t, y.Out)
	}
	return y
}

// readLast returns what all queries read from the last states, or from those after their documents.
func (c *call) readLast(t *tensor.Tape, states *tensor.Tensor) *tensor.Tensor {
	q := tensor.Scale(t, c.q, c.o.Scale)
	if c.h < c.g {
		q = shareHeads(t, q, c.g)
	}
	read := func(q, states *tensor.Tensor) *tensor.Tensor {
		b, l := q.Dim(0), q.Dim(2)
		out := tensor.MatMul(t, tensor.Reshape(t, q, b, c.g, c.n/c.g*l, c.e), states)
		return tensor.Reshape(t, out, b, c.n, l, c.v)
	}
	if c.ends == nil {
		return c.o.withoutPadding(t, read(q, states))
	}
	var all, parts []*tensor.Tensor // sequences, and documents of the current one
	for i, s := range c.segments {
		of := tensor.Slice(t, tensor.Slice(t, q, 0, s.b, s.b+1), 2, s.from, s.to)
		if parts = append(parts, read(of, tensor.Slice(t, c.ends, 0, i, i+1))); s.last {
			parts = append(parts, tensor.Zeros(1, c.n, c.l-s.to, c.v)) // padding
			all, parts = append(all, tensor.Concat(t, 2, parts...)), nil
		}
	}
	return tensor.Concat(t, 0, all...)
}

// length returns the number of tokens of sequence b that are not padding, of l.
func (o *Options) length(b, l int) int {
	n := l
	if b < len(o.Lens) {
		n = o.Lens[b]
	} else if d := o.Documents; len(d) > 0 {
		if ends := d[min(b, len(d)-1)]; len(ends) > 0 {
			n = ends[len(ends)-1]
		}
	}
	return max(0, min(n, l)) // others are an error of the call
}

// withoutPadding returns x [B … L E] with 0 behind the last token of each sequence.
func (o *Options) withoutPadding(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	if o.Lens == nil && o.Documents == nil {
		return x
	}
	l, size := x.Dim(x.Rank()-2), x.Dim(x.Rank()-1)
	heads := x.Len() / max(x.Dim(0)*l*size, 1)
	y := t.Make(x.Shape()...)
	each := func(do func(lo, hi int)) { // the elements of the tokens of a head
		for i := range x.Dim(0) * heads {
			do(i*l*size, (i*l+o.length(i/heads, l))*size)
		}
	}
	clear(y.Data())
	each(func(lo, hi int) { copy(y.Data()[lo:hi], x.Data()[lo:hi]) })
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx := t.GradOf(x)
			each(func(lo, hi int) { tensor.AddTo(dx[lo:hi], dy[lo:hi]) })
		})
	}
	return y
}

// clearPadding sets the outputs behind the last segment of each sequence to 0.
func (c *call) clearPadding(out *tensor.Tensor) {
	for _, s := range c.segments {
		for n := s.b * c.n; n < (s.b+1)*c.n && s.last; n++ {
			clear(out.Data()[(n*c.l+s.to)*c.v : (n+1)*c.l*c.v])
		}
	}
}

// forward passes the sequences through the states of all heads, block of columns by block if the heads are too few for
// all threads.
func (c *call) forward(y Output) {
	if s := c.continued; s != nil {
		for b := range s.seqs {
			s.seqs[b].begin(c.eachDecays(), c.e)
			s.seqs[b].stopped = true
		}
	}
	blocks, heads := recurrence.Blocks(c.v), len(c.segments)*c.g
	parts := max(1, min((par.Threads()+heads-1)/max(heads, 1), blocks))
	par.For(heads*parts, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			part, head := i%parts, i/parts
			c.head(y, head/c.g, head%c.g, part*blocks/parts, (part+1)*blocks/parts)
		}
	})
	if s := c.continued; s != nil {
		for i := range c.segments {
			s.seqs[i].n += c.segments[i].to
			s.seqs[i].stopped = false
			for g, h := range s.seqs[i].heads[:c.g*min(parts-1, 1)] { // otherwise done by the tasks
				q := c.sequence(&c.segments[i], g, 0)
				recurrence.Commit(&q, h)
			}
			if c.running != nil {
				s.seqs[i].setMaxima(c, i)
			}
		}
	}
}

func (c *call) eachDecays() bool { return c.o.Decay != nil && c.o.Decay.Rank() == 4 }

// head passes segment i through the blocks of columns from lo to hi of a head of values.
func (c *call) head(y Output, i, g, lo, hi int) {
	s := &c.segments[i]
	var own *recurrence.State
	if c.continued != nil {
		own = c.continued.seqs[s.b].heads[g]
	} else {
		own = recurrence.Borrow(c.e, c.v)
		defer own.Release()
		own.Set(c.firstState(s, g), c.e, c.v)
	}
	for r := c.n/c.g - 1; r >= 0; r-- {
		state := own
		if r > 0 { // several heads of queries read the states of one
			state = recurrence.Borrow(c.e, c.v)
			state.Follow(own, lo, hi)
		}
		q := c.sequence(s, g, r)
		q.Out = rows(y.Out, s.b*c.n+g*(c.n/c.g)+r, s)
		if q.Check = c.stop; r == 0 && c.reads != nil {
			q.Read = rows(c.reads, s.b*c.g+g, s)
		}
		recurrence.Run(&q, state, lo, hi)
		if r > 0 {
			state.Release()
		}
		if r == 0 && (c.continued == nil || hi-lo == recurrence.Blocks(c.v)) {
			recurrence.Commit(&q, own)
		}
		if r == 0 && c.continued == nil && s.last {
			own.GetBlocks(y.State.Data()[(s.b*c.g+g)*c.e*c.v:][:c.e*c.v], c.e, c.v, lo, hi)
		}
		if r == 0 && c.ends != nil {
			own.GetBlocks(c.ends.Data()[(i*c.g+g)*c.e*c.v:][:c.e*c.v], c.e, c.v, lo, hi)
		}
	}
}

// firstState returns the state before a segment, nil for zeros.
func (c *call) firstState(s *segment, g int) []float32 {
	if !s.first || c.o.State == nil {
		return nil
	}
	return c.o.State.Data()[(s.b*c.g+g)*c.e*c.v:][:c.e*c.v]
}

// sequence returns the tokens of a segment for head g of values and the r-th head of outputs that reads its state.
func (c *call) sequence(s *segment, g, r int) recurrence.Sequence {
	n := g*(c.n/c.g) + r
	q := recurrence.Sequence{N: s.to - s.from, E: c.e, V: c.v, Scale: c.o.Scale}
	q.Query = rows(c.q, s.b*c.h+n/(c.n/c.h), s)
	q.Key = rows(c.k, s.b*c.kh+g/(c.g/c.kh), s)
	if c.value != nil {
		q.Value = rows(c.value, s.b*c.g+g, s)
	}
	if c.o.Decay != nil {
		q.Decay, q.DecayEach = rows(c.o.Decay, s.b*c.g+g, s), c.eachDecays()
	}
	if c.o.Beta != nil {
		q.Beta = rows(c.o.Beta, s.b*c.g+g, s)
	}
	return q
}

// rows returns the vectors of a segment of a head of x, [B H L E] or, for numbers, [B H L].
func rows(x *tensor.Tensor, head int, s *segment) recurrence.Rows {
	return rowsOf(x.Data(), x, head, s)
}

// rowsOf returns rows of data, which has the layout of x: its values or its gradient, which may be nil.
func rowsOf(data []float32, x *tensor.Tensor, head int, s *segment) recurrence.Rows {
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
	all := t.Make(1)
	t.Record(all, func([]float32) { c.back(t, y) })
	for _, x := range []*tensor.Tensor{y.Out, y.State, c.ends} {
		if x == nil {
			continue
		}
		t.Record(x, func([]float32) { t.GradOf(all) })
	}
}

// back computes the gradients. Heads that share queries or keys are in one task, in their order.
func (c *call) back(t *tensor.Tape, y Output) {
	dq, freshQ := t.FreshGradOf(c.q)
	dk, freshK := t.FreshGradOf(c.k)
	dv, freshV := t.FreshGradOf(c.value)
	ddecay, dbeta, dstate := t.GradOf(c.o.Decay), t.GradOf(c.o.Beta), t.GradOf(c.o.State)
	dout, dlast := gradOf(y.Out), gradOf(y.State)
	var dends []float32
	if c.ends != nil {
		dends = gradOf(c.ends)
	}
	if dout == nil {
		dout = make([]float32, y.Out.Len())
	}
	each := c.g / divisor(c.kh, min(c.h, c.g)) // heads of values that share nothing with others
	units := c.g / each
	par.For(len(c.segments)*units, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			s := &c.segments[i/units]
			// Cleared just before it is added to, a gradient is in the cache.
			c.clearIf(freshQ, dq, c.q, s, i%units, units)
			c.clearIf(freshK, dk, c.k, s, i%units, units)
			c.clearIf(freshV, dv, c.value, s, i%units, units)
			for g := i % units * each; g < (i%units+1)*each; g++ {
				at := (s.b*c.g + g) * c.e * c.v
				for r := range c.n / c.g {
					n := g*(c.n/c.g) + r
					q := c.sequence(s, g, r)
					q.Check = c.stop
					grads := recurrence.Grads{
						Out: rowsOf(dout, y.Out, s.b*c.n+n, s), Query: rowsOf(dq, c.q, s.b*c.h+n/(c.n/c.h), s),
						Key: rowsOf(dk, c.k, s.b*c.kh+g/(c.g/c.kh), s), Value: rowsOf(dv, c.value, s.b*c.g+g, s),
					}
					if c.o.Decay != nil {
						grads.Decay = rowsOf(ddecay, c.o.Decay, s.b*c.g+g, s)
					}
					if c.o.Beta != nil {
						grads.Beta = rowsOf(dbeta, c.o.Beta, s.b*c.g+g, s)
						q.Read = rows(c.reads, s.b*c.g+g, s)
					}
					if dlast != nil && s.last && r == 0 {
						grads.Last = dlast[at:][:c.e*c.v]
					}
					if dends != nil && r == 0 {
						read := dends[(i/units*c.g+g)*c.e*c.v:][:c.e*c.v]
						if grads.Last != nil {
							tensor.AddTo(read, grads.Last)
						}
						grads.Last = read
					}
					if dstate != nil && s.first {
						grads.First = dstate[at:][:c.e*c.v]
					}
					recurrence.Backward(&q, c.firstState(s, g), &grads)
				}
			}
		}
	})
}

// clearIf clears a fresh gradient of x in a segment, with the padding behind the last one, for the heads of a unit.
func (c *call) clearIf(fresh bool, dx []float32, x *tensor.Tensor, s *segment, unit, units int) {
	if !fresh {
		return
	}
	heads, to := x.Dim(1), s.to
	if s.last {
		to = c.l
	}
	for n := s.b*heads + unit*heads/units; n < s.b*heads+(unit+1)*heads/units; n++ {
		clear(dx[(n*c.l+s.from)*x.Dim(3) : (n*c.l+to)*x.Dim(3)])
	}
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
