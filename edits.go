package attn

import (
	"fmt"

	"github.com/attn-go/attn/tensor"
)

// Edit returns what takes the place of a value x inside a call: x itself, or a tensor of the same shape. It must not
// change x. Gradients flow through operations of package tensor on t; x receives one if it returns x.
type Edit func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor

// Edits are interventions in a call of attention: they show what an output depends on, where weights only show what was
// mixed. Nil leaves a value, and costs nothing. An edit that returns the value it was given does not change a bit.
//
//	o.Edits.Outputs = func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
//		return tensor.Mul(t, x, tensor.BroadcastTo(t, keep, x.Shape()...)) // silences heads
//	}
//
// Package lens has interventions as values, and measures their effects.
type Edits struct {
	// Queries [B H Lq E], Keys [B G Lk E] and Values [B G Lk V] are what the maps of a MultiHead return, before its norms
	// and positions, or the arguments of a function. Extend edits the keys and values of its tokens, before the cache
	// stores them. Query edits those of Project, and refuses to edit those of a cache.
	Queries, Keys, Values Edit
	// Weights [B H Lq Lk] are the weights before dropout, which does not act on them then. Values are mixed with what the
	// edit returns, whose rows need not sum to 1.
	Weights Edit
	// Outputs [B H Lq V] are the outputs of the heads, as Parts.Outputs returns them.
	Outputs Edit
}

// edited returns the heads in place of x, in its layout.
func (e Edit) edited(t *tensor.Tape, op, what string, x heads) heads {
	if e == nil {
		return x
	}
	y := headFirst(e.apply(t, op, what, x.split(t)))
	if x.x.Rank() == 3 {
		y = headLast(y.joined(t, x.layout), x.layout, 0, x.size, x.count)
	}
	return y
}

// apply calls e, and panics with a *tensor.ShapeError if the result has another shape.
func (e Edit) apply(t *tensor.Tape, op, what string, x *tensor.Tensor) *tensor.Tensor {
	y, name := e(t, x), "edit of "+what
	tensor.Want(op, name, y)
	panicAs(op, name, tensor.CheckShape(name, y, fmt.Sprint(x.Shape()), x.Shape()...))
	return y
}

// edit replaces the operands of a call.
func (c *call) edit(t *tensor.Tape) {
	e := &c.o.Edits
	c.q = e.Queries.edited(t, c.op, "queries", c.q)
	if e.Keys == nil && e.Values == nil {
		return
	}
	if c.kv.cache != nil || c.kv.extra > 0 {
		badValue(c.op, "edits", "of keys or values that are in a cache or behind those of BiasKV", "edits of queries, weights and outputs")
	}
	c.kv = c.kv.dense(t)
	c.kv.keys = e.Keys.edited(t, c.op, "keys", c.kv.keys)
	c.kv.values = e.Values.edited(t, c.op, "values", c.kv.values)
}

// reweighted returns the outputs out of the heads for edited weights [B H Lq Lk].
func (c *call) reweighted(t *tensor.Tape, out heads, w *tensor.Tensor) heads {
	edited := c.o.Edits.Weights.apply(t, c.op, "weights", w)
	if edited == w {
		return out
	}
	kv := c.kv.dense(t)
	v := kv.values.split(t)
	if kv.extra > 0 {
		v = tensor.Slice(t, v, 2, kv.extra, v.Dim(2))
	}
	// The difference is 0 where the edit changes nothing, so that such outputs keep their bits.
	d := tensor.Reshape(t, tensor.Sub(t, edited, w), c.B, c.G, c.H/c.G*c.Lq, c.Lk)
	more := tensor.Reshape(t, tensor.Mix(t, d, v), c.B, c.H, c.Lq, c.EV)
	y := headFirst(tensor.Add(t, out.split(t), more))
	if out.x.Rank() == 3 {
		y = headLast(y.joined(t, out.layout), out.layout, 0, out.size, out.count)
	}
	return y
}
