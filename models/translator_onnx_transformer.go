package models

import (
	"strconv"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/onnx"
)

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
