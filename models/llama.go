package models

// llamaFamily is Llama 2 and 3, and models of the same structure: SmolLM2, TinyLlama and many
// others.
//
// Source: Touvron et al., "Llama 2: Open Foundation and Fine-Tuned Chat Models", 2023,
// https://arxiv.org/abs/2307.09288.
var llamaFamily = Family{
	Type: "llama", Name: "Llama", New: newLlama, Pruning: HeadCounts,
	Harmless: []string{"is_llama_config", "pretraining_tp"}, // which once split matrix products
}

func newLlama(b *Builder) Network {
	s := b.Config
	s.Only("rope_interleaved", false)
	m := llamaLike(b, Sizes{})
	s.Only("max_sequence_length", m.Positions)
	m.linear = s.biased("mlp_bias", false)
	m.bias = s.attentionBias(false)
	return m.build(b.Within("model"), b)
}
