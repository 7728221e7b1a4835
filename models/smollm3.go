package models

import "github.com/attn-go/attn"

// smolLM3Family is SmolLM3: Llama without positions in every fourth block.
//
// Source: Bakouch et al., "SmolLM3: smol, multilingual, long-context reasoner", 2025,
// https://huggingface.co/blog/smollm3; Yang et al., "Rope to Nope and Back Again: A New Hybrid Attention Strategy", 2025,
// https://arxiv.org/abs/2501.18795.
var smolLM3Family = Family{
	Type: "smollm3", Name: "SmolLM3", New: newSmolLM3, Pruning: HeadCounts,
	Harmless: []string{"max_window_layers", "pretraining_tp"},
}

func newSmolLM3(b *Builder) Network {
	s := b.Config
	m := llamaLike(b, Sizes{KVHeads: 4})
	m.tied = s.Bool("tie_word_embeddings", true)
	m.linear = s.biased("mlp_bias", false)
	m.bias, m.pad = s.attentionBias(false), []int{128004}
	every, rotated := s.SizeOr("no_rope_layer_interval", 4), s.Floats("no_rope_layers")
	if rotated != nil && len(rotated) < m.Layers {
		s.Fail("no_rope_layers", "has %d numbers, want one for each of %d layers", len(rotated), m.Layers)
		rotated = nil
	}
	positions := func(i int) bool {
		if rotated != nil {
			return rotated[i] != 0
		}
		return (i+1)%every != 0
	}
	m.slideIfUsed(s, 0, func(i int) bool { return !positions(i) })
	m.rope(b, 2e6)
	rope := m.position
	m.position = func(i int) attn.Position {
		if positions(i) {
			return rope(i)
		}
		return nil
	}
	return m.build(b.Within("model"), b)
}
