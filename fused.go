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

// fused computes attention in the form f, without the scores of all pairs. q and k
// have been mapped.
func fused(t *tensor.Tape, f Form, q heads, kv KV, changes []*step, d dims, o *Options) pooled {
	a := &flash.Attention{
		B: d.B, H: d.H, G: d.G, Lq: d.Lq, Lk: d.allKeys(), E: q.size, EV: d.V,
		Q: q.in(q.x.Data()), Scale: f.scale(q.size),
	}
	k, v := kv.keys, kv.values
	if kv.cache != nil {
		a.Pages = kv.cache.pages()
	} else {
		a.Source = kv.rows
		a.K, a.V = k.in(k.x.Data()), v.in(v.x.Data())
	}
	var gaussian *tensor.Tensor
	switch {
	case f.Additive != nil:
		a.Additive = f.Additive.Data()
	case f.Gaussian != nil:
		gaussian = gaussianFactors(t, f.Gaussian, q.size)
		a.Gaussian = flash.NewGaussian(gaussian.Data())
		a.Gaussian.OnlyBias = len(o.mods()) == 0
	}
	operands := []*tensor.Tensor{q.x, k.x, v.x, f.Additive, gaussian, o.Sinks}
	for _, c := range changes {
		a.Mods = append(a.Mods, c)
		operands = append(operands, c.param)
	}
	if len(o.Mask.rules) > 0 || d.ragged() {
		a.Mask = newMaskRows(o.Mask, d.Sizes, d.extra)
	}
	if o.Sinks != nil {
		a.Sinks = o.Sinks.Data()
	}
	if x, ok := o.only(); ok {
		head := x.batch*d.H + x.head
		a.Only = &head
	}
	if o.Dropout > 0 && t.Training() {
		a.Dropout, a.Key = o.Dropout, t.Stream()
	}

	rows := d.B * d.H * d.Lq
	st := flash.Stats{Shift: t.Floats(rows), Inverse: t.Floats(rows)}
	y := pooled{out: q.like(t, d.V)}
	to := flash.Results{Out: y.out.in(y.out.x.Data()), Row: o.row(d)}
	if o.Weights || o.Observe != nil {
		y.weights = t.Make(d.B, d.H, d.Lq, d.allKeys())
		to.Weights = y.weights.Data()
	}
	if o.LogSumExp {
		y.logSumExp = t.Make(d.B, d.H, d.Lq)
		st.LogSumExp = y.logSumExp.Data()
	}
	flash.Forward(a, to, st)
	if !t.Needs(operands...) {
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
		grads := flash.Grads{
			Q: q.in(t.GradOf(q.x)), K: k.in(t.GradOf(k.x)), V: v.in(t.GradOf(v.x)),
			Additive: t.GradOf(f.Additive), Gaussian: t.GradOf(gaussian), Sinks: t.GradOf(o.Sinks),
		}
		for _, c := range changes {
			grads.Mods = append(grads.Mods, c.grad(t))
		}
		flash.Backward(a, st, up, grads)
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
