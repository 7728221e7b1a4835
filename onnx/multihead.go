package onnx

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// KV contains the mapped keys and values of a layer: the heads of its cache.
//
// Shapes: Keys [B G Lk E] as the score compares them, Values [B G Lk V].
type KV struct{ Keys, Values Value }

// MultiHead is attn.MultiHead.Forward.
//
// Shapes: q [B Lq QueryWidth], k [B Lk KeyWidth], v [B Lk ValueWidth], out [B Lq OutWidth]; with SequenceFirst, the
// first two axes are exchanged.
//
// Errors: a layer whose input widths are not known yet; BiasKV or ZeroKV; a norm over all heads together, or one that
// is not from package nn; a custom score that uses functions; a position other than RoPE.
func (g *Graph) MultiHead(m *attn.MultiHead, q, k, v Value, a Attention) Value {
	l, ok := g.multiHead(m)
	if !ok {
		return q
	}
	if l.Layout == attn.SequenceFirst {
		first := map[Value]Value{}
		for _, x := range []Value{q, k, v} {
			if first[x] == "" {
				first[x] = g.transpose(x, 1, 0, 2)
			}
		}
		q, k, v = first[q], first[k], first[v]
	}
	var y Value
	if l.Heads == 0 {
		y = l.without(q)
	} else {
		y = l.query(q, l.keys(k, g.Int(0)), l.values(v), a)
	}
	if l.Layout == attn.SequenceFirst {
		y = g.transpose(y, 1, 0, 2)
	}
	return y
}

// Project is the part of MultiHead that does not depend on the queries. For a layer without heads, both values of the
// result are absent.
//
// Shapes: k [B Lk KeyWidth], v [B Lk ValueWidth].
//
// Errors: as for MultiHead, and a layer with SequenceFirst.
func (g *Graph) Project(m *attn.MultiHead, k, v Value) KV {
	l, ok := g.batchFirst(m)
	if !ok || l.Heads == 0 {
		return KV{}
	}
	return KV{g.splitHeads(l.keys(k, g.Int(0))).v, g.splitHeads(l.values(v)).v}
}

// Query is the remaining part of MultiHead, given the result of Project.
//
// Shapes: q [B Lq QueryWidth], out [B Lq OutWidth].
//
// Errors: as for Project.
func (g *Graph) Query(m *attn.MultiHead, q Value, kv KV, a Attention) Value {
	l, ok := g.batchFirst(m)
	switch {
	case !ok:
		return q
	case l.Heads == 0:
		return l.without(q)
	}
	return l.query(q, heads{kv.Keys, l.KVHeads, l.form.size, true}, heads{kv.Values, l.KVHeads, l.ValueSize, true}, a)
}

// Extend is one step of a decoder. It appends the keys and values of x to kv, attends from x to all of them, and
// returns the output and the extended kv.
//
// Shapes: x [B L Width], out [B L OutWidth]; kv with Lk keys is extended to Lk + L.
//
// Errors: as for Project.
func (g *Graph) Extend(m *attn.MultiHead, x Value, kv KV, a Attention) (Value, KV) {
	l, ok := g.batchFirst(m)
	switch {
	case !ok:
		return x, kv
	case l.Heads == 0:
		return l.without(x), kv
	}
	k, v := g.splitHeads(l.keys(x, g.Length(kv.Keys, 2))), g.splitHeads(l.values(x))
	kv = KV{g.concat(2, kv.Keys, k.v), g.concat(2, kv.Values, v.v)}
	return g.Query(m, x, kv, a), kv
}

// layer is a MultiHead being added to a graph.
type layer struct {
	attn.MultiHeadConfig
	g    *Graph
	m    *attn.MultiHead
	form form
}

func (g *Graph) multiHead(m *attn.MultiHead) (*layer, bool) {
	l := &layer{m.Config(), g, m, form{}}
	if m.Q == nil {
		g.Fail("the layer does not know the widths of its inputs yet: call Build or Forward first")
		return l, false
	}
	if l.BiasKV || l.ZeroKV {
		g.Fail("a layer with BiasKV or ZeroKV, want a layer without them")
		return l, false
	}
	if l.NormProjections && (l.QueryNorm != nil || l.KeyNorm != nil || l.ValueNorm != nil) {
		g.Fail("a layer with a norm over all heads together, want a norm of each head")
		return l, false
	}
	if l.Heads > 0 {
		l.form = g.form(l.Score, l.HeadSize)
	}
	return l, true
}

