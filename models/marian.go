package models

import (
	"fmt"
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
)

// marianFamily is Marian, including the translators of Opus-MT: the transformer of 2017, with
// norms after each residual sum, biases everywhere and sinusoidal positions with the sines in the
// first half of a vector and the cosines in the second.
//
// Source: Junczys-Dowmunt et al., "Marian: Fast Neural Machine Translation in C++", 2018,
// https://arxiv.org/abs/1804.00344.
var marianFamily = Family{
	Type: "marian", Name: "Marian", New: newMarian,
	Harmless: []string{
		"activation_dropout", "classif_dropout", "decoder_layerdrop", "encoder_layerdrop", "extra_pos_embeddings",
		"force_bos_token_to_be_generated", "init_std",
	},
}

func newMarian(b *Builder) Network {
	s := b.Config
	for _, key := range []string{"normalize_before", "normalize_embedding", "add_final_layer_norm", "add_bias_logits"} {
		s.Only(key, false)
	}
	s.Only("static_position_embeddings", true)
	return twoTransformers(b, s.Int("pad_token_id", 58100), false)
}

// twoTransformers builds Marian and BART, which differ in their embeddings.
func twoTransformers(b *Builder, start int, learnt bool) Network {
	const eps = 1e-5 // not a setting
	s, base := b.Config, b.Within("model")
	twoStacks(s)
	s.Only("tie_word_embeddings", true)
	act := s.Activation("activation_function", "gelu")
	sizes := func(stack string) Sizes {
		return s.oneToOne(stack+"_attention_heads", "d_model", Sizes{
			Layers:     b.Count(stack + "_layers"),
			Heads:      s.Size(stack + "_attention_heads"),
			Width:      s.Size("d_model"),
			Hidden:     s.Size(stack + "_ffn_dim"),
			Vocabulary: s.Size("vocab_size"),
			Positions:  s.SizeOr("max_position_embeddings", 1024),
		})
	}
	e := &encoderDecoder{source: &stack{sizes: sizes("encoder")}, target: &stack{sizes: sizes("decoder")}}
	from, to := e.source, e.target
	s.Only("num_hidden_layers", from.sizes.Layers) // the encoder's number, which transformers also reads from here
	from.sizes.Kind, to.sizes.Kind = heads.Encoder, heads.Decoder
	to.sizes.Vocabulary = s.SizeOr("decoder_vocab_size", from.sizes.Vocabulary)
	e.start = startToken(s, start, to.sizes.Vocabulary)

	in, out := base.Name("encoder.embed_tokens"), base.Name("decoder.embed_tokens")
	if s.Bool("share_encoder_decoder_embeddings", true) {
		if to.sizes.Vocabulary != from.sizes.Vocabulary {
			s.Fail("decoder_vocab_size", "is %d, want vocab_size, %d, as share_encoder_decoder_embeddings is true", to.sizes.Vocabulary, from.sizes.Vocabulary)
		}
		from.words, to.logits = b.shared(from.sizes.Vocabulary, from.sizes.Width, base.Name("shared"), in, out, "lm_head")
		to.words = from.words
	} else {
		from.words, _ = b.Words(in, from.sizes.Vocabulary, from.sizes.Width)
		to.words, to.logits = b.shared(to.sizes.Vocabulary, to.sizes.Width, out, "lm_head")
	}
	if s.Bool("scale_embedding", false) {
		from.scale = float32(math.Sqrt(float64(from.sizes.Width)))
		to.scale = from.scale
	}
	if b.Has("final_logits_bias") {
		to.shift = b.Fixed("final_logits_bias", 1, to.sizes.Vocabulary)
	}

	for i, d := range []*stack{from, to} {
		at := base.At([]string{"encoder", "decoder"}[i])
		if learnt {
			d.positions = bartPositions{at.Embedding("embed_positions", bartOffset+d.sizes.Positions, d.sizes.Width)}
			d.wordsNorm = at.LayerNorm("layernorm_embedding", d.sizes.Width, eps)
		} else {
			d.positions = marianPositions(at, d.sizes)
		}
	}
	for i := range from.sizes.Layers {
		from.blocks = append(from.blocks, marianBlock(base.At(fmt.Sprintf("encoder.layers.%d", i)), encoderName(i), from.sizes, act, eps))
	}
	for i := range to.sizes.Layers {
		at := base.At(fmt.Sprintf("decoder.layers.%d", i))
		block := marianBlock(at, decoderName(i), to.sizes, act, eps)
		block.options.Mask = mask.Causal()
		block.cross, block.crossNorm = marianAttention(at, crossName(i), "encoder_attn", to.sizes, eps)
		to.blocks = append(to.blocks, block)
	}
	return e
}

// marianBlock is a layer of either stack, without cross-attention.
func marianBlock(b *Builder, name string, z Sizes, act Activation, eps float32) *block {
	p := &block{
		ff: &nn.FeedForward{
			In:         b.Linear("fc1", z.Width, z.Hidden),
			Activation: act,
			Out:        b.Linear("fc2", z.Hidden, z.Width),
		},
		ffNorm:   b.LayerNorm("final_layer_norm", z.Width, eps),
		postNorm: true,
	}
	p.self, p.selfNorm = marianAttention(b, name, "self_attn", z, eps)
	return p
}

// marianAttention is an attention layer and the norm after it.
func marianAttention(b *Builder, name, at string, z Sizes, eps float32) (*attn.MultiHead, *nn.LayerNorm) {
	return b.MultiHead(
		attn.MultiHeadConfig{Name: name, Width: z.Width, Heads: z.Heads, Bias: attn.AllProjections},
		Maps{Q: at + ".q_proj", K: at + ".k_proj", V: at + ".v_proj", Out: at + ".out_proj"},
	), b.LayerNorm(at+"_layer_norm", z.Width, eps)
}

// marianPositions are the position vectors in the file, which are not trained; they are computed
// if the file has none.
func marianPositions(b *Builder, z Sizes) words {
	if name := "embed_positions.weight"; b.Has(name) {
		return &nn.Embedding{Weight: b.Fixed(name, z.Positions, z.Width)}
	}
	return &sinusoids{width: z.Width, halves: true}
}
