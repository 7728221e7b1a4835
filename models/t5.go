package models

import (
	"fmt"
	"math"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// t5Family is T5, versions 1.0 and 1.1, including Flan-T5: RMSNorm before each part of a block,
// no biases in the maps, scores that are not divided by √E, and a relative position bias instead
// of positions, one table for all blocks of a stack.
//
// Source: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified
// Text-to-Text Transformer", 2020, https://arxiv.org/abs/1910.10683, and Shazeer, "GLU
// Variants Improve Transformer", 2020, https://arxiv.org/abs/2002.05202, for 1.1.
var t5Family = Family{Type: "t5", Name: "T5", New: newT5, Harmless: []string{"dropout_rate", "n_positions"}}

// mt5Family is mT5: T5 1.1 for many languages.
//
// Source: Xue et al., "mT5: A Massively Multilingual Pre-trained Text-to-Text Transformer", 2021,
// https://arxiv.org/abs/2010.11934.
var mt5Family = Family{
	Type: "mt5", Name: "mT5", New: newMT5, Harmless: []string{"dropout_rate", "n_positions", "pad_token_id"},
}

// umt5Family is UMT5: mT5 with a relative position bias in each block.
//
// Source: Chung et al., "UniMax: Fairer and More Effective Language Sampling for Large-Scale Multilingual Pretraining",
// 2023, https://arxiv.org/abs/2304.09151.
var umt5Family = Family{
	Type: "umt5", Name: "UMT5", New: newUMT5,
	Harmless: []string{"dropout_rate", "n_positions", "pad_token_id", "scalable_attention"},
}

// t5Form is what distinguishes the three.
type t5Form struct {
	own         bool   // whether the matrix of the logits is not that of the embeddings
	scaled      bool   // whether states are multiplied by 1/√D before it
	feedForward string // default of the setting
	biases      bool   // whether each block has a table of biases, or the first has one for all
	start       int    // default of decoder_start_token_id
}

// Files from transformers 5 contain scale_decoder_outputs, and always declare the matrices tied, also where the file
// has both. Those of mT5 have no such setting: transformers 5 does not scale the states of tied matrices, which 4 does.

func newT5(b *Builder) Network {
	f := t5Form{feedForward: "relu", start: b.Config.Int("pad_token_id", 0)}
	return f.scale(b).network(b)
}

func newMT5(b *Builder) Network {
	s, f := b.Config, t5Form{feedForward: "gated-gelu"}
	s.off("scale_decoder_outputs")
	tied := s.Bool("tie_word_embeddings", true)
	if tied && !encoderAlone(b) && strings.HasPrefix(s.Text("transformers_version", ""), "4.") && s.Has("tie_word_embeddings") {
		s.Fail("tie_word_embeddings", "is true, want false in a file from transformers 4, "+
			"which scales tied logits and 5 does not")
	}
	f.own = !tied || b.Has("lm_head.weight")
	return f.network(b)
}

func newUMT5(b *Builder) Network {
	return t5Form{feedForward: "gated-gelu", biases: true}.scale(b).network(b)
}

// scale reads how the logits are made. Those of T5 1.1 are not scaled.
func (f t5Form) scale(b *Builder) t5Form {
	const key = "scale_decoder_outputs"
	tied, newer := b.Config.Bool("tie_word_embeddings", true), b.Config.Has(key)
	if f.scaled = b.Config.Bool(key, true); !newer {
		f.scaled = tied
	}
	f.own = !tied || newer && b.Has("lm_head.weight")
	return f
}

// encoderAlone reports whether a model is the encoder alone: in a pipeline, or a file of T5EncoderModel.
func encoderAlone(b *Builder) bool {
	class := append(b.Config.Texts("architectures"), "")[0]
	return b.encoder || strings.HasSuffix(class, "EncoderModel") && !b.HasAny("decoder.")
}

func (f t5Form) network(b *Builder) Network {
	s, alone := b.Config, encoderAlone(b)
	if alone {
		s.Only("is_encoder_decoder", true, false)
		s.off("is_decoder")
		noCross(s)
	} else {
		twoStacks(s)
	}
	if !b.HasAny("decoder.") && !alone {
		b.Fail("the file has no tensors of a decoder, want an encoder and a decoder: T5ForConditionalGeneration")
	}
	encoder := Sizes{
		Layers:     b.Count("num_layers"),
		Heads:      s.Size("num_heads"),
		HeadSize:   s.Size("d_kv"),
		Width:      s.Size("d_model"),
		Hidden:     s.Size("d_ff"),
		Vocabulary: s.Size("vocab_size"),
	}
	encoder.KVHeads = encoder.Heads
	if alone {
		s.Ignore("num_decoder_layers", "decoder_start_token_id")
		b.Unread("decoder.*", "lm_head.weight")
		table, _ := b.shared(encoder.Vocabulary, encoder.Width, "shared", "encoder.embed_tokens")
		return f.stack(b.At("encoder"), encoder, table)
	}
	decoders := encoder
	if decoders.Causal = true; s.Has("num_decoder_layers") {
		decoders.Layers = b.Count("num_decoder_layers")
	}
	e := &encoderDecoder{start: s.token("decoder_start_token_id", f.start, encoder.Vocabulary)}

	same := []string{"shared", "encoder.embed_tokens", "decoder.embed_tokens"}
	if !f.own {
		same = append(same, "lm_head")
	}
	table, logits := b.shared(encoder.Vocabulary, encoder.Width, same...)
	if f.own {
		logits = b.Matrix("lm_head", encoder.Width, encoder.Vocabulary)
	}
	e.source, e.target = f.stack(b.At("encoder"), encoder, table), f.stack(b.At("decoder"), decoders, table)
	if e.target.logits = logits; f.scaled {
		e.target.shrink = float32(1 / math.Sqrt(float64(encoder.Width)))
	}
	// Files of version 1.0 have an unused table.
	b.Unread("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight")
	return e
}

// stack is the encoder or the decoder.
func (f t5Form) stack(b *Builder, z Sizes, table words) *stack {
	s, name, causal := b.Config, encoderName, z.Causal
	if causal {
		name = decoderName
	}
	eps := s.Eps("layer_norm_epsilon", 1e-6)
	d := &stack{sizes: z, words: table, norm: b.RMSNorm("final_layer_norm", z.Width, eps)}
	const key = "relative_attention_num_buckets"
	buckets, c := s.SizeOr(key, 32), position.T5Config{Causal: causal, MaxDistance: s.SizeOr("relative_attention_max_distance", 128)}
	switch n := c.Distances(buckets); n {
	case 0:
		s.Fail(key, "is %d, want at least 4", buckets)
	case math.MaxInt:
	default: // transformers fails at larger distances
		d.sizes.Positions = n
	}
	attention := func(b *Builder, name, at string) *attn.MultiHead {
		return b.MultiHead(
			attn.MultiHeadConfig{Name: name, Width: z.Width, Heads: z.Heads, HeadSize: z.HeadSize, Score: score.DotScale(1)},
			Maps{Q: at + ".q", K: at + ".k", V: at + ".v", Out: at + ".o"},
		)
	}
	var bias attn.ScoreChange
	for i := range z.Layers {
		at := b.At(fmt.Sprintf("block.%d", i))
		if i == 0 || f.biases {
			bias = position.T5Bias(at.Tensor("layer.0.SelfAttention.relative_attention_bias.weight", buckets, z.Heads), c)
		}
		p := &block{
			selfNorm: at.RMSNorm("layer.0.layer_norm", z.Width, eps),
			self:     attention(at, name(i), "layer.0.SelfAttention"),
			options:  attn.Options{Changes: []attn.ScoreChange{bias}},
		}
		last := "layer.1"
		if causal {
			p.options.Mask = mask.Causal()
			p.crossNorm, p.cross = at.RMSNorm("layer.1.layer_norm", z.Width, eps), attention(at, crossName(i), "layer.1.EncDecAttention")
			last = "layer.2"
		}
		p.ffNorm, p.ff = at.RMSNorm(last+".layer_norm", z.Width, eps), t5FeedForward(at.At(last+".DenseReluDense"), z, f.feedForward)
		d.blocks = append(d.blocks, p)
	}
	return d
}

// t5FeedForward is wo·act(wi·x), or wo·(act(wi_0·x)·wi_1·x) if the setting begins with
// "gated-". usual is the default of the setting.
func t5FeedForward(b *Builder, z Sizes, usual string) Layer {
	s := b.Config
	kind := s.Text("feed_forward_proj", usual)
	name, gated := strings.CutPrefix(kind, "gated-")
	if kind == "gated-gelu" {
		name = "gelu_new"
	}
	act := activations[name]
	if act == nil {
		s.Fail("feed_forward_proj", "is %s, want the name of an activation, with or without gated- in front of it",
			quote.Text(kind))
		act = tensor.ReLU
	}
	s.Only("dense_act_fn", name) // both settings follow from the name
	s.Bool("is_gated_act", gated)
	s.Only("is_gated_act", gated)
	if gated {
		return newGated(b, (*Builder).Matrix, "wi_0", "wi_1", "wo", z.Width, z.Hidden, act)
	}
	return &nn.FeedForward{In: b.Matrix("wi", z.Width, z.Hidden), Activation: act, Out: b.Matrix("wo", z.Hidden, z.Width)}
}
