package models

import (
	"fmt"
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
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
		"force_bos_token_to_be_generated", "init_std", "pad_token_id",
	},
}

func newMarian(b *Builder) Network {
	s := b.Config
	s.off("normalize_before", "normalize_embedding", "add_final_layer_norm")
	s.off("add_bias_logits", "do_blenderbot_90_layernorm")
	s.Only("static_position_embeddings", true)
	s.Only("tie_word_embeddings", true)
	return twoTransformers(b, 58100, "gelu", false, marianPositions)
}

// twoTransformers builds Marian, BART and M2M100. start, activation and scaled are the defaults of settings. add sets the
// positions of a stack and its norms outside the blocks. Blocks normalise before their parts if there is a norm after the
// last one.
func twoTransformers(b *Builder, start int, activation string, scaled bool, add func(at *Builder, d *stack)) Network {
	s, base := b.Config, b.Within("model")
	twoStacks(s)
	act := s.Activation("activation_function", activation)
	sized := func(name string) *stack {
		z := b.sizes(name+"_layers", name+"_attention_heads", "d_model", "max_position_embeddings", 1024)
		z.Hidden = s.Size(name + "_ffn_dim")
		return &stack{sizes: z}
	}
	e := &encoderDecoder{source: sized("encoder"), target: sized("decoder")}
	from, to := e.source, e.target
	s.Only("num_hidden_layers", from.sizes.Layers) // the encoder's number, which transformers also reads from here
	to.sizes.Causal = true
	to.sizes.Vocabulary = s.SizeOr("decoder_vocab_size", from.sizes.Vocabulary)
	e.start = s.token("decoder_start_token_id", start, to.sizes.Vocabulary)

	in, out := base.Name("encoder.embed_tokens"), base.Name("decoder.embed_tokens")
	tied := s.Bool("tie_word_embeddings", true)
	switch shared := s.Bool("share_encoder_decoder_embeddings", true); {
	case !tied:
		from.words, _ = b.Words(in, from.sizes.Vocabulary, from.sizes.Width)
		to.words, _ = b.Words(out, to.sizes.Vocabulary, to.sizes.Width)
		to.logits = b.Matrix("lm_head", to.sizes.Width, to.sizes.Vocabulary)
		b.Unread(base.Name("shared.weight"))
	case shared:
		if to.sizes.Vocabulary != from.sizes.Vocabulary {
			s.Fail("decoder_vocab_size", "is %d, want vocab_size, %d, as share_encoder_decoder_embeddings is true", to.sizes.Vocabulary, from.sizes.Vocabulary)
		}
		from.words, to.logits = b.shared(from.sizes.Vocabulary, from.sizes.Width, base.Name("shared"), in, out, "lm_head")
		to.words = from.words
	default:
		from.words, _ = b.Words(in, from.sizes.Vocabulary, from.sizes.Width)
		to.words, to.logits = b.shared(to.sizes.Vocabulary, to.sizes.Width, out, "lm_head")
	}
	if s.Bool("scale_embedding", scaled) {
		from.scale = float32(math.Sqrt(float64(from.sizes.Width)))
		to.scale = from.scale
	}
	if b.Has("final_logits_bias") {
		to.shift = b.Fixed("final_logits_bias", 1, to.sizes.Vocabulary)
	}

	add(base.At("encoder"), from)
	add(base.At("decoder"), to)
	for i := range from.sizes.Layers {
		from.blocks = append(from.blocks, marianBlock(base.At(fmt.Sprintf("encoder.layers.%d", i)), encoderName(i), from, act))
	}
	for i := range to.sizes.Layers {
		at := base.At(fmt.Sprintf("decoder.layers.%d", i))
		block := marianBlock(at, decoderName(i), to, act)
		block.options.Mask = mask.Causal()
		block.cross, block.crossNorm = marianAttention(at, crossName(i), "encoder_attn", to.sizes)
		to.blocks = append(to.blocks, block)
	}
	return e
}

// marianEps is that of all norms. It is not a setting.
const marianEps = 1e-5

// marianBlock is a layer of a stack, without cross-attention.
func marianBlock(b *Builder, name string, d *stack, act Activation) *block {
	z := d.sizes
	p := &block{
		ff: &nn.FeedForward{
			In:         b.Linear("fc1", z.Width, z.Hidden),
			Activation: act,
			Out:        b.Linear("fc2", z.Hidden, z.Width),
		},
		ffNorm:   b.LayerNorm("final_layer_norm", z.Width, marianEps),
		postNorm: d.norm == nil,
	}
	p.self, p.selfNorm = marianAttention(b, name, "self_attn", z)
	return p
}

// marianAttention is an attention layer and its norm.
func marianAttention(b *Builder, name, at string, z Sizes) (*attn.MultiHead, *nn.LayerNorm) {
	return b.MultiHead(
		attn.MultiHeadConfig{Name: name, Width: z.Width, Heads: z.Heads, Bias: attn.AllProjections},
		Maps{Q: at + ".q_proj", K: at + ".k_proj", V: at + ".v_proj", Out: at + ".out_proj"},
	), b.LayerNorm(at+"_layer_norm", z.Width, marianEps)
}

// marianPositions sets the position vectors in the file, which are not trained; they are computed
// if the file has none.
func marianPositions(at *Builder, d *stack) {
	if name := "embed_positions.weight"; at.Has(name) {
		d.positions = &nn.Embedding{Weight: at.Fixed(name, d.sizes.Positions, d.sizes.Width)}
		return
	}
	width := d.sizes.Width
	d.positions = &sinusoids{width: width, rows: func(n int) *tensor.Tensor { return halves(n, width, (width+1)/2, float64(width)/2) }}
}

// halves are vectors of positions 0 to n−1: sines of the position times 10000^(−i/d), then the cosines for which there is
// room.
func halves(n, width, sines int, d float64) *tensor.Tensor {
	table := tensor.Zeros(n, width)
	for i := range sines {
		frequency := math.Pow(10000, -float64(i)/d)
		for p := range n {
			sin, cos := math.Sincos(float64(p) * frequency)
			row := table.Data()[p*width:][:width]
			if row[i] = float32(sin); sines+i < width {
				row[sines+i] = float32(cos)
			}
		}
	}
	return table
}