func (g *Graph) batchFirst(m *attn.MultiHead) (*layer, bool) {
	l, ok := g.multiHead(m)
	if ok && l.Layout != attn.BatchFirst {
		g.Fail("a layer whose inputs are [L B D], want [B L D] for a layer that caches keys and values")
		return l, false
	}
	return l, ok
}

// keys maps keys at positions from, from+1, ….
func (l *layer) keys(k, from Value) heads {
	h := l.linear("k", l.m.K, k, l.KVHeads, l.HeadSize, l.KeyNorm)
	if l.Position != nil {
		h = l.g.placed(l.Position, h, l.g.Count(from, l.g.Add(from, l.g.Length(k, 1))))
	}
	return l.form.keys.apply(l.g, h)
}

func (l *layer) values(v Value) heads {
	return l.linear("v", l.m.V, v, l.KVHeads, l.ValueSize, l.ValueNorm)
}

// query attends from q, whose positions are the last of the keys' positions.
func (l *layer) query(q Value, k, v heads, a Attention) Value {
	g := l.g
	h := l.linear("q", l.m.Q, q, l.Heads, l.HeadSize, l.QueryNorm)
	if l.Position != nil {
		axis := 1
		if k.split {
			axis = 2
		}
		lk := g.Length(k.v, axis)
		h = g.placed(l.Position, h, g.Count(g.sub(lk, g.Length(q, 1)), lk))
	}
	h = l.form.queries.apply(g, h)
	y := g.join(g.attend(l.form, h, k, v, l.m.Sinks, a))
	if l.m.Gate != nil {
		y = l.gated(y, g.Activation(l.OutputGate.Activation, g.In("gate").Linear(l.m.Gate, q)))
	}
	return g.In("out").Linear(l.m.Out, y)
}

// gated multiplies heads, side by side, by the gates of an OutputGate.
func (l *layer) gated(y, gates Value) Value {
	g := l.g
	if l.OutputGate.Size == l.ValueSize {
		return g.mul(y, gates)
	}
	y = g.mul(g.reshape(y, 0, 0, l.Heads, l.ValueSize), g.unsqueeze(gates, 3))
	return g.reshape(y, 0, 0, l.Heads*l.ValueSize)
}

// linear maps vectors to heads, and normalises each head unless norm is nil.
func (l *layer) linear(name string, m *nn.Linear, x Value, count, size int, norm nn.Norm) heads {
	h := heads{v: l.g.In(name).Linear(m, x), count: count, size: size}
	if norm != nil {
		h = l.g.splitHeads(h)
		h.v = l.g.In(name+"_norm").Layer(norm, h.v)
	}
	return h
}

// without implements a layer that has no heads: the result is the bias of its last map, for each query.
func (l *layer) without(q Value) Value {
	bias := l.m.Out.Bias
	if bias == nil {
		bias = tensor.Zeros(l.OutWidth)
	}
	shape := l.g.concat(0, l.g.dims(q, 0, 2), l.g.Ints(l.OutWidth))
	return l.g.Node("Expand", []Value{l.g.In("out").Weight("bias", bias), shape})
}

// EncoderLayer is attn.EncoderLayer.Forward.
//
// Shapes: x and out [B L Width].
//
// Errors: as for MultiHead and Layer.
func (g *Graph) EncoderLayer(l *attn.EncoderLayer, x Value, a Attention) Value {
	self := func(h Value) Value { return g.In("self").MultiHead(l.Self, h, h, h, a) }
	ff := func(h Value) Value { return g.In("ff").Layer(l.FF, h) }
	norm1 := func(h Value) Value { return g.In("norm1").Layer(l.Norm1, h) }
	norm2 := func(h Value) Value { return g.In("norm2").Layer(l.Norm2, h) }
	if l.Config().NormFirst {
		x = g.Add(x, self(norm1(x)))
		return g.Add(x, ff(norm2(x)))
	}
	x = norm1(g.Add(x, self(x)))
	return norm2(g.Add(x, ff(x)))
}
