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
	Harmless: []string{"output_router_logits", "router_aux_loss_coef", "normalization_function", "init_method"},
}

func newGraniteHybrid(b *Builder) Network {
	s := b.Config
	m := llamaLike(b, Sizes{Hidden: 11008, Positions: 2048})
	m.granite(s)
	m.bias = s.attentionBias(false)
	hidden, n, top := m.Hidden, s.Int("num_local_experts", 8), s.Int("num_experts_per_tok", 2)
	if n < 0 || n > 0 && (top < 1 || top > n) {
		s.Fail("num_local_experts", "is %d with a num_experts_per_tok of %d, want 0, or experts of which a token has 1 or more", n, top)
	}
	m.Hidden = s.SizeOr("shared_intermediate_size", 1024)
	m.feedForward = func(m *rotaryDecoder, b *Builder, _ int) Layer {
		gates := b.matrices("shared_mlp.input_linear.weight", false, m.Width, m.Hidden, m.Hidden)
		shared := &GatedFeedForward{Gate: gates[0], Up: gates[1], Down: b.Matrix("shared_mlp.output_linear", m.Hidden, m.Width), Activation: m.activation}
		if n <= 0 {
			return shared
		}
		b = b.At("block_sparse_moe")
		x := newMixture(b, "router.layer", m.Width, n, top, true, m.stacked(b, "input_linear.weight", "output_linear.weight", n, hidden))
		x.shared = shared
		return x
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
