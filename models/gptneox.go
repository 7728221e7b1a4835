package models

import (
	"fmt"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
)

// gptNeoXFamily is GPT-NeoX, including Pythia: both parts of a block read its input, and a part of each head is rotated.
//
// Source: Black et al., "GPT-NeoX-20B: An Open-Source Autoregressive Language Model", 2022,
// https://arxiv.org/abs/2204.06745.
var gptNeoXFamily = Family{Type: "gpt_neox", Name: "GPT-NeoX", New: newGPTNeoX, Harmless: []string{"hidden_dropout"}}

func newGPTNeoX(b *Builder) Network {
	s := b.Config
	oneWay(s)
	z := b.sizes("num_hidden_layers", "num_attention_heads", "hidden_size", "max_position_embeddings", 2048)
	z.Causal, z.Hidden = true, s.Size("intermediate_size")
	z.HeadSize = s.rotated("hidden_size", z.HeadSize)
	act, eps := s.Activation("hidden_act", "gelu"), s.Eps("layer_norm_eps", 1e-5)
	r := rotation{all: s, scaling: ropeScaling(s), theta: s.base("rotary_emb_base", 10000), sizes: z, partial: true, usual: "rotary_pct"}
	s.Only("rope_theta", r.theta) // saved beside it by transformers 4.48, not read
	position, tokens := r.position(b.tokens)
	z.Positions = tokens
	parallel := s.Bool("use_parallel_residual", true)
	bias := s.attentionBias(true)

	base := b.Within("gpt_neox")
	d := &stack{sizes: z, norm: base.LayerNorm("final_layer_norm", z.Width, eps)}
	d.words, d.logits = base.Words("embed_in", z.Vocabulary, z.Width)
	for i := range z.Layers {
		at := base.At(fmt.Sprintf("layers.%d", i))
		d.blocks = append(d.blocks, &block{
			selfNorm: at.LayerNorm("input_layernorm", z.Width, eps),
			self: at.MultiHead(attn.MultiHeadConfig{
				Name: decoderName(i), Width: z.Width, Heads: z.Heads, Bias: bias, Position: position,
			}, Maps{QKV: "attention.query_key_value", ByHead: true, Out: "attention.dense"}),
			ffNorm: at.LayerNorm("post_attention_layernorm", z.Width, eps),
			ff: &nn.FeedForward{
				In: at.Linear("mlp.dense_h_to_4h", z.Width, z.Hidden), Activation: act, Out: at.Linear("mlp.dense_4h_to_h", z.Hidden, z.Width),
			},
			parallel: parallel,
			options:  attn.Options{Mask: mask.Causal()},
		})
		// The causal mask, a number used for −Inf, and the frequencies.
		base.Unread(at.Name("attention.bias"), at.Name("attention.masked_bias"), at.Name("attention.rotary_emb.inv_freq"))
	}
	logits := "embed_out"
	if b.Has("lm_head.weight") { // as transformers 5 calls it
		logits = "lm_head"
	}
	d.makeLogits(b, logits, s.Bool("tie_word_embeddings", false), base.Name("embed_in.weight"))
	return d
}
