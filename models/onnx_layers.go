package models

import (
	"math"
	"strconv"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/onnx"
)

// layerGraph adds a layer to a graph. A nil layer is the identity.
func layerGraph(g *onnx.Graph, l Layer, x onnx.Value) onnx.Value {
	switch l := l.(type) {
	case nil:
		return x
	case inTurn:
		for i, l := range l {
			x = layerGraph(g.In(strconv.Itoa(i)), l, x)
		}
		return x
	case Activation:
		return g.Activation(l, x)
	case firstToken:
		return g.Node("Gather", []onnx.Value{x, g.Int(0)}, onnx.Int("axis", 1))
	case *GatedFeedForward:
		gate := g.Activation(l.Activation, g.In("gate").Linear(l.Gate, x))
		return g.In("down").Linear(l.Down, g.Node("Mul", []onnx.Value{gate, g.In("up").Linear(l.Up, x)}))
	}
	return g.Layer(l, x)
}

// graph is Hidden of an encoder as a graph.
//
// Shapes: ids and types [B L] of type Int64, positions as for embedGraph, out [B L D].
func (s *stack) graph(g *onnx.Graph, ids, types, positions onnx.Value, visible onnx.Attention) onnx.Value {
	x, n := s.embedGraph(g, ids, types, positions), g.Length(ids, 1)
	for i, b := range s.blocks {
		x = b.graph(g.In("encoder."+strconv.Itoa(i)), x, func(g *onnx.Graph, h onnx.Value) onnx.Value {
			return g.MultiHead(b.self, h, h, h, b.visible(g, visible, n, s.sizes.Positions))
		}, nil)
	}
	return layerGraph(g.In("encoder.norm"), s.norm, x)
}

// embedGraph is embed as a graph. types are empty if the model has at most one.
//
// Shapes: positions [L] or [B L] of type Int64.
func (s *stack) embedGraph(g *onnx.Graph, ids, types, positions onnx.Value) onnx.Value {
	x := wordsGraph(g.In("words"), s.words, s.scale, ids)
	switch {
	case types != "":
		x = g.Add(x, g.In("types").Embedding(s.types, types))
	case s.types != nil:
		x = g.Add(x, g.In("types").Weight("weight", s.types.Weight))
	}
	switch p := s.positions.(type) {
	case *nn.Embedding:
		x = g.Add(x, g.In("positions").Embedding(p, positions))
	case *sinusoids:
		x = g.Add(x, g.Sinusoids(positions, p.width))
	}
	return layerGraph(g.In("words.norm"), s.wordsNorm, x)
}

// wordsGraph looks up the vectors of tokens and multiplies them by a scale, unless it is 0.
func wordsGraph(g *onnx.Graph, e words, scale float32, ids onnx.Value) onnx.Value {
	x := g.Embedding(e.(*nn.Embedding), ids)
	if scale != 0 {
		x = g.Node("Mul", []onnx.Value{x, g.Scalar(scale)})
	}
	return x
}

// graph is of as a graph, for a batch. mask is 1 for a token and 0 for padding.
//
// Shapes: ids, mask and out [B L] of type Int64.
func (p *behindPadding) graph(g *onnx.Graph, ids, mask onnx.Value) onnx.Value {
	counts := g.Node("Where", []onnx.Value{g.Node("Equal", []onnx.Value{ids, g.Int(p.pad)}), g.Int(0), mask})
	n := g.Node("Mul", []onnx.Value{counts, g.Node("CumSum", []onnx.Value{counts, g.Int(1)})})
	return g.Add(n, g.Int(p.pad))
}

// graph is forward of a block that is not parallel as a graph. self and cross return the attention of their inputs.
func (b *block) graph(g *onnx.Graph, x onnx.Value, self, cross func(g *onnx.Graph, h onnx.Value) onnx.Value) onnx.Value {
	add := func(name string, norm, after Layer, branch func(g *onnx.Graph, h onnx.Value) onnx.Value) {
		in := g.In(name)
		if b.postNorm {
			x = layerGraph(in.In("norm"), norm, g.Add(x, branch(in, x)))
			return
		}
		y := branch(in, layerGraph(in.In("norm"), norm, x))
		x = g.Add(x, layerGraph(in.In("after"), after, y))
	}
	add("self", b.selfNorm, b.selfAfter, self)
	if b.cross != nil {
		add("cross", b.crossNorm, nil, cross)
	}
	add("ff", b.ffNorm, b.ffAfter, func(g *onnx.Graph, h onnx.Value) onnx.Value { return layerGraph(g, b.ff, h) })
	return x
}

// visible adds the window and the bias of a block of an encoder, for n tokens of at most most.
func (b *block) visible(g *onnx.Graph, a onnx.Attention, n onnx.Value, most int) onnx.Attention {
	if b.window > 0 {
		a = a.And(g, g.Window(n, b.window/2))
	}
	a.SoftCap = b.options.SoftCap
	for _, c := range b.options.Changes { // at most one
		a.Bias = g.T5Bias(c, n, most)
	}
	return a
}

// graph is Forward as a graph. mask is 1 for a token and 0 for padding.
//
// Shapes: hidden [B L D], mask [B L] of type Int64, out [B D].
func (p Pooling) graph(g *onnx.Graph, hidden, mask onnx.Value) onnx.Value {
	op := func(op string, in ...onnx.Value) onnx.Value { return g.Node(op, in) }
	to := func(t onnx.Type) onnx.Value { return g.Node("Cast", []onnx.Value{mask}, onnx.Int("to", int(t))) }
	if p.Name == "max" {
		h := op("Where", op("Unsqueeze", to(onnx.Bool), g.Ints(2)), hidden, g.Scalar(float32(math.Inf(-1))))
		h = g.Node("Transpose", []onnx.Value{h}, onnx.Ints("perm", 0, 2, 1))
		return op("Squeeze", g.Reduce("ReduceMax", h), g.Ints(2))
	}
	w := to(onnx.Float32)
	i, n := op("CumSum", w, g.Int(1)), g.Node("ReduceSum", []onnx.Value{w, g.Ints(-1)}) // tokens up to each, and all
	only := func(at onnx.Value) onnx.Value {
		return g.Node("Where", []onnx.Value{op("Equal", i, at), w, g.Scalar(0)})
	}
	switch p.Name {
	case "cls":
		w = only(g.Scalar(1))
	case "lasttoken":
		w = only(n)
	case "mean":
		w = op("Div", w, n)
	case "mean_sqrt_len_tokens":
		w = op("Div", w, op("Sqrt", n))
	case "weightedmean":
		w = op("Mul", w, i)
		w = op("Div", w, g.Node("ReduceSum", []onnx.Value{w, g.Ints(-1)}))
	default:
		g.Fail("a pooling called %q, want one of Poolings", p.Name)
	}
	return op("Squeeze", op("MatMul", op("Unsqueeze", w, g.Ints(1)), hidden), g.Ints(1))
}
