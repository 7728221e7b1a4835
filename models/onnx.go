package models

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/onnx"
)

// ONNX returns an encoder, or a translator of attn train, as an ONNX model. The operator set version is 17, 23 or 27; 0
// means onnx.DefaultOpset.
//
// Inputs and outputs of an encoder of B texts, padded to L tokens with any ids; the names are those of transformers:
//
//	input_ids          [B L]    Int64
//	attention_mask     [B L]    Int64, 1 for a token and 0 for padding
//	token_type_ids     [B L]    Int64, if there are several types
//	last_hidden_state  [B L D]  Float32, arbitrary at padding
//	logits                      Float32, of the shape at the Task of the head, if there is one
//
// A translator computes a step of the decoder and encodes the source in the first step. The caller passes each
// present.X as past.X of the next step:
//
//	source          [batch source]   Int64, token ids followed by EOS, then padding (Pad)
//	source_lengths  [batch]          Int64, numbers of ids including EOS
//	target          [batch target]   Int64, the tokens that follow those read so far, BOS
//	                                 first; one at a time for a GRU
//	past.X                           the state before this step; in the first step zeros,
//	                                 with 0 elements along the axes "read" and "encoded"
//	logits          [batch target N] Float32, for the token after each token of target
//	present.X                        the state after this step
//
// Its metadata contain the config and the vocabularies as JSON: "config", "source_vocabulary" and "target_vocabulary".
//
// Aliasing: the parameters are read when the ONNX model is written.
//
// Errors: a *FormatError for another model; an unsupported version; a model loaded without Options.Trainable.
func (m *Model) ONNX(opset int) (*onnx.Model, error) {
	if n, ok := m.Network.(interface{ graph() graphs }); ok {
		return m.translatorONNX(opset, n.graph())
	}
	return m.encoderONNX(opset, func(g *onnx.Graph, hidden, mask onnx.Value) {
		h, axes := m.Head(), tokenAxes
		if h == nil {
			return
		}
		if h.Pool != nil {
			hidden = h.Pool.graph(g, hidden, mask)
		}
		if !h.Task.PerToken() {
			axes = axes[:1:1]
		}
		axes = append(axes, onnx.Sized(cmp.Or(len(h.Labels), m.Sizes().Vocabulary)))
		g.Output("logits", layerGraph(g.In("head"), h.Layer, hidden), onnx.Float32, axes...)
	})
}

// ONNX returns the model, the pooling and the layers after it as an ONNX model: Model.ONNX with the output
// "sentence_embedding" [B Width] in place of logits. The input contains the tokens of the Prompt.
//
// Errors: those of Model.ONNX; a custom layer; a prompt that the directory excludes from the pooling.
func (e *Embedder) ONNX(opset int) (*onnx.Model, error) {
	if e.leaveOut && e.Prompt != "" {
		return nil, &FormatError{e.Model.Dir, errors.New("the pooling of this model excludes prompts, want no prompt")}
	}
	if e.states != nil {
		return nil, &FormatError{e.Model.Dir, errors.New("is a sparse encoder, which cannot be exported to ONNX, want a pipeline of dense vectors")}
	}
	return e.Model.encoderONNX(opset, func(g *onnx.Graph, hidden, mask onnx.Value) {
		var parts []onnx.Value
		for _, p := range e.Poolings {
			parts = append(parts, p.graph(g, hidden, mask))
		}
		y := layerGraph(g.In("sentence"), inTurn(e.Layers), g.Node("Concat", parts, onnx.Int("axis", 1)))
		g.Output("sentence_embedding", y, onnx.Float32, tokenAxes[0], onnx.Sized(e.width))
	})
}

// tokenAxes are the axes of a number for each token.
var tokenAxes = []onnx.Axis{onnx.Named("batch_size"), onnx.Named("sequence_length")}

