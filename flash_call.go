package attn

import (
	"cmp"
	"fmt"

	"github.com/attn-go/attn/internal/flash"
	"github.com/attn-go/attn/tensor"
)

// call is one call of attention. Attend, MultiHead and Cache all use it. It has the options and
// tensors of the call, and the inputs and outputs of the tiles, forward and backward.
type call struct {
	flash.Attention
	op   string
	o    Options
	q    heads
	kv   KV
	form Form

	given, additive, gaussian *tensor.Tensor   // set by the form, or nil
	params                    []*tensor.Tensor // parameters of Changes
	out                       heads            // in the layout of the queries
	gates                     heads            // of OutputGate, or none
	weights, logSumExp        *tensor.Tensor   // nil if not requested
}

// newCall resolves the sizes of a call. The heads may have any layout. A cache adds its score,
// mask and lengths to the options.
func newCall(op string, q heads, kv KV, o *Options) *call {
	c := &call{op: op, o: *o, q: q, kv: kv}
	c.B, c.H, c.Lq, c.Lk, c.Extra = q.batches(), q.count, q.length(), kv.Len(), kv.extra
	c.QueryLens, c.KeyLens, c.Layer = o.QueryLens, o.KeyLens, o.Layer
	if kv.cache != nil {
		c.G, c.EV = kv.cache.shape.G, kv.cache.shape.EV
		kv.cache.resolve(c)
	} else {
		c.G, c.EV = kv.keys.count, kv.values.size
	}
	return c
}

// attend checks and computes the call. It returns the heads of Output.Out after their gates. last
// is the weight of the output projection, or nil.
func (c *call) attend(t *tensor.Tape, last *tensor.Tensor) (heads, Output) {
	c.check()
	c.edit(t)
	if t.Recording() {
		c.kv = c.kv.dense(t)
	}
	o := &c.o
	weights := o.Weights
	o.Weights = weights || o.Edits.Weights != nil
	var again *replay
	if o.Inspect != nil {
		again = c.replay()
	}
	c.describe(t)
	o.begin(c.Sizes)
	c.makeResults(t)
	flash.Forward(&c.Attention)
	o.end()
	c.record(t)
	y := Output{Weights: c.weights, LogSumExp: c.logSumExp}
	if c.Extra > 0 && y.Weights != nil {
		y.Weights = tensor.Slice(t, y.Weights, 3, c.Extra, c.Extra+c.Lk)
	}
	out := c.out
	if o.Edits.Weights != nil {
		if out = c.reweighted(t, out, y.Weights); !weights {
			y.Weights = nil
		}
	}
	out = outputGated(t, out, c.gates)
	if e := o.Edits.Outputs; e != nil {
		out = e.edited(t, c.op, "outputs", out)
	}
	if o.Inspect != nil {
		p := c.parts(last, out)
		p.Weights, p.RetainedBytes = again.weights, again.bytes()
		o.Inspect(o.Layer, p)
	}
	return gated(t, out, o.Gates), y
}

// describe completes the description that the tiles read: the parameters of the changes, and the
// queries and keys as the score maps them.
func (c *call) describe(t *tensor.Tape) {
	o := &c.o
	c.Rounded = cmp.Or(o.Format, t.Format()) == tensor.BFloat16
	c.Context, c.Mask = t.Context(), o.Mask.rules
	for i, change := range o.changes(c.Sizes) {
		x := Inputs{Sizes: c.Sizes, Queries: c.q.split, Keys: c.kv.unmappedKeys(c.op)}
		y, param := bound(t, c.op, change, x)
		y.Extra = i == 0 && o.SoftCap != 0 // the soft-cap changes the scores of extra keys too
		c.Changes, c.params = append(c.Changes, y), append(c.params, param)
	}
	c.form = o.score().Form()
	c.q = c.q.mapped(t, c.form.Queries)
	if cache := c.kv.cache; cache == nil || cache.keyMap == nil {
		c.kv = c.kv.mapped(t, c.form)
	}
	if c.form.Given != nil {
		c.kv = c.kv.dense(t)
	}
	c.checkMapped()
	if o.Sinks != nil {
		c.Sinks = o.Sinks.Data()
	}
	c.compare(t)
	if o.Dropout > 0 && t.Training() {
		c.Dropout, c.Key = o.Dropout, t.Stream()
	}
}

// compare describes the queries, keys and values, and the score that compares them.
func (c *call) compare(t *tensor.Tape) {
	f, k, v := c.form, c.kv.keys, c.kv.values
	if f.Given != nil {
		c.given = f.given(t, c)
		c.Given = c.given.Data()
	} else {
		c.E, c.Q, c.Scale = c.q.size, c.q.Heads, f.scale(c.q.size)
	}
	switch {
	case f.Additive != nil:
		c.additive = f.Additive
		c.Additive = f.Additive.Data()
	case f.Gaussian != nil:
		c.gaussian = f.gaussianFactors(t, c.q.size)
		c.Gaussian = flash.NewGaussian(c.gaussian.Data())
	}
	if c.kv.cache != nil {
		c.Pages = c.kv.cache.pages()
		return
	}
	c.Source = c.kv.rows
	if c.V = v.Heads; c.given == nil {
		c.K = k.Heads
	}
}

