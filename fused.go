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
	q, k, v         heads
	given, gaussian *tensor.Tensor
	additive, sinks *tensor.Tensor
	changes         []*step
}

// newCall describes a call with scores in the form f.
func newCall(t *tensor.Tape, f Form, q heads, kv KV, changes []*step, d dims, o *Options) *call {
	c := &call{
		Attention: flash.Attention{B: d.B, H: d.H, G: d.G, Lq: d.Lq, Lk: d.allKeys(), EV: d.V},
		q:         q, k: kv.keys, v: kv.values, additive: f.Additive, sinks: o.Sinks, changes: changes,
	}
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
		c.gaussian = featureFactors(t, "w of the Gaussian score", f.Gaussian, q.size)
		c.Gaussian = flash.NewGaussian(c.gaussian.Data())
		c.Gaussian.OnlyBias = len(o.mods()) == 0
	}
	for _, s := range changes {
		c.Mods = append(c.Mods, s)
	}
	if len(o.Mask.rules) > 0 || d.ragged() {
		c.Mask = newMaskRows(o.Mask, d.Sizes, d.extra)
	}
	if o.Sinks != nil {
		c.Sinks = o.Sinks.Data()
	}
	return c
}

// operands are the tensors to which gradients may flow.
func (c *call) operands() []*tensor.Tensor {
	all := []*tensor.Tensor{c.v.x, c.additive, c.gaussian, c.sinks, c.given}
	if c.given == nil {
		all = append(all, c.q.x, c.k.x)
	}
	for _, s := range c.changes {
		all = append(all, s.param)
	}
	return all
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
	for _, s := range c.changes {
		g.Mods = append(g.Mods, s.grad(t))
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
	to := flash.Results{Out: y.out.in(y.out.x.Data()), Row: o.row(d)}
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

// row returns who is told of rows of weights, nil if nobody is.
func (o *Options) row(d dims) func(flash.Place, []float32) {
	if len(o.Rows) == 0 {
		return nil
	}
	return func(p flash.Place, w []float32) {
		for _, r := range o.Rows {
			r.Row(d.row(p), w[d.extra:])
		}
	}
}
