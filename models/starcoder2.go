package models

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
)

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
	eps := s.Eps("norm_epsilon", 1e-5)
	m := newRotary(b, Sizes{KVHeads: 2})
	m.norm = func(b *Builder, name string, width int) nn.Norm { return b.LayerNorm(name, width, eps) }
	m.activation, m.tied = s.Activation("hidden_act", "gelu_pytorch_tanh"), s.Bool("tie_word_embeddings", true)
	m.feedForward = func(m *rotaryDecoder, b *Builder, _ int) Layer {
		return &nn.FeedForward{
			In: m.linear(b, "mlp.c_fc", m.Width, m.Hidden), Activation: m.activation, Out: m.linear(b, "mlp.c_proj", m.Hidden, m.Width),
		}
	}
	// Published files repeat these under other names, which transformers ignores.
	s.Only("activation_function", "gelu", "gelu_pytorch_tanh")
	s.Only("rms_norm_eps", eps)
	s.Only("layer_norm_epsilon", eps)
	s.Only("norm_type", "layer_norm")
	s.Only("mlp_type", "default")
	if s.Bool("use_bias", true) {
		m.linear, m.bias = (*Builder).Linear, attn.AllProjections
	}
	m.slide(s.SizeOr("sliding_window", 0), nil)
	return m.build(b.Within("model"), b)
}
