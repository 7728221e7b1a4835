package models

import (
	"strconv"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/onnx"
)

// graph returns the graphs, which read one token at a time. The state is the source as keys and values, and the state
// of each layer of the decoder. The initial state of the decoder is computed from the encoder's.
func (m *recurrent) graph() graphs {
	g := graphs{encode: m.encodeGraph, read: m.readGraph, steps: onnx.Sized(1), logits: m.logits}
	if m.cross != nil {
		g.encoded = kvPorts(m.cross, "encoded")
	} else {
		axes := func(size int) []onnx.Axis {
			return []onnx.Axis{onnx.Named("batch"), onnx.Named("encoded"), onnx.Sized(size)}
		}
		keys := onnx.ScoreSize(m.score, m.config.Width)
		g.encoded = []port{{"source.keys", axes(keys)}, {"source.values", axes(m.config.Width)}}
	}
	for i := range m.decoder {
		axes := []onnx.Axis{onnx.Named("batch"), onnx.Sized(m.config.Width)}
		g.own = append(g.own, port{"decoder." + strconv.Itoa(i), axes})
	}
	g.starts = len(g.encoded) + len(g.own)
	return g
}

func (m *recurrent) encodeGraph(g *onnx.Graph, source, lengths onnx.Value) []onnx.Value {
	x := wordsGraph(g.In("source"), m.source, m.scale(), source)
	var own []onnx.Value
	for i := range m.forward {
		var last onnx.Value
		x, last = g.In("encoder."+strconv.Itoa(i)).GRU([]*nn.GRU{m.forward[i], m.backward[i]}, x, "", lengths)
		initial := g.In("initial." + strconv.Itoa(i))
		own = append(own, initial.Node("Tanh", []onnx.Value{initial.Linear(m.initial[i], last)}))
	}
	var encoded []onnx.Value
	if m.cross != nil {
		encoded = kvValues(g.In("cross").Project(m.cross, x, x))
	} else {
		encoded = []onnx.Value{g.Keys(m.score, x, m.config.Width), x}
	}
	return append(encoded, own...)
}

func (m *recurrent) readGraph(
	g *onnx.Graph, target, _ onnx.Value, visible onnx.Attention, encoded, own []onnx.Value,
) (onnx.Value, []onnx.Value) {
	query := g.Node("Unsqueeze", []onnx.Value{own[len(own)-1], g.Ints(1)})
	var context onnx.Value
	if m.cross != nil {
		context = g.In("cross").Query(m.cross, query, takeKV(m.cross, &encoded), visible)
	} else {
		context = g.Attend(m.score, query, encoded[0], encoded[1], m.config.Width, visible)
	}
	embedded := wordsGraph(g.In("target"), m.target, m.scale(), target)
	x := g.Node("Concat", []onnx.Value{embedded, context}, onnx.Int("axis", 2))
	in := x
	var next []onnx.Value
	for i, unit := range m.decoder {
		var last onnx.Value
		in, last = g.In("decoder."+strconv.Itoa(i)).GRU([]*nn.GRU{unit}, in, own[i], "")
		next = append(next, last)
	}
	x = g.Node("Concat", []onnx.Value{x, in}, onnx.Int("axis", 2))
	readout := g.In("readout")
	return readout.Node("Tanh", []onnx.Value{readout.Linear(m.readout, x)}), next
}
