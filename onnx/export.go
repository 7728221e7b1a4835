package onnx

import (
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// Options says which model a layer becomes. The zero value is a layer that hides nothing,
// with DefaultOpset.
type Options struct {
	// Opset is the version of the operators: 23, which has the operator Attention, or 17,
	// for runtimes that lack it. 0 means DefaultOpset.
	Opset int
	// Causal lets a query attend to no later key; the last query attends to all, as with
	// mask.Causal.
	Causal bool
	// Lengths adds the input "lengths" [batch] of type Int64: how many keys of each
	// sequence are no padding, as with mask.Lengths.
	Lengths bool
	// Mask adds the input "mask" of type Bool, true where a query may attend to a key. It
	// has four axes and broadcasts to [B H Lq Lk].
	Mask bool
	// Bias adds the input "bias" of type Float32, which is added to the scores. It has
	// four axes and broadcasts to [B H Lq Lk].
	Bias bool
	// SoftCap bounds the scores, as in attn.Options. 0 means none.
	SoftCap float32
}

// FromMultiHead returns a model with the inputs "query", "key" and "value", and those that
// o asks for, and the output "out".
//
// Shapes, in the layer's layout:
//
//	query  [batch queries QueryWidth]
//	key    [batch keys KeyWidth]
//	value  [batch keys ValueWidth]
//	out    [batch queries OutWidth]
//
// Errors: a layer that still waits for the widths of its inputs; a score, position or
// normalisation that is not of packages attn and nn.
//
// Aliasing: the model reads the layer's parameters when it is written.
func FromMultiHead(m *attn.MultiHead, o Options) (*Model, error) {
	return from("attention", o, func(g *Graph) {
		c := m.Config()
		axes := func(length string, width int) []Axis {
			if c.Layout == attn.SequenceFirst {
				return []Axis{Named(length), Named("batch"), Sized(width)}
			}
			return []Axis{Named("batch"), Named(length), Sized(width)}
		}
		q := g.Input("query", Float32, axes("queries", c.QueryWidth)...)
		k := g.Input("key", Float32, axes("keys", c.KeyWidth)...)
		v := g.Input("value", Float32, axes("keys", c.ValueWidth)...)
		length := 1
		if c.Layout == attn.SequenceFirst {
			length = 0
		}
		a := o.attention(g, g.Length(q, length), g.Length(k, length))
		g.Output("out", g.MultiHead(m, q, k, v, a), Float32, axes("queries", c.OutWidth)...)
	})
}

// FromEncoderLayer returns a model with the input "x" and those that o asks for, and the
// output "out", both [batch length Width]. Otherwise it is FromMultiHead.
func FromEncoderLayer(l *attn.EncoderLayer, o Options) (*Model, error) {
	return from("encoder", o, func(g *Graph) {
		axes := []Axis{Named("batch"), Named("length"), Sized(l.Config().Width)}
		x := g.Input("x", Float32, axes...)
		n := g.Length(x, 1)
		g.Output("out", g.EncoderLayer(l, x, o.attention(g, n, n)), Float32, axes...)
	})
}

// from makes a model. A layer whose parameters do not belong together is an error.
func from(name string, o Options, build func(*Graph)) (*Model, error) {
	m, err := New(name, o.Opset)
	if err != nil {
		return nil, err
	}
	g := m.Graph()
	if c := float64(o.SoftCap); c < 0 || math.IsNaN(c) || math.IsInf(c, 0) {
		g.Fail("soft-cap %v, want a positive finite number, or 0 for none", o.SoftCap)
	}
	if err := tensor.Catch(func() { build(g) }); err != nil {
		return nil, err
	}
	return m, m.Err()
}

// attention adds the inputs of a mask and a bias for lq queries and lk keys.
func (o Options) attention(g *Graph, lq, lk Value) Attention {
	a := Attention{SoftCap: o.SoftCap}
	pairs := func(name string) []Axis { // each may be 1, and is named for itself
		return []Axis{Named(name + "_batch"), Named(name + "_heads"), Named(name + "_queries"), Named(name + "_keys")}
	}
	if o.Lengths {
		a = a.And(g, g.ValidLens(g.Input("lengths", Int64, Named("batch")), lk))
	}
	if o.Causal {
		a = a.And(g, g.Causal(lq, lk))
	}
	if o.Mask {
		a = a.And(g, g.Input("mask", Bool, pairs("mask")...))
	}
	if o.Bias {
		a.Bias = g.Input("bias", Float32, pairs("bias")...)
	}
	return a
}
