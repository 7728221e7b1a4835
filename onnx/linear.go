package onnx

import (
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/linear"
)

// RuntimeDomain is the domain of the operators that ONNX Runtime has itself. Its LinearAttention works with opsets 17 and
// 23.
const RuntimeDomain = "com.microsoft"

// LinearAttention describes linear attention as linear.Options does. Heads are side by side. The zero values of Decay,
// Beta and State mean that there is none.
type LinearAttention struct {
	Query, Key, Value Value // [B L H·E], [B L G·E], [B L G·V]
	Heads, KVHeads    int   // H, a multiple of G
	Decay             Value // [B L G], or [B L G·E] for each element of a key
	Beta              Value // [B L G], or [B L 1]
	State             Value // [B G E V], before the first token
	Scale             float32
	// Domain is RuntimeDomain for the operator of ONNX Runtime, and empty for that of ONNX, which needs opset 27.
	Domain string
}

// LinearAttention is linear.Attend, as one node.
//
// Shapes: out [B L H·V], state [B G E V].
//
// Errors: an opset that has no such operator, with an empty Domain; another domain.
func (g *Graph) LinearAttention(a LinearAttention) (out, state Value) {
	switch {
	case a.Domain != "" && a.Domain != RuntimeDomain:
		g.Fail("the operator LinearAttention of domain %q, want %q, or none for that of ONNX", a.Domain, RuntimeDomain)
	case a.Domain == "" && g.Opset() < 27:
		g.Fail("the operator LinearAttention of ONNX with opset %d, want opset 27, or the domain %q", g.Opset(), RuntimeDomain)
	}
	rule := "linear"
	switch {
	case a.Decay != "" && a.Beta != "":
		rule = "gated_delta"
	case a.Decay != "":
		rule = "gated"
	case a.Beta != "":
		rule = "delta"
	}
	y := g.nodesOf(a.Domain, "LinearAttention", 2, []Value{a.Query, a.Key, a.Value, a.State, a.Decay, a.Beta},
		Int("q_num_heads", a.Heads), Int("kv_num_heads", a.KVHeads), String("update_rule", rule), Float("scale", a.Scale))
	return y[0], y[1]
}

// LinearState is the state of a linear.Layer: linear.LayerState.
//
// Shapes: Heads [B G E V], or [B G E V+1] with Normalize; Inputs [B Conv−1 C], the last inputs of the convolution, absent
// without one. An absent state is 0.
type LinearState struct{ Heads, Inputs Value }

// LinearLayer is linear.Layer.Extend, or Forward if past is empty. The domain is that of LinearAttention.
//
// Shapes: x and out [B L Width].
//
// Errors: those of LinearAttention; a layer with SequenceFirst; a Decay that is not linear.Slopes or *linear.StepDecay; a
// Feature that is not from packages linear and tensor; those of Layer and Activation.
func (g *Graph) LinearLayer(l *linear.Layer, x Value, past LinearState, domain string) (out Value, present LinearState) {
	c := l.Config()
	if c.Layout != attn.BatchFirst {
		g.Fail("the layer has the layout SequenceFirst, want BatchFirst")
	}
	q, k, v := g.In("q").Linear(l.Q, x), g.In("k").Linear(l.K, x), g.In("v").Linear(l.V, x)
	if l.Conv != nil {
		n, keys, values := c.Conv-1, c.KeyHeads*c.KeySize, c.Heads*c.ValueSize
		first := past.Inputs
		if first == "" {
			first = g.Node("Expand", []Value{g.Scalar(0), g.concat(0, g.dims(x, 0, 1), g.Ints(n, 2*keys+values))})
		}
		all := g.concat(1, first, g.concat(2, q, k, v))
		present.Inputs = g.Node("Slice", []Value{all, g.dims(x, 1, 2), g.Ints(math.MaxInt32), g.Ints(1), g.Ints(1)})
		conv := []Value{g.transpose(all, 0, 2, 1), g.transpose(g.In("conv").Weight("weight", l.Conv.Weight), 2, 1, 0)}
		if l.Conv.Bias != nil {
			conv = append(conv, g.In("conv").Weight("bias", l.Conv.Bias))
		}
		all = g.transpose(g.Node("Conv", conv, Int("group", 2*keys+values)), 0, 2, 1)
		all = g.In("conv").Activation(l.Conv.Activation, all)
		q, k, v = g.slice(all, 2, 0, keys, 1), g.slice(all, 2, keys, 2*keys, 1), g.slice(all, 2, 2*keys, 2*keys+values, 1)
	}
	a := LinearAttention{Heads: c.Heads, KVHeads: c.Heads, State: past.Heads, Domain: domain}
	a.Query, a.Key, a.Value = g.perValueHead(c, q), g.perValueHead(c, k), v
	if c.Decay != nil {
		a.Decay = g.In("decay").decay(c.Decay, c.Heads, x)
	}
	if l.Beta != nil {
		a.Beta = g.mul(g.Node("Sigmoid", []Value{g.In("beta").Linear(l.Beta, x)}), g.Scalar(c.Beta))
	}
	size := c.ValueSize
	if c.Normalize { // a column of ones sums the keys
		heads := g.reshape(v, 0, 0, c.Heads, size)
		ones := g.Node("Expand", []Value{g.Scalar(1), g.concat(0, g.dims(heads, 0, 3), g.Ints(1))})
		size++
		a.Value = g.reshape(g.concat(3, heads, ones), 0, 0, c.Heads*size)
	}
	y, state := g.LinearAttention(a)
	present.Heads = state
	heads := g.reshape(y, 0, 0, c.Heads, size)
	if c.Normalize {
		sums := g.slice(heads, 3, size-1, size, 1)
		zero := g.Node("Equal", []Value{sums, g.Scalar(0)})
		mean := g.div(g.slice(heads, 3, 0, size-1, 1), g.where(zero, g.Scalar(1), sums))
		heads = g.where(zero, g.Scalar(0), mean)
	}
	if c.OutNorm != nil {
		heads = g.In("norm").Layer(c.OutNorm, heads)
	}
	y = g.reshape(heads, 0, 0, c.Heads*c.ValueSize)
	if l.Gate != nil {
		y = g.mul(y, g.In("gate").Activation(c.OutGate, g.In("gate").Linear(l.Gate, x)))
	}
	return g.In("out").Linear(l.Out, y), present
}