// checkMapped panics unless the mapped queries and keys fit together. A score with its own keys
// may not match the keys of the call.
func (c *call) checkMapped() {
	f, q, k := c.form, c.q, c.kv.keys
	f.check(c.op)
	if cache := c.kv.cache; cache != nil {
		wantHeadSize(c.op, "query", q.size, cache.shape.E)
	} else {
		if f.Given == nil {
			wantHeadSize(c.op, "key", k.size, q.size)
		}
		if lk := c.Extra + c.Lk; c.kv.batches() != c.B || k.count != c.G || k.length() != lk {
			badShape(c.op, "key of the score", "", k.x.Shape(), "[B=%d G=%d Lk=%d %d]", c.B, c.G, lk, k.size)
		}
	}
	if q.batches() != c.B || q.count != c.H || q.length() != c.Lq {
		badShape(c.op, "query of the score", "", q.x.Shape(), "[B=%d H=%d Lq=%d %d]", c.B, c.H, c.Lq, q.size)
	}
	if f.Additive != nil {
		const arg = "w of the score"
		panicAs(c.op, arg, tensor.CheckShape(arg, f.Additive, fmt.Sprintf("[%d]", q.size), q.size))
	}
}

// needs reports whether an operand may receive a gradient.
func (c *call) needs(t *tensor.Tape) bool {
	needs := t.Needs(c.kv.values.x, c.additive, c.gaussian, c.o.Sinks, c.given)
	if c.given == nil {
		needs = t.Needs(c.q.x, c.kv.keys.x) || needs
	}
	return t.Needs(c.params...) || needs
}

// grads returns the gradients of the operands.
func (c *call) grads(t *tensor.Tape) *flash.Grads {
	g := &flash.Grads{
		Additive: t.GradOf(c.additive), Gaussian: t.GradOf(c.gaussian), Sinks: t.GradOf(c.o.Sinks), Given: t.GradOf(c.given),
	}
	if v := c.kv.values; v.x != nil {
		g.V = v.in(t.GradOf(v.x))
	}
	if k := c.kv.keys; c.given == nil {
		g.Q, g.K = c.q.in(t.GradOf(c.q.x)), k.in(t.GradOf(k.x))
	}
	for _, param := range c.params {
		g.Changes = append(g.Changes, t.GradOf(param))
	}
	return g
}

// makeResults allocates the results and the memory that the backward pass reads.
func (c *call) makeResults(t *tensor.Tape) {
	o, rows := &c.o, c.B*c.H*c.Lq
	c.out = c.q.like(t, c.EV)
	c.Results = flash.Results{
		Out: c.out.Heads, Row: o.rowObserver(), Shift: t.Floats(rows), Inverse: t.Floats(rows),
	}
	if o.Weights {
		c.weights = t.Make(c.B, c.H, c.Lq, c.Extra+c.Lk)
		c.Weights = c.weights.Data()
	}
	if o.LogSumExp {
		c.logSumExp = t.Make(c.B, c.H, c.Lq)
		c.LogSumExp = c.logSumExp.Data()
	}
}

// record records the backward step of the call, which is one operation with up to three results.
// The step must run after the gradients of all results are complete. The tape runs steps in
// reverse order, so record first records the step, on the empty tensor all. Then it records each
// result with a step that only marks all as needed.
func (c *call) record(t *tensor.Tape) {
	if !c.needs(t) {
		return
	}
	all := t.Make(1)
	t.Record(all, func([]float32) {
		g := c.grads(t)
		dout := gradOf(c.out.x)
		if dout == nil { // only other results are used
			dout = t.Floats(c.out.x.Len())
			clear(dout)
		}
		g.DOut = c.out.in(dout)
		g.DWeights, g.DLogSumExp = gradOf(c.weights), gradOf(c.logSumExp)
		flash.Backward(&c.Attention, g)
	})
	for _, x := range []*tensor.Tensor{c.out.x, c.weights, c.logSumExp} {
		if x != nil {
			t.Record(x, func([]float32) { t.GradOf(all) })
		}
	}
}

// gradOf returns the gradient of x in this backward pass, or nil if there is none.
func gradOf(x *tensor.Tensor) []float32 {
	if x == nil {
		return nil
	}
	if g := x.Grad(); g != nil {
		return g.Data()
	}
	return nil
}

// begin tells the observers that a call begins.
func (o *Options) begin(s Sizes) {
	for _, r := range o.Observers {
		r.Begin(s)
	}
}

// end tells the observers that a call has ended, if they want to know.
func (o *Options) end() {
	for _, r := range o.Observers {
		if e, ok := r.(interface{ End() }); ok {
			e.End()
		}
	}
}

// rowObserver returns a function that calls all observers with a row of weights, or nil if there
// are none.
func (o *Options) rowObserver() func(Row, []float32) {
	if len(o.Observers) == 0 {
		return nil
	}
	return func(at Row, w []float32) {
		for _, r := range o.Observers {
			r.Row(at, w)
		}
	}
}
