package seq2seq

import (
	"strconv"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/onnx"
)

// graph returns the network as graphs: what encode and read do, for any batch.
func (m *transformer) graph() graphs { return transformerGraphs{m} }

type transformerGraphs struct{ *transformer }

func (m transformerGraphs) target() *nn.Embedding { return m.transformer.target }
func (m transformerGraphs) steps() onnx.Axis      { return onnx.Named("target") }

func (m transformerGraphs) starts() int {
	encoded, _ := m.state()
	return len(encoded)
}

// state is the keys and values of each layer that has heads.
func (m transformerGraphs) state() (encoded, own []port) {
	for _, l := range m.decoder {
		encoded = append(encoded, kvPorts(l.cross, "encoded")...)
		own = append(own, kvPorts(l.self, "read")...)
	}
	return encoded, own
}

// kvPorts are the keys and values of a layer.
func kvPorts(l *attn.MultiHead, length string) []port {
	c := l.Config()
	if c.Heads == 0 {
		return nil
	}
	return []port{
		{c.Name + ".keys", cacheAxes(c.KVHeads, length, onnx.KeySize(l))},
		{c.Name + ".values", cacheAxes(c.KVHeads, length, c.ValueSize)},
	}
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

func (m transformerGraphs) encode(g *onnx.Graph, source, lengths onnx.Value) []onnx.Value {
	n := g.Length(source, 1)
	x := m.positioned(g, "source", m.source, source, g.Count(g.Int(0), n))
	visible := onnx.Attention{}.And(g, g.ValidLens(lengths, n))
	for i, l := range m.encoder {
		g := g.In("encoder." + strconv.Itoa(i))
		h := g.In("norm1").LayerNorm(l.norm1, x)
		x = g.Add(x, g.In("self").MultiHead(l.self, h, h, h, visible))
		x = g.Add(x, g.In("ff").FeedForward(l.ff, g.In("norm2").LayerNorm(l.norm2, x)))
	}
	x = g.In("encoder.norm").LayerNorm(m.encoderNorm, x)
	var encoded []onnx.Value
	for i, l := range m.decoder {
		encoded = append(encoded, kvValues(g.In("decoder."+strconv.Itoa(i)+".cross").Project(l.cross, x, x))...)
	}
	return encoded
}

func (m transformerGraphs) read(g *onnx.Graph, target, before onnx.Value, visible onnx.Attention, encoded, own []onnx.Value) (onnx.Value, []onnx.Value) {
	l := g.Length(target, 1)
	read := g.Add(before, l)
	x := m.positioned(g, "target", m.transformer.target, target, g.Count(before, read))
	earlier := onnx.Attention{}.And(g, g.Causal(l, read))
	var next []onnx.Value
	for i, l := range m.decoder {
		g := g.In("decoder." + strconv.Itoa(i))
		y, kv := g.In("self").Extend(l.self, g.In("norm1").LayerNorm(l.norm1, x), takeKV(l.self, &own), earlier)
		next = append(next, kvValues(kv)...)
		x = g.Add(x, y)
		x = g.Add(x, g.In("cross").Query(l.cross, g.In("norm2").LayerNorm(l.norm2, x), takeKV(l.cross, &encoded), visible))
		x = g.Add(x, g.In("ff").FeedForward(l.ff, g.In("norm3").LayerNorm(l.norm3, x)))
	}
	return g.In("decoder.norm").LayerNorm(m.decoderNorm, x), next
}

// positioned embeds tokens that stand at the given positions.
func (m transformerGraphs) positioned(g *onnx.Graph, name string, e *nn.Embedding, ids, positions onnx.Value) onnx.Value {
	return g.Add(embedGraph(g, name, e, ids), g.Sinusoids(positions, m.config.Width))
}
