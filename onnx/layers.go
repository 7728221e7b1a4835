package onnx

import (
	"math"
	"reflect"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Layer is Forward of *nn.Linear, *nn.FeedForward, *nn.LayerNorm, *nn.RMSNorm or nn.L2Norm.
//
// Shapes: x [… In], out [… Out].
//
// Errors: another layer, and those of Activation. Weights that are packed for inference panic, as in Linear.
func (g *Graph) Layer(l nn.Layer, x Value) Value {
	switch l := l.(type) {
	case *nn.Linear:
		return g.Linear(l, x)
	case *nn.FeedForward:
		return g.In("out").Linear(l.Out, g.Activation(l.Activation, g.In("in").Linear(l.In, x)))
	case *nn.LayerNorm:
		return g.Node("LayerNormalization", []Value{x, g.Weight("weight", l.Weight), g.Weight("bias", l.Bias)},
			Int("axis", -1), Float("epsilon", l.Eps))
	case *nn.RMSNorm:
		square := g.Add(g.Reduce("ReduceMean", g.mul(x, x)), g.Scalar(l.Eps))
		return g.mul(g.div(x, g.sqrt(square)), g.Weight("weight", l.Weight))
	case nn.L2Norm:
		return g.Normalize(l.Eps, x)
	}
	g.Fail("a layer of type %T, want *nn.Linear, *nn.FeedForward, *nn.LayerNorm, *nn.RMSNorm or nn.L2Norm", l)
	return x
}

// Linear is x·Wᵀ + b: MatMul with the transposed weight, and Add. A weight that is also the table of an Embedding is
// stored once.
//
// Shapes: x [… In], out [… Out].
//
// It panics with a *tensor.ValueError if the weights are packed for inference.
func (g *Graph) Linear(l *nn.Linear, x Value) Value {
	if l.Weight == nil {
		panic(&tensor.ValueError{
			Op: "onnx: Linear", Arg: "weight", Got: "packed for inference or nil",
			Want: "a parameter; models.Options{Trainable: true} loads parameters",
		})
	}
	w, tied := g.model.known[l.Weight]
	if tied {
		w = g.transpose(w, 1, 0)
	} else {
		w = g.WeightT("weight", l.Weight)
	}
	y := g.matmul(x, w)
	if l.Bias != nil {
		y = g.Add(y, g.Weight("bias", l.Bias))
	}
	return y
}

// Embedding looks up the vectors of token IDs.
//
// Shapes: ids [B L] of type Int64, out [B L D].
func (g *Graph) Embedding(e *nn.Embedding, ids Value) Value {
	return g.Node("Gather", []Value{g.Weight("weight", e.Weight), ids}, Int("axis", 0))
}

// Sinusoids is nn.Sinusoids for positions that are only known when the model runs. The angles have type Float64,
// because float32 is too inexact for positions of some thousands.
//
// Shapes: positions [L] of type Int64, out [L width].
func (g *Graph) Sinusoids(positions Value, width int) Value {
	frequency, phase := make([]float64, width), make([]float64, width)
	for i := range width {
		frequency[i] = math.Pow(10000, -float64(i-i%2)/float64(width))
		phase[i] = float64(i%2) * math.Pi / 2 // a cosine is a shifted sine
	}
	p := g.unsqueeze(g.cast(positions, Float64), 1)
	angle := g.Add(g.mul(p, g.doubles(frequency, width)), g.doubles(phase, width))
	return g.cast(g.Node("Sin", []Value{angle}), Float32)
}

// Normalize is tensor.Normalize: x/max(‖x‖, eps), and 0 for a vector of zeros. Vectors are first divided by their
// largest element, so that no square overflows.
//
// Shapes: x and out [… D].
func (g *Graph) Normalize(eps float32, x Value) Value {
	size := g.Reduce("ReduceMax", g.abs(x))
	zero := g.Node("Equal", []Value{size, g.Scalar(0)})
	part := g.div(x, g.where(zero, g.Scalar(1), size))
	length := g.sqrt(g.sum(g.mul(part, part))) // at least 1, or 0
	if eps > 0 {
		length = g.Node("Max", []Value{length, g.div(g.Scalar(eps), g.where(zero, g.Scalar(1), size))})
	}
	return g.div(part, g.where(zero, g.Scalar(1), length))
}

// function is a function of tensors, as a graph.
type function struct {
	f     func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor
	graph func(g *Graph, x Value) Value
}

// find returns f as a graph, or nil if the list does not have it.
func find(list []function, f func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor) func(g *Graph, x Value) Value {
	for _, a := range list {
		if reflect.ValueOf(a.f).Pointer() == reflect.ValueOf(f).Pointer() {
			return a.graph
		}
	}
	return nil
}

// activations are the supported functions of a feed-forward network and an output gate.
var activations = []function{
	{tensor.ReLU, func(g *Graph, x Value) Value { return g.Node("Relu", []Value{x}) }},
	{tensor.Tanh, (*Graph).tanh},
	{tensor.Sigmoid, func(g *Graph, x Value) Value { return g.Node("Sigmoid", []Value{x}) }},
	{tensor.Softplus, func(g *Graph, x Value) Value { return g.Node("Softplus", []Value{x}) }},
	{tensor.SiLU, func(g *Graph, x Value) Value { return g.mul(x, g.Node("Sigmoid", []Value{x})) }},
	{tensor.QuickGELU, func(g *Graph, x Value) Value { // x·sigmoid(1.702·x)
		return g.mul(x, g.Node("Sigmoid", []Value{g.mul(x, g.Scalar(1.702))}))
	}},
	{tensor.GELU, func(g *Graph, x Value) Value { // x·½(1 + erf(x/√2))
		return g.gated(x, g.Node("Erf", []Value{g.mul(x, g.Scalar(math.Sqrt2/2))}))
	}},
	{tensor.TanhGELU, func(g *Graph, x Value) Value { // x·½(1 + tanh(√(2/π)·x·(1 + 0.044715·x²)))
		square := g.Add(g.Scalar(1), g.mul(g.Scalar(0.044715), g.mul(x, x)))
		return g.gated(x, g.tanh(g.mul(g.mul(x, g.Scalar(float32(math.Sqrt(2/math.Pi)))), square)))
	}},
}

// gated returns x·½(1 + y).
func (g *Graph) gated(x, y Value) Value {
	return g.mul(x, g.mul(g.Scalar(0.5), g.Add(g.Scalar(1), y)))
}

// Activation applies a function of package tensor to each element.
//
// Errors: a function other than tensor.ReLU, GELU, TanhGELU, QuickGELU, SiLU, Softplus, Tanh or Sigmoid.
func (g *Graph) Activation(f func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor, x Value) Value {
	if graph := find(activations, f); graph != nil {
		return graph(g, x)
	}
	g.Fail("the activation is a custom function, want tensor.ReLU, GELU, TanhGELU, QuickGELU, SiLU, Softplus, Tanh or Sigmoid")
	return x
}

// GRU runs one layer over sequences in one direction, or two layers of the same sizes in both directions, with
// concatenated outputs. It uses the operator GRU with the reset gate after the recurrent product. The operator stacks
// its gates in the order z, r, h.
//
// Shapes, for n layers:
//
//	x     [B L D]
//	h0    [B H] for one layer; if absent, zeros
//	lens  [B] of type Int64, the length of each sequence; if absent, L
//	out   [B L n·H]
//	last  [B n·H]
//
// Errors: layers of different sizes, more than two layers, or two layers with h0.
func (g *Graph) GRU(layers []*nn.GRU, x, h0, lens Value) (out, last Value) {
	if n := len(layers); n != 1 && (n != 2 || h0 != "") {
		g.Fail("a GRU in %d directions, want 1, or 2 without an initial state", n)
		return x, x
	}
	hidden, in := layers[0].WeightHH.Dim(1), layers[0].WeightIH.Dim(1)
	start, steps := h0, lens
	if h0 != "" {
		start = g.unsqueeze(h0, 0)
	}
	if lens != "" {
		steps = g.cast(lens, Int32)
	}
	direction := "forward"
	if len(layers) == 2 {
		direction = "bidirectional"
	}
	var ih, hh, bias []float32
	for _, l := range layers {
		if l.WeightHH.Dim(1) != hidden || l.WeightIH.Dim(1) != in {
			g.Fail("GRUs of different sizes in the two directions")
		}
		ih, hh = appendGates(ih, l.WeightIH, 3*hidden*in), appendGates(hh, l.WeightHH, 3*hidden*hidden)
		bias = appendGates(appendGates(bias, l.BiasIH, 3*hidden), l.BiasHH, 3*hidden)
	}
	packed := func(name string, data []float32, shape ...int) Value {
		return g.Weight(name, tensor.New(data, append([]int{len(layers)}, shape...)...))
	}
	y := g.Nodes("GRU", 2, []Value{
		g.transpose(x, 1, 0, 2), packed("weight_ih", ih, 3*hidden, in), packed("weight_hh", hh, 3*hidden, hidden),
		packed("bias", bias, 6*hidden), steps, start,
	}, Int("hidden_size", hidden), Int("linear_before_reset", 1), String("direction", direction))
	// [L n B H] and [n B H]
	out = g.reshape(g.transpose(y[0], 2, 0, 1, 3), 0, 0, len(layers)*hidden)
	last = g.reshape(g.transpose(y[1], 1, 0, 2), 0, len(layers)*hidden)
	if h0 != "" && lens != "" { // for a sequence of length 0, ONNX Runtime returns zeros
		some := g.Node("Greater", []Value{g.unsqueeze(lens, 1), g.Int(0)})
		last = g.where(some, last, h0)
	}
	return out, last
}

// appendGates appends n numbers: the gates r, z and n of a parameter in the order z, r, n, or zeros for an absent bias.
func appendGates(to []float32, x *tensor.Tensor, n int) []float32 {
	if x == nil {
		return append(to, make([]float32, n)...)
	}
	d, gate := x.Data(), n/3
	to = append(to, d[gate:2*gate]...)
	to = append(to, d[:gate]...)
	return append(to, d[2*gate:]...)
}