// encoderONNX returns an encoder. add adds outputs that depend on the hidden states [B L D] and the attention mask [B L].
func (m *Model) encoderONNX(opset int, add func(g *onnx.Graph, hidden, mask onnx.Value)) (*onnx.Model, error) {
	s, ok := m.Network.(*stack)
	if !ok || !m.Family.graph {
		var names []string
		for _, f := range Families() {
			if f.graph {
				names = append(names, f.Name)
			}
		}
		return nil, &FormatError{m.Dir, fmt.Errorf("is %s model, which cannot be exported to ONNX, want %s or a translator of attn train",
			quote.A(m.Family.Name), strings.Join(names, ", "))}
	}
	if slices.ContainsFunc(s.blocks, func(b *block) bool { return mixes(b.ff) }) {
		return nil, &FormatError{m.Dir, errors.New("has mixtures of experts, which cannot be exported to ONNX")}
	}
	return m.buildONNX("encoder", opset, func(g *onnx.Graph) {
		ids := g.Input("input_ids", onnx.Int64, tokenAxes...)
		mask := g.Input("attention_mask", onnx.Int64, tokenAxes...)
		var types onnx.Value
		if s.sizes.Types > 1 {
			types = g.Input("token_type_ids", onnx.Int64, tokenAxes...)
		}
		at := g.Count(g.Int(s.first), g.Add(g.Length(ids, 1), g.Int(s.first)))
		if pad := g.Int(s.first - 1); s.padded { // pad + the number of tokens up to each, or pad for padding
			n := op(g, "Where", op(g, "Equal", ids, pad), g.Int(0), mask)
			at = g.Add(op(g, "Mul", n, op(g, "CumSum", n, g.Int(1))), pad)
		}
		visible := onnx.Attention{Mask: op(g, "Unsqueeze", cast(g, mask, onnx.Bool), g.Ints(1, 2))}
		hidden := s.graph(g, ids, types, at, visible)
		g.Output("last_hidden_state", hidden, onnx.Float32, append(tokenAxes, onnx.Sized(s.sizes.Width))...)
		add(g, hidden, mask)
	})
}

// buildONNX is onnx.Build for a model with parameters.
func (m *Model) buildONNX(name string, opset int, build func(*onnx.Graph)) (*onnx.Model, error) {
	if err := m.WantTrainable("models: ONNX"); err != nil {
		return nil, err
	}
	model, err := onnx.Build(name, opset, build)
	if err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	return model, nil
}

// op adds an operator without attributes.
func op(g *onnx.Graph, name string, inputs ...onnx.Value) onnx.Value { return g.Node(name, inputs) }

func cast(g *onnx.Graph, x onnx.Value, to onnx.Type) onnx.Value {
	return g.Node("Cast", []onnx.Value{x}, onnx.Int("to", int(to)))
}

// layerGraph adds a layer, the identity if it is nil.
func layerGraph(g *onnx.Graph, l Layer, x onnx.Value) onnx.Value {
	switch l := l.(type) {
	case nil:
		return x
	case inTurn:
		for i, l := range l {
			x = layerGraph(g.In(strconv.Itoa(i)), l, x)
		}
		return x
	case residual:
		return op(g, "Add", layerGraph(g.In("layer"), l.layer, x), layerGraph(g.In("residual"), l.own, x))
	case Activation:
		return g.Activation(l, x)
	case firstToken:
		return g.Node("Gather", []onnx.Value{x, g.Int(0)}, onnx.Int("axis", 1))
	case firstElements:
		return op(g, "Slice", x, g.Ints(0), g.Ints(int(l)), g.Ints(1), g.Ints(1)) // from, to, axis, step
	case *GatedFeedForward:
		gate := g.Activation(l.Activation, g.In("gate").Linear(l.Gate, x))
		return g.In("down").Linear(l.Down, op(g, "Mul", gate, g.In("up").Linear(l.Up, x)))
	}
	return g.Layer(l, x)
}

