package models

// phi3Family is Phi-3, Phi-3.5 and Phi-4: Llama with fused maps, and rotary positions that may leave a part of each head
// as it is.
//
// Source: Abdin et al., "Phi-3 Technical Report: A Highly Capable Language Model Locally on Your Phone", 2024,
// https://arxiv.org/abs/2404.14219; Phi-4-Mini: https://arxiv.org/abs/2503.01743.
var phi3Family = Family{
	Type: "phi3", Name: "Phi-3", New: newPhi3, Pruning: HeadCounts,
	Harmless: []string{"embd_pdrop", "resid_pdrop"},
	Code:     []string{"Phi3ForCausalLM"}, // older than the class of this name in transformers
}

func newPhi3(b *Builder) Network {
	s := b.Config
	m := llamaLike(b, Sizes{})
	m.norm, m.maps, m.feedForward = s.rmsNorm(1e-5), Maps{QKV: "self_attn.qkv_proj", Out: m.maps.Out}, phi3FeedForward
	s.Ignore("original_max_position_embeddings") // of frequencies that are not scaled
	s.Only("full_attn_mod", 1)
	s.Only("interpolate_factor", 1)
	s.off("lm_head_bias", "mlp_bias")
	m.bias, m.pad = s.attentionBias(false), []int{32000}
	if m.bias != 0 {
		s.Fail("attention_bias", "is true, want false")
	}
	m.slide(s.SizeOr("sliding_window", 0), nil)
	r := newRotation(s, m.Sizes, 10000)
	r.partial, r.before = true, 4096
	m.rotate(r, b)
	return m.build(b.Within("model"), b)
}

// phi3FeedForward has the gates and what they gate in one tensor.
func phi3FeedForward(m *rotaryDecoder, b *Builder, _ int) Layer {
	both := b.matrices("mlp.gate_up_proj.weight", false, m.Width, m.Hidden, m.Hidden)
	return &GatedFeedForward{Gate: both[0], Up: both[1], Down: b.Matrix("mlp.down_proj", m.Hidden, m.Width), Activation: m.activation}
}
