package models

import (
	"fmt"
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
)

// gpt2Family is GPT-2: learnt positions, LayerNorm before both parts of a block, and biases
// everywhere. Its maps are stored as [in out].
//
// Source: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.
var gpt2Family = Family{
	Type: "gpt2", Name: "GPT-2", New: newGPT2, Pruning: PrunedHeads,
	Harmless: []string{
		"attn_pdrop", "embd_pdrop", "n_ctx", "predict_special_tokens", "reorder_and_upcast_attn", "resid_pdrop",
		"summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
	},
}

func newGPT2(b *Builder) Network {
	s := b.Config
	oneWay(s)
	s.Only("n_special", 0)
	z := b.sizes("n_layer", "n_head", "n_embd", "n_positions", 0)
	if b.tokens > z.Positions {
		s.Fail("n_positions", "is %d, want at least the %d requested tokens", z.Positions, b.tokens)
	}
	z.Causal, z.Hidden = true, s.SizeOr("n_inner", 4*z.Width)
	act, eps := s.Activation("activation_function", "gelu_new"), s.Eps("layer_norm_epsilon", 1e-5)
	perRoot, perLayer := s.Bool("scale_attn_weights", true), s.Bool("scale_attn_by_inverse_layer_idx", false)

	base := b.Within("transformer")
	d := &stack{
		sizes:     z,
		positions: base.Embedding("wpe", z.Positions, z.Width),
		norm:      base.LayerNorm("ln_f", z.Width, eps),
	}
	d.words, d.logits = base.Words("wte", z.Vocabulary, z.Width)
	for i := range z.Layers {
		at, scale := base.At(fmt.Sprintf("h.%d", i)), 1.0
		if perRoot {
			scale /= math.Sqrt(float64(max(1, z.HeadSize)))
		}
		if perLayer {
			scale /= float64(i + 1)
		}
		d.blocks = append(d.blocks, &block{
			selfNorm: at.LayerNorm("ln_1", z.Width, eps),
			self: at.MultiHead(at.Kept(i, attn.MultiHeadConfig{
				Name: decoderName(i), Width: z.Width, Heads: z.Heads, Bias: attn.AllProjections, Score: score.DotScale(float32(scale)),
			}), Maps{QKV: "attn.c_attn", Out: "attn.c_proj", Transposed: true}),
			ffNorm: at.LayerNorm("ln_2", z.Width, eps),
			ff: &nn.FeedForward{
				In:         at.Transposed("mlp.c_fc", z.Width, z.Hidden),
				Activation: act,
				Out:        at.Transposed("mlp.c_proj", z.Hidden, z.Width),
			},
			options: attn.Options{Mask: mask.Causal()},
		})
		// The causal mask, and a number used for −Inf.
		base.Unread(at.Name("attn.bias"), at.Name("attn.masked_bias"))
	}
	d.makeLogits(b, "lm_head", s.Bool("tie_word_embeddings", true), base.Name("wte.weight"))
	return d
}
