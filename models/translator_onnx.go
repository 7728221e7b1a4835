package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/onnx"
)

// translatorONNX is ONNX for a translator.
func (m *Model) translatorONNX(opset int, n graphs) (*onnx.Model, error) {
	c, ok := m.TranslatorConfig()
	if !ok {
		return nil, &FormatError{m.Dir, fmt.Errorf("is a %s model, want a translator of attn train", m.Family.Name)}
	}
	model, err := m.draw("translator", opset, func(g *onnx.Graph) { stepGraph(g, c, n) })
	if err != nil {
		return nil, err
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
	return model, nil
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
	logits *nn.Linear
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
	g.Output("logits", g.In("logits").Linear(n.logits, x), onnx.Float32, batch, n.steps, onnx.Sized(c.TargetVocab))
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

// cacheAxes are the axes of a layer's keys or values.
func cacheAxes(heads int, length string, size int) []onnx.Axis {
	return []onnx.Axis{onnx.Named("batch"), onnx.Sized(heads), onnx.Named(length), onnx.Sized(size)}
}
