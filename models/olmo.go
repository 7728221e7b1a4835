package models

import (
	"cmp"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/linear"
)

// olmo2Family is OLMo 2: Llama with norms after both parts of a block instead of before, and norms of all queries and of
// all keys of a token.
//
// Source: OLMo Team, "2 OLMo 2 Furious", 2025, https://arxiv.org/abs/2501.00656.
var olmo2Family = Family{Type: "olmo2", Name: "OLMo 2", New: newOLMo2}

func newOLMo2(b *Builder) Network {
	m := olmo(b)
	return m.build(b.Within("model"), b)
}

// olmo3Family is OLMo 3: OLMo 2 with a sliding window in three of four blocks, whose rotary frequencies are not scaled.
//
// Source: OLMo Team, "Olmo 3", 2025, https://arxiv.org/abs/2512.13961.
var olmo3Family = Family{Type: "olmo3", Name: "OLMo 3", New: newOLMo3}

func newOLMo3(b *Builder) Network {
	s, m := b.Config, olmo(b)
	m.slide(s.SizeOr("sliding_window", 4096), slides(s, m.Layers, func(i int) bool { return (i+1)%4 != 0 }))
	const base = 500000
	if s.Only("rope_theta", base); !s.Has("rope_theta") && !s.Has("rope_parameters") {
		s.Fail("rope_theta", "is missing, want %d: versions of transformers differ in its default", base)
	}
	m.twoRopes(b, m.Sizes, base, base)
	return m.build(b.Within("model"), b)
}

// olmo returns the settings common to both.
func olmo(b *Builder) rotaryDecoder {
	m := llamaLike(b, Sizes{})
	m.norm, m.norms, m.headNorms = b.Config.rmsNorm(1e-5), normsAfter, headsAsWhole
	m.bias, m.pad = b.Config.attentionBias(false), []int{1}
	return m
}

// olmoHybridFamily is OLMo Hybrid: three of four layers are Gated DeltaNet, and the others are those of OLMo 3 with full
// attention, usually without positions. Norms are before the parts of the former and after the parts of the latter.
//
// Source: OlmoHybridModel of transformers.
var olmoHybridFamily = Family{Type: "olmo_hybrid", Name: "OLMo Hybrid", New: newOLMoHybrid, Harmless: []string{
	"linear_a_log_max", "linear_a_log_min", "linear_dt_init_floor", "linear_dt_max", "linear_dt_min",
}}

func newOLMoHybrid(b *Builder) Network {
	s, m := b.Config, olmo(b)
	m.norm, m.pad = s.rmsNorm(1e-6), []int{100277}
	rope := cmp.Or(s.Part("rope_parameters"), s)
	switch {
	case rope.null("rope_theta"):
		s.Ignore("rope_theta")
		rope.Ignore("rope_theta")
		rope.Only("rope_type", "default")
		m.Positions, m.position = cmp.Or(b.tokens, m.Positions), func(int) attn.Position { return nil }
	case !rope.Has("rope_theta") && !s.Has("rope_theta"):
		s.Fail("rope_theta", "is missing, want a number, or null for no positions: versions of transformers differ in its default")
	}
	linears := s.hybridTypes(m.Layers, func(i int) bool { return i%4 != 3 && (m.Layers > 3 || i != m.Layers-1) })
	first := func(b *Builder, name, other string) string { // transformers renames them
		if b.Has(other + ".weight") {
			return other
		}
		return name
	}
	m.normsOf = func(b *Builder, i int) blockNorms {
		after := first(b, "post_attention_layernorm", "feedforward_layer_norm")
		if linears(i) {
			return blockNorms{self: first(b, "input_layernorm", "attention_layer_norm"), ff: after}
		}
		return blockNorms{selfAfter: after, ffAfter: normsAfter.ffAfter}
	}
	keyHeads := s.SizeOr("linear_num_key_heads", m.Heads)
	keySize := s.stateSize("linear_key_head_dim", max(1, 3*m.Width/(4*keyHeads)))
	c := s.gatedDelta(linear.LayerConfig{Width: m.Width, Heads: m.Heads, KeyHeads: keyHeads, KeySize: keySize, ValueSize: 2 * keySize, Beta: 1})
	if s.Bool("linear_allow_neg_eigval", true) {
		c.Beta = 2
	}
	m.linearBlocks(linears, func(b *Builder, c linear.LayerConfig) *linear.Layer {
		c.Decay, c.OutNorm = b.stepDecay("a_proj", c), b.RMSNorm("o_norm", c.ValueSize, 1e-5)
		convs := []string{"q_conv1d", "k_conv1d", "v_conv1d"}
		if b.Has("conv1d.weight") {
			convs = []string{"conv1d"}
		}
		return b.LinearAttention(c, LinearMaps{
			QKV: []string{"q_proj", "k_proj", "v_proj"}, Conv: convs, Beta: "b_proj", Gate: "g_proj", Out: "o_proj",
		})
	}, c)
	return m.build(b.Within("model"), b)
}