// graph is Hidden of an encoder. types are absent if there is at most one.
//
// Shapes: ids and types [B L], positions [L] or [B L], of type Int64; out [B L D].
func (s *stack) graph(g *onnx.Graph, ids, types, positions onnx.Value, visible onnx.Attention) onnx.Value {
	x, n := s.embedGraph(g, ids, types, positions), g.Length(ids, 1)
	for i, b := range s.blocks {
		a := visible
		if b.window > 0 {
			a = a.And(g, g.Window(n, b.window/2))
		}
		for _, c := range b.options.Changes { // at most one
			a.Bias = g.RelativeBias(c, s.sizes.Heads, n, s.sizes.Positions)
		}
		x = b.graph(g.In("encoder."+strconv.Itoa(i)), x, func(g *onnx.Graph, h onnx.Value) onnx.Value {
			return g.MultiHead(b.self, h, h, h, a)
		}, nil)
	}
	return layerGraph(g.In("encoder.norm"), s.norm, x)
}

// embedGraph is embed, with positions for those parts that have some.
func (s *stack) embedGraph(g *onnx.Graph, ids, types, positions onnx.Value) onnx.Value {
	x := g.In("words").Embedding(s.words.(*nn.Embedding), ids)
	if s.scale != 0 {
		x = op(g, "Mul", x, g.Scalar(s.scale))
	}
	if types != "" {
		x = g.Add(x, g.In("types").Embedding(s.types, types))
	} else if s.types != nil {
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

// graph is forward without parallel branches and norms after them. self and cross return the attention of their input.
func (b *block) graph(g *onnx.Graph, x onnx.Value, self, cross func(g *onnx.Graph, h onnx.Value) onnx.Value) onnx.Value {
	add := func(name string, norm Layer, branch func(g *onnx.Graph, h onnx.Value) onnx.Value) {
		g, n := g.In(name), g.In(name+".norm")
		if b.postNorm {
			x = layerGraph(n, norm, g.Add(x, branch(g, x)))
		} else {
			x = g.Add(x, branch(g, layerGraph(n, norm, x)))
		}
	}
	add("self", b.selfNorm, self)
	if b.cross != nil {
		add("cross", b.crossNorm, cross)
	}
	add("ff", b.ffNorm, func(g *onnx.Graph, h onnx.Value) onnx.Value { return layerGraph(g, b.ff, h) })
	return x
}

// graph is Forward, with a mask [B L] of type Int64 in place of lengths.
func (p Pooling) graph(g *onnx.Graph, hidden, mask onnx.Value) onnx.Value {
	w := cast(g, mask, onnx.Float32)
	i, n := op(g, "CumSum", w, g.Int(1)), op(g, "ReduceSum", w, g.Ints(-1)) // tokens up to each, and all
	switch p.Name {
	case "cls":
		return layerGraph(g, firstToken{}, hidden)
	case "max":
		h := op(g, "Where", op(g, "Unsqueeze", cast(g, mask, onnx.Bool), g.Ints(2)), hidden, g.Scalar(float32(math.Inf(-1))))
		return op(g, "Squeeze", g.Reduce("ReduceMax", g.Node("Transpose", []onnx.Value{h}, onnx.Ints("perm", 0, 2, 1))), g.Ints(2))
	case "mean":
		w = op(g, "Div", w, n)
	case "mean_sqrt_len_tokens":
		w = op(g, "Div", w, op(g, "Sqrt", n))
	case "weightedmean":
		w = op(g, "Mul", w, i)
		w = op(g, "Div", w, op(g, "ReduceSum", w, g.Ints(-1)))
	case "lasttoken":
		w = op(g, "Where", op(g, "Equal", i, n), w, g.Scalar(0))
	default:
		g.Fail("a pooling called %q, want one of Poolings", p.Name)
	}
	return op(g, "Squeeze", op(g, "MatMul", op(g, "Unsqueeze", w, g.Ints(1)), hidden), g.Ints(1))
}
