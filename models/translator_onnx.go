package models

import (
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/onnx"
)

// translatorONNX is ONNX for a translator.
func (m *Model) translatorONNX(opset int, n graphs) (*onnx.Model, error) {
	c, _ := m.TranslatorConfig()
	model, err := m.buildONNX("translator", opset, func(g *onnx.Graph) { stepGraph(g, c, n) })
	if err != nil {
		return nil, err
	}
	model.SetMetadata("config", string(compactJSON(c)))
	for _, f := range m.beside {
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

// kvPorts are the keys and values of a layer.
func kvPorts(l *attn.MultiHead, length string) []port {
	c := l.Config()
	if c.Heads == 0 {
		return nil
	}
	axes := func(size int) []onnx.Axis {
		return []onnx.Axis{onnx.Named("batch"), onnx.Sized(c.KVHeads), onnx.Named(length), onnx.Sized(size)}
	}
	return []port{{c.Name + ".keys", axes(onnx.KeySize(l))}, {c.Name + ".values", axes(c.ValueSize)}}
}

// kvValues is the inverse of takeKV: the values of a layer that has heads.
func kvValues(kv onnx.KV) []onnx.Value {
	if kv.Keys == "" {
		return nil
	}
	return []onnx.Value{kv.Keys, kv.Values}
}

// takeKV takes the keys and values of a layer from the front of a list.
func takeKV(l *attn.MultiHead, list *[]onnx.Value) onnx.KV {
	if l.Config().Heads == 0 {
		return onnx.KV{}
	}
	kv := onnx.KV{Keys: (*list)[0], Values: (*list)[1]}
	*list = (*list)[2:]
	return kv
}

// graph returns the graphs for any batch size. The state is the keys and values of each layer that has heads.
func (m transformer) graph() graphs {
	g := graphs{encode: m.encodeGraph, read: m.readGraph, steps: onnx.Named("target"), logits: m.target.logits}
	for _, b := range m.target.blocks {
		g.encoded = append(g.encoded, kvPorts(b.cross, "encoded")...)
		g.own = append(g.own, kvPorts(b.self, "read")...)
	}
	g.starts = len(g.encoded)
	return g
}

func (m transformer) encodeGraph(g *onnx.Graph, source, lengths onnx.Value) []onnx.Value {
	n := g.Length(source, 1)
	visible := onnx.Attention{}.And(g, g.ValidLens(lengths, n))
	x := m.source.graph(g, source, "", g.Count(g.Int(0), n), visible)
	var encoded []onnx.Value
	for i, b := range m.target.blocks {
		encoded = append(encoded, kvValues(g.In("decoder."+strconv.Itoa(i)+".cross").Project(b.cross, x, x))...)
	}
	return encoded
}

func (m transformer) readGraph(
	g *onnx.Graph, target, before onnx.Value, visible onnx.Attention, encoded, own []onnx.Value,
) (onnx.Value, []onnx.Value) {
	l := g.Length(target, 1)
	read := g.Add(before, l)
	x := m.target.embedGraph(g.In("target"), target, "", g.Count(before, read))
	earlier := onnx.Attention{}.And(g, g.Causal(l, read))
	var next []onnx.Value
	for i, b := range m.target.blocks {
		x = b.graph(g.In("decoder."+strconv.Itoa(i)), x, func(g *onnx.Graph, h onnx.Value) onnx.Value {
			y, kv := g.Extend(b.self, h, takeKV(b.self, &own), earlier)
			next = append(next, kvValues(kv)...)
			return y
		}, func(g *onnx.Graph, h onnx.Value) onnx.Value {
			return g.Query(b.cross, h, takeKV(b.cross, &encoded), visible)
		})
	}
	return layerGraph(g.In("decoder.norm"), m.target.norm, x), next
}

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
	x := m.scaled(m.source).embedGraph(g.In("source"), source, "", "")
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
	embedded := m.scaled(m.target).embedGraph(g.In("target"), target, "", "")
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
