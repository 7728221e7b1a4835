package attn

import (
	"github.com/attn-go/attn/internal/flash"
	"github.com/attn-go/attn/tensor"
)

// pooled is the result of attention: the output of each head, laid out as the queries are,
// and the weights [B H Lq Lk] and log-sum-exp [B H Lq] if they were asked for.
type pooled struct {
	out                heads
	weights, logSumExp *tensor.Tensor
}

// call is a call of attention whose queries and keys have been mapped: what is computed, and
// the tensors in whose memory that is.
type call struct {
	flash.Attention
	q, k, v                          heads
	given, additive, gaussian, sinks *tensor.Tensor
	params                           []*tensor.Tensor // of the changes
}

// newCall describes a call, of which compare adds what is compared. x are the queries and keys
// before they are mapped.
func newCall(t *tensor.Tape, op string, x Inputs, d dims, o *Options) *call {
	c := &call{Attention: flash.Attention{Sizes: d.Sizes, Extra: d.extra, EV: d.V, Mask: o.Mask.rules}, sinks: o.Sinks}
	for i, change := range o.changes(d.Sizes) {
		y, param := bound(t, op, change, x)
		y.Extra = i == 0 && o.SoftCap != 0 // the soft-cap, which goes by no key
		c.Changes, c.params = append(c.Changes, y), append(c.params, param)
	}
	if o.Sinks != nil {
		c.Sinks = o.Sinks.Data()
	}
	return c
}

// compare adds to the description mapped queries and keys, which are compared in the form f, and
// values.
func (c *call) compare(t *tensor.Tape, f Form, q heads, kv KV, d dims) {
	c.q, c.k, c.v, c.additive = q, kv.keys, kv.values, f.Additive
	if f.Given != nil {
		c.given = f.given(t, q.split(t), kv.keys.split(t), d)
		c.Given = c.given.Data()
	} else {
		c.E, c.Q, c.Scale = q.size, q.in(q.x.Data()), f.scale(q.size)
	}
	switch {
	case kv.cache != nil:
		c.Pages = kv.cache.pages()
	default:
		c.Source = kv.rows
		if c.given == nil {
			c.K = c.k.in(c.k.x.Data())
		}
		if c.v.x != nil {
			c.V = c.v.in(c.v.x.Data())
		}
	}
	switch {
	case f.Additive != nil:
		c.Additive = f.Additive.Data()
	case f.Gaussian != nil:
		c.gaussian = f.gaussianFactors(t, q.size)
		c.Gaussian = flash.NewGaussian(c.gaussian.Data())
	}
}

// operands are the tensors to which gradients may flow.
func (c *call) operands() []*tensor.Tensor {
	all := []*tensor.Tensor{c.v.x, c.additive, c.gaussian, c.sinks, c.given}
	if c.given == nil {
		all = append(all, c.q.x, c.k.x)
	}
	return append(all, c.params...)
}

// grads are the gradients of the operands.
func (c *call) grads(t *tensor.Tape) flash.Grads {
	g := flash.Grads{Additive: t.GradOf(c.additive), Gaussian: t.GradOf(c.gaussian), Sinks: t.GradOf(c.sinks), Given: t.GradOf(c.given)}
	if c.v.x != nil {
		g.V = c.v.in(t.GradOf(c.v.x))
	}
	if c.given == nil {
		g.Q, g.K = c.q.in(t.GradOf(c.q.x)), c.k.in(t.GradOf(c.k.x))
	}
	for _, param := range c.params {
		g.Changes = append(g.Changes, t.GradOf(param))
	}
	return g
}

// run computes attention.
func (c *call) run(t *tensor.Tape, d dims, o *Options) pooled {
	if x, ok := o.only(); ok {
		head := x.batch*d.H + x.head
		c.Only = &head
	}
	if o.Dropout > 0 && t.Training() {
		c.Dropout, c.Key = o.Dropout, t.Stream()
	}
	rows := d.B * d.H * d.Lq
	st := flash.Stats{Shift: t.Floats(rows), Inverse: t.Floats(rows)}
	y := pooled{out: c.q.like(t, d.V)}
	to := flash.Results{Out: y.out.in(y.out.x.Data()), Row: o.row()}
	if o.Weights || o.Observe != nil {
		y.weights = t.Make(d.B, d.H, d.Lq, d.allKeys())
		to.Weights = y.weights.Data()
	}
	if o.LogSumExp {
		y.logSumExp = t.Make(d.B, d.H, d.Lq)
		st.LogSumExp = y.logSumExp.Data()
	}
	flash.Forward(&c.Attention, to, st)
	if !t.Needs(c.operands()...) {
		return y
	}

	// This is one operation with up to three results. Its backward step must run when the
	// gradients of all of them are complete. The tape runs steps in reverse order, so the
	// step is recorded first, on the empty tensor all; the results are recorded after it
	// with steps that only mark all as needed.
	all := t.Make(1)
	t.Record(all, func([]float32) {
		up := flash.Upstream{Out: to.Out, DOut: y.out.in(gradOrZeros(t, y.out.x))}
		if g := gradOf(y.weights); g != nil {
			up.Weights, up.DWeights = to.Weights, g
		}
		up.DLogSumExp = gradOf(y.logSumExp)
		flash.Backward(&c.Attention, st, up, c.grads(t))
	})
	for _, x := range []*tensor.Tensor{y.out.x, y.weights, y.logSumExp} {
		if x != nil {
			t.Record(x, func([]float32) { t.GradOf(all) })
		}
	}
	return y
}

// gradOf returns the gradient that has reached x in this backward pass, nil if none has.
func gradOf(x *tensor.Tensor) []float32 {
	if x == nil {
		return nil
	}
	if g := x.Grad(); g != nil {
		return g.Data()
	}
	return nil
}

// gradOrZeros is gradOf with zeros in place of nil.
func gradOrZeros(t *tensor.Tape, x *tensor.Tensor) []float32 {
	if g := gradOf(x); g != nil {
		return g
	}
	zeros := t.Floats(x.Len())
	clear(zeros)
	return zeros
}

// row returns the function that is called with rows of weights, nil if there is none.
func (o *Options) row() func(Row, []float32) {
	if len(o.Observers) == 0 {
		return nil
	}
	return func(at Row, w []float32) {
		for _, r := range o.Observers {
			r.Row(at, w)
		}
	}
}
