package models

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/onnx"
	"github.com/attn-go/attn/tensor"
)

// ONNX returns the translator as one model, which computes a step of the decoder and encodes the
// source in the first step. The operator set version is 17 or 23; 0 means onnx.DefaultOpset.
//
// Inputs and outputs; the caller passes each present.X as past.X of the next step:
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
// The metadata contain the config and the vocabularies as JSON: "config", "source_vocabulary" and
// "target_vocabulary".
//
// Aliasing: the parameters are read when the ONNX model is written.
//
// Errors: a model that is not a translator of attn train; an unsupported version.
func (m *Model) ONNX(opset int) (*onnx.Model, error) {
	n, ok := m.Network.(interface{ graph() graphs })
	c, also := m.TranslatorConfig()
	if !ok || !also {
		return nil, fmt.Errorf("models: ONNX: the model is a %s, want a translator of attn train", m.Family.Name)
	}
	if err := m.wantTrainable("ONNX"); err != nil {
		return nil, err
	}
	model, err := onnx.New("translator", opset)
	if err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	model.SetMetadata("config", string(compactJSON(c)))
	for _, f := range m.others() {
		side := map[string]string{tokenizerFile: "source_vocabulary", targetFile: "target_vocabulary"}[f.Path]
		if text := new(strings.Builder); side != "" {
			if err := f.Write(text); err != nil {
				return nil, err
			}
			model.SetMetadata(side, compacted(text.String()))
		}
	}
	g := model.Graph()
	if err := tensor.Catch(func() { stepGraph(g, c, n.graph()) }); err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	return model, model.Err()
}

// graphs builds the graphs of a network.
type graphs struct {
	// encoded and own are the decoder's state between steps: the values that encode returns, and those that change
	// with each step.
	encoded, own []port
	// encode reads the source and returns the initial state of a decoder: the encoded values,
	// then the parts of its state that are computed from them.
	encode func(g *onnx.Graph, source, lengths onnx.Value) []onnx.Value
	starts int // number of values that encode returns
	// read reads tokens [B l] that follow earlier ones. It returns vectors [B l D] that predict
	// the next tokens, and the new state of the decoder.
	read func(g *onnx.Graph, target, before onnx.Value, mask onnx.Attention, encoded, own []onnx.Value) (
		onnx.Value, []onnx.Value,
	)
	steps  onnx.Axis // of the tokens that are read in one step
	target *nn.Embedding
}

// port is a named part of a decoder's state.
type port struct {
	name string
	axes []onnx.Axis
}

// stepGraph makes the graph of a translator.
func stepGraph(g *onnx.Graph, c TranslatorConfig, n graphs) {
	batch := onnx.Named("batch")
	source := g.Input("source", onnx.Int64, batch, onnx.Named("source"))
	lengths := g.Input("source_lengths", onnx.Int64, batch)
	target := g.Input("target", onnx.Int64, batch, n.steps)
	before := g.Input("past.length", onnx.Int64)

	ports := slices.Concat(n.encoded, n.own)
	past := make([]onnx.Value, len(ports))
	for i, p := range ports {
		past[i] = g.Input("past."+p.name, onnx.Float32, p.axes...)
	}

	// The first step encodes the source; later steps have it in their state.
	starting := make([]onnx.Port, n.starts)
	for i := range starting {
		starting[i] = onnx.Port{Type: onnx.Float32, Axes: ports[i].axes}
	}
	state := past
	if len(starting) > 0 { // otherwise no layer attends to the source
		first := g.Node("Equal", []onnx.Value{before, g.Int(0)})
		state = g.If(first, starting,
			func(g *onnx.Graph) []onnx.Value { return n.encode(g, source, lengths) },
			func(*onnx.Graph) []onnx.Value { return past[:len(starting)] })
		state = append(state, past[len(starting):]...)
	}

	mask := onnx.Attention{}.And(g, g.ValidLens(lengths, g.Length(source, 1)))
	x, next := n.read(g, target, before, mask, state[:len(n.encoded)], state[len(n.encoded):])
	g.Output("logits", g.In("target").Unembed(n.target, x), onnx.Float32, batch, n.steps, onnx.Sized(c.TargetVocab))
	g.Output("present.length", g.Add(before, g.Length(target, 1)), onnx.Int64)
	for i, v := range slices.Concat(state[:len(n.encoded)], next) {
		axes := slices.Clone(ports[i].axes)
		for j, a := range axes { // axes that have grown
			switch a.Name {
			case "read":
				axes[j].Name = "read and target"
			case "encoded":
				axes[j].Name = "source"
			}
		}
		g.Output("present."+ports[i].name, v, onnx.Float32, axes...)
	}
}

// embedGraph is embed as a graph.
func embedGraph(g *onnx.Graph, name string, e *nn.Embedding, ids onnx.Value) onnx.Value {
	x := g.In(name).Embedding(e, ids)
	return g.Node("Mul", []onnx.Value{x, g.Scalar(float32(math.Sqrt(float64(e.Weight.Dim(1)))))})
}

// cacheAxes are the axes of a layer's keys or values.
func cacheAxes(heads int, length string, size int) []onnx.Axis {
	return []onnx.Axis{onnx.Named("batch"), onnx.Sized(heads), onnx.Named(length), onnx.Sized(size)}
}