// perValueHead applies the feature to queries or keys [B L K·E], and repeats heads: [B L G·E].
func (g *Graph) perValueHead(c linear.LayerConfig, x Value) Value {
	if c.Feature != nil {
		x = g.reshape(g.feature(c.Feature, g.reshape(x, 0, 0, c.KeyHeads, c.KeySize)), 0, 0, c.KeyHeads*c.KeySize)
	}
	if c.KeyHeads != c.Heads {
		x = g.reshape(x, 0, 0, c.KeyHeads, 1, c.KeySize)
		x = g.Node("Expand", []Value{x, g.Ints(1, 1, 1, c.Heads/c.KeyHeads, 1)})
		x = g.reshape(x, 0, 0, c.Heads*c.KeySize)
	}
	return x
}

// features are the functions of queries and keys that are not activations.
var features = []function{
	{linear.Unit, func(g *Graph, x Value) Value { // x/√(Σx² + 1e-6)
		return g.div(x, g.sqrt(g.Add(g.sum(g.mul(x, x)), g.Scalar(1e-6))))
	}},
	{linear.ELU1, func(g *Graph, x Value) Value { return g.Add(g.Node("Elu", []Value{x}), g.Scalar(1)) }},
}

func (g *Graph) feature(f linear.Feature, x Value) Value {
	for _, list := range [][]function{features, activations} {
		if graph := find(list, f); graph != nil {
			return graph(g, x)
		}
	}
	g.Fail("the feature is a custom function, want linear.Unit, linear.ELU1 or an activation of package tensor")
	return x
}

// decay returns the logarithms of decays, [B L G] or [B L G·E].
func (g *Graph) decay(d linear.Decay, heads int, x Value) Value {
	switch d := d.(type) {
	case linear.Slopes:
		return g.Node("Expand", []Value{g.Weight("slopes", d.Decays(nil, nil)), g.concat(0, g.dims(x, 0, 2), g.Ints(1))})
	case *linear.StepDecay:
		step := g.Node("Softplus", []Value{g.In("step").Linear(d.Step, x)})
		rate := g.Node("Neg", []Value{g.Node("Exp", []Value{g.Weight("a", d.A)})})
		if size := d.Step.Weight.Dim(0) / heads; size > 1 {
			return g.reshape(g.mul(g.reshape(step, 0, 0, heads, size), g.unsqueeze(rate, 1)), 0, 0, heads*size)
		}
		return g.mul(step, rate)
	}
	g.Fail("a decay of type %T, want linear.Slopes or *linear.StepDecay", d)
	return x
}

// LinearOptions describes the model for a layer of linear attention.
type LinearOptions struct {
	// Opset is the version of the operators, as in Options. 0 means 27, or DefaultOpset with a Domain.
	Opset int
	// Domain is that of LinearAttention.
	Domain string
	// State adds the inputs "past.heads" and, for a layer with a convolution, "past.inputs", and the outputs
	// "present.heads" and "present.inputs", so that a sequence continues in the next call. A past of zeros begins one.
	State bool
}

// FromLinear returns a model of linear.Layer.Forward, or Extend with State, with the input "x" and the output "out", both
// [batch length Width], and those that o adds; see LinearState for their shapes.
//
// Errors: those of LinearLayer and Build. The layer's parameters are read when the model is written.
func FromLinear(l *linear.Layer, o LinearOptions) (*Model, error) {
	if o.Opset == 0 && o.Domain == "" {
		o.Opset = 27
	}
	return Build("linear", o.Opset, func(g *Graph) {
		c := l.Config()
		axes := []Axis{Named("batch"), Named("length"), Sized(c.Width)}
		x := g.Input("x", Float32, axes...)
		columns := c.ValueSize
		if c.Normalize {
			columns++
		}
		heads := []Axis{Named("batch"), Sized(c.Heads), Sized(c.KeySize), Sized(columns)}
		var inputs []Axis
		if l.Conv != nil {
			inputs = []Axis{Named("batch"), Sized(c.Conv - 1), Sized(l.Conv.Weight.Dim(2))}
		}
		var past LinearState
		if o.State {
			past.Heads = g.Input("past.heads", Float32, heads...)
			if l.Conv != nil {
				past.Inputs = g.Input("past.inputs", Float32, inputs...)
			}
		}
		out, present := g.LinearLayer(l, x, past, o.Domain)
		g.Output("out", out, Float32, axes...)
		if o.State {
			g.Output("present.heads", present.Heads, Float32, heads...)
			if l.Conv != nil {
				g.Output("present.inputs", present.Inputs, Float32, inputs...)
			}
		}
	})
}
