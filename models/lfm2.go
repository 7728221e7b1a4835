package models

import (
	"slices"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// lfm2Family is LFM2: most blocks have a gated convolution of three tokens in place of attention.
//
// Source: Liquid AI, "LFM2 Technical Report", 2025, https://arxiv.org/abs/2511.23404; Lfm2ShortConv of transformers.
var lfm2Family = Family{
	Type: "lfm2", Name: "LFM2", New: newLFM2,
	Harmless: []string{"conv_dim", "conv_dim_out", "conv_use_xavier_init", "block_dim", "block_mlp_init_scale", "block_norm_eps",
		"block_out_init_scale", "block_use_swiglu", "block_use_xavier_init", "num_heads", "use_pos_enc"},
}

func newLFM2(b *Builder) Network {
	s := b.Config
	m := newRotary(b, Sizes{Hidden: 12288, Vocabulary: 65536, KVHeads: 8, Positions: 128000})
	m.activation, m.tied, m.pad = tensor.SiLU, s.Bool("tie_embedding", s.Bool("tie_word_embeddings", true)), []int{0}
	eps := s.Eps("norm_eps", 1e-5)
	m.norm = func(b *Builder, name string, width int) nn.Norm { return b.RMSNorm(name, width, eps) }
	m.norms = blockNorms{self: "operator_norm", ff: "ffn_norm"}
	m.headNorms, m.normNames = eachHead, [3]string{"self_attn.q_layernorm", "self_attn.k_layernorm", "embedding_norm"}
	m.maps.Out = "self_attn.out_proj"
	m.rope(b, 1e6)
	m.Hidden = s.SizeOr("block_ff_dim", m.Hidden)
	factor, of := s.Float("block_ffn_dim_multiplier", 1), s.SizeOr("block_multiple_of", 256)
	if s.Bool("block_auto_adjust_ff_dim", true) {
		m.Hidden = 2 * m.Hidden / 3
		if !s.null("block_ffn_dim_multiplier") {
			m.Hidden = (int(factor*float64(m.Hidden)) + of - 1) / of * of
		}
	}
	m.feedForward = func(m *rotaryDecoder, b *Builder, _ int) Layer {
		return newGated(b.At("feed_forward"), (*Builder).Matrix, "w1", "w3", "w2", m.Width, m.Hidden, m.activation)
	}
	const attends, convolves = "full_attention", "conv"
	usual := slices.Repeat([]string{attends}, m.Layers)
	if places := s.Floats("full_attn_idxs"); places != nil {
		for i := range usual {
			if !slices.Contains(places, float64(i)) {
				usual[i] = convolves
			}
		}
	}
	kinds, width, bias := s.layerTypes(m.Layers, usual, attends, convolves), s.SizeOr("conv_L_cache", 3), s.Bool("conv_bias", false)
	m.mixer = func(m *rotaryDecoder, b *Builder, i int) mixer {
		if kinds[i] == attends {
			return nil
		}
		return shortConv{
			in: b.joined("conv.in_proj", bias, m.Width, m.Width, m.Width, m.Width), conv: b.CausalConv("conv.conv", m.Width, width, bias),
			out: b.joined("conv.out_proj", bias, m.Width, m.Width)[0],
		}
	}
	return m.build(b.Within("model"), b)
}
