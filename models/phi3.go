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
	m.eps, m.fused = s.Eps("rms_norm_eps", 1e-5), true
	s.Ignore("original_max_position_embeddings") // of frequencies that are not scaled
	s.Only("full_attn_mod", 1)
	s.Only("interpolate_factor", 1)
	s.Only("lm_head_bias", false)
	s.Only("mlp_bias", false)
	m.bias = s.attentionBias(false)
	if m.bias != 0 {
		s.Fail("attention_bias", "is true, want false")
	}
	m.window = s.SizeOr("sliding_window", 0)
	return m.build(b.Within("model"), b)
}
