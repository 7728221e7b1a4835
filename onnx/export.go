package onnx

import (
	"math"

	"github.com/attn-go/attn"
)

// Options describes the model for a layer. The zero value gives a layer without masks, with DefaultOpset.
type Options struct {
	// Opset is the version of the operators: 23, which has the operator Attention, 17 for runtimes without it, or 27,
	// which also has LinearAttention. 0 means DefaultOpset.
	Opset int
	// Causal hides later keys from each query; the last query attends to all keys, as with mask.Causal.
	Causal bool
	// Lengths adds the input "lengths" [batch] of type Int64: the number of keys of each sequence without padding, as
	// with mask.Lengths.
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

// FromMultiHead returns a model with the inputs "query", "key" and "value", the inputs that o adds, and the output
// "out".
//
// Shapes, in the layer's layout:
//
//	query  [batch queries QueryWidth]
//	key    [batch keys KeyWidth]
//	value  [batch keys ValueWidth]
//	out    [batch queries OutWidth]
//
// Errors: a layer whose input widths are not known yet; a score, position or normalisation that is not from packages
// attn and nn.
//
// Aliasing: the layer's parameters are read when the model is written.
func FromMultiHead(m *attn.MultiHead, o Options) (*Model, error) {
	return Build("attention", o.Opset, func(g *Graph) {
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

// FromEncoderLayer returns a model with the input "x", the inputs that o adds, and the output "out"; "x" and "out"
// are [batch length Width]. Otherwise it works like FromMultiHead.
func FromEncoderLayer(l *attn.EncoderLayer, o Options) (*Model, error) {
	return Build("encoder", o.Opset, func(g *Graph) {
		axes := []Axis{Named("batch"), Named("length"), Sized(l.Config().Width)}
		x := g.Input("x", Float32, axes...)
		n := g.Length(x, 1)
		g.Output("out", g.EncoderLayer(l, x, o.attention(g, n, n)), Float32, axes...)
	})
}

// attention adds the inputs of a mask and a bias for lq queries and lk keys.
func (o Options) attention(g *Graph, lq, lk Value) Attention {
	if c := float64(o.SoftCap); c < 0 || math.IsNaN(c) || math.IsInf(c, 0) {
		g.Fail("soft-cap %v, want a positive finite number, or 0 for none", o.SoftCap)
	}
	a := Attention{SoftCap: o.SoftCap}
	pairs := func(name string) []Axis { // each axis may be 1, so each has its own name
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
