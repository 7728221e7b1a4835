package models

import (
	"slices"

	"github.com/attn-go/attn"
)

// graniteHybridFamily is Granite 4.0: most layers are Mamba-2, the others attention without positions; or attention alone
// with rotary positions. It has the multipliers of Granite.
//
// Source: GraniteMoeHybridModel of transformers.
var graniteHybridFamily = Family{
	Type: "granitemoehybrid", Name: "Granite 4", New: newGraniteHybrid,
	Harmless: []string{"output_router_logits", "router_aux_loss_coef", "num_experts_per_tok", "normalization_function", "init_method"},
}

func newGraniteHybrid(b *Builder) Network {
	s := b.Config
	m := llamaLike(b, Sizes{Hidden: 11008, Positions: 2048})
	m.granite(s)
	m.bias = s.attentionBias(false)
	if n := s.Int("num_local_experts", 8); n != 0 {
		s.Fail("num_local_experts", "is %d, want 0: a model without mixtures of experts", n)
	}
	m.Hidden = s.SizeOr("shared_intermediate_size", 1024)
	m.feedForward = func(m *rotaryDecoder, b *Builder, _ int) Layer {
		gates := b.matrices("shared_mlp.input_linear.weight", false, m.Width, m.Hidden, m.Hidden)
		return &GatedFeedForward{Gate: gates[0], Up: gates[1], Down: b.Matrix("shared_mlp.output_linear", m.Hidden, m.Width), Activation: m.activation}
	}
	m.rope(b, 10000)
	if s.Only("position_embedding_type", "rope", "nope"); s.Text("position_embedding_type", "nope") != "rope" {
		m.position = func(int) attn.Position { return nil }
	}
	const mambas, attends = "mamba", "attention"
	z := s.mambaOf(m.Width, s.Eps("rms_norm_eps", 1e-6))
	z.outBias = z.bias
	kinds := s.layerTypes(m.Layers, slices.Repeat([]string{mambas}, m.Layers), mambas, attends, "linear_attention", "full_attention")
	m.mixer = func(_ *rotaryDecoder, b *Builder, i int) mixer {
		if kinds[i] == attends || kinds[i] == "full_attention" {
			return nil
		}
		return newMamba(b.At("mamba"), decoderName(i), z, true)
	}
	return m.build(b.Within("model"), b)
}
