package models

import (
	"strconv"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/onnx"
)

// graph returns the graphs for any batch size. The state is the keys and values of each layer that has heads.
func (m transformer) graph() graphs {
	g := graphs{
		encode: m.encodeGraph, read: m.readGraph, steps: onnx.Named("target"), target: m.target.words.(*nn.Embedding),
	}
	for _, b := range m.target.blocks {
		g.encoded = append(g.encoded, kvPorts(b.cross, "encoded")...)
		g.own = append(g.own, kvPorts(b.self, "read")...)
	}
	g.starts = len(g.encoded)
	return g
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

func (m transformer) encodeGraph(g *onnx.Graph, source, lengths onnx.Value) []onnx.Value {
	n := g.Length(source, 1)
	x := positioned(g, "source", m.source, source, g.Count(g.Int(0), n))
	visible := onnx.Attention{}.And(g, g.ValidLens(lengths, n))
	for i, b := range m.source.blocks {
		g := g.In("encoder." + strconv.Itoa(i))
		h := norm(g, "norm1", b.selfNorm, x)
		x = g.Add(x, g.In("self").MultiHead(b.self, h, h, h, visible))
		x = g.Add(x, g.In("ff").FeedForward(b.ff.(*nn.FeedForward), norm(g, "norm2", b.ffNorm, x)))
	}
	x = norm(g, "encoder.norm", m.source.norm, x)
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
	x := positioned(g, "target", m.target, target, g.Count(before, read))
	earlier := onnx.Attention{}.And(g, g.Causal(l, read))
	var next []onnx.Value
	for i, b := range m.target.blocks {
		g := g.In("decoder." + strconv.Itoa(i))
		y, kv := g.In("self").Extend(b.self, norm(g, "norm1", b.selfNorm, x), takeKV(b.self, &own), earlier)
		next = append(next, kvValues(kv)...)
		x = g.Add(x, y)
		x = g.Add(x, g.In("cross").Query(b.cross, norm(g, "norm2", b.crossNorm, x), takeKV(b.cross, &encoded), visible))
		x = g.Add(x, g.In("ff").FeedForward(b.ff.(*nn.FeedForward), norm(g, "norm3", b.ffNorm, x)))
	}
	return norm(g, "decoder.norm", m.target.norm, x), next
}

// norm adds a norm of the network to a graph.
func norm(g *onnx.Graph, name string, l Layer, x onnx.Value) onnx.Value {
	return g.In(name).LayerNorm(l.(*nn.LayerNorm), x)
}

// positioned embeds tokens at the given positions.
func positioned(g *onnx.Graph, name string, d *stack, ids, positions onnx.Value) onnx.Value {
	return g.Add(embedGraph(g, name, d.words.(*nn.Embedding), ids), g.Sinusoids(positions, d.sizes.Width))
}
