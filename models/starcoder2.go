package models

import "github.com/attn-go/attn"

// starCoder2Family is StarCoder2: Llama with LayerNorm, biases, feed-forward networks without gates, and a sliding window
// in every block.
//
// Source: Lozhkov et al., "StarCoder 2 and The Stack v2: The Next Generation", 2024, https://arxiv.org/abs/2402.19173.
var starCoder2Family = Family{
	Type: "starcoder2", Name: "StarCoder2", New: newStarCoder2, Pruning: HeadCounts,
	Harmless: []string{"attention_softmax_in_fp32", "embedding_dropout", "residual_dropout", "scale_attention_softmax_in_fp32", "scale_attn_weights"},
}

func newStarCoder2(b *Builder) Network {
	s := b.Config
	m := rotaryDecoder{
		Sizes:      rotarySizes(b, Sizes{KVHeads: 2}),
		eps:        s.Eps("norm_epsilon", 1e-5),
		activation: s.Activation("hidden_act", "gelu_pytorch_tanh"),
		tied:       s.Bool("tie_word_embeddings", true),
		plain:      true,
		shifted:    true,
	}
	// Published files repeat these under other names, which transformers ignores.
	s.Only("activation_function", "gelu", "gelu_pytorch_tanh")
	s.Only("rms_norm_eps", m.eps)
	s.Only("norm_type", "layer_norm")
	s.Only("mlp_type", "default")
	if m.ffBias = s.Bool("use_bias", true); m.ffBias {
		m.bias = attn.AllProjections
	}
	m.window = s.SizeOr("sliding_window", 0)
	return m.build(b.Within("model"), b)
}
