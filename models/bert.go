package models

import (
	"fmt"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// bertFamily is BERT, and with it MiniLM and most encoders of sentence-transformers.
//
// Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
// Understanding", 2019, https://arxiv.org/abs/1810.04805.
var bertFamily = Family{Type: "bert", Name: "BERT", New: newBERT}

func newBERT(b *Builder) Network {
	s := b.Config
	bothWays(s)
	sizes := Sizes{
		Kind:       heads.Encoder,
		Layers:     b.Count("num_hidden_layers"),
		Heads:      s.Size("num_attention_heads"),
		Width:      s.Size("hidden_size"),
		Hidden:     s.Size("intermediate_size"),
		Vocabulary: s.Size("vocab_size"),
		Positions:  s.Size("max_position_embeddings"),
		Types:      s.SizeOr("type_vocab_size", 2),
	}
	s.Ignore("pad_token_id") // which only training needs
	sizes.KVHeads, sizes.HeadSize = sizes.Heads, sizes.Width/sizes.Heads
	eps, act := s.Eps("layer_norm_eps", 1e-12), s.Activation("hidden_act", "gelu")

	base := b.Within("bert")
	base.Unread(base.Name("embeddings.position_ids"))
	embeddings := base.At("embeddings")
	e := &encoder{
		sizes:     sizes,
		words:     embeddings.Embedding("word_embeddings", sizes.Vocabulary, sizes.Width),
		positions: embeddings.Embedding("position_embeddings", sizes.Positions, sizes.Width),
		place:     fromZero,
		types:     embeddings.Embedding("token_type_embeddings", sizes.Types, sizes.Width),
		norm:      embeddings.LayerNorm("LayerNorm", sizes.Width, eps),
	}
	for i := range sizes.Layers {
		e.blocks = append(e.blocks, bertBlock(base.At(fmt.Sprintf("encoder.layer.%d", i)), i, sizes, eps, act))
	}
	e.head = bertHead(b, base, e, eps, act)
	return e
}

// bertBlock is a layer of BERT.
func bertBlock(b *Builder, i int, z Sizes, eps float32, act Activation) *PostNorm {
	return &PostNorm{
		Self: b.MultiHead(attn.MultiHeadConfig{
			Name: fmt.Sprintf("encoder.%d.self", i), Width: z.Width, Heads: z.Heads, Bias: attn.AllProjections,
		}, Maps{Q: "attention.self.query", K: "attention.self.key", V: "attention.self.value", Out: "attention.output.dense"}),
		SelfNorm: b.LayerNorm("attention.output.LayerNorm", z.Width, eps),
		FF: &nn.FeedForward{
			In:         b.Linear("intermediate.dense", z.Width, z.Hidden),
			Activation: act,
			Out:        b.Linear("output.dense", z.Hidden, z.Width),
		},
		FFNorm: b.LayerNorm("output.LayerNorm", z.Width, eps),
	}
}

// bertHead is the head whose tensors are in the file. The pooler, a map of the first token,
// serves classifiers of texts.
func bertHead(b, base *Builder, e *encoder, eps float32, act Activation) *Head {
	s, z := b.Config, e.sizes
	tied := s.Bool("tie_word_embeddings", true)
	var pooled func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor
	if base.Has("pooler.dense.weight") {
		pooled = then(first, base.Linear("pooler.dense", z.Width, z.Width).Forward, tensor.Tanh)
	}
	var head *Head
	needPooler := func(h *Head) *Head {
		if h != nil && (h.Task == TextClasses || h.Task == NextSentence) && pooled == nil {
			b.Fail("a head for %s needs pooler.dense, which is missing", h.Task)
		}
		return h
	}
	if b.Has("cls.seq_relationship.weight") {
		follows := b.At("cls").Linear("seq_relationship", z.Width, 2)
		head = &Head{NextSentence, []string{"follows", "random"}, then(pooled, follows.Forward)}
	}
	switch {
	case b.HasAny("cls.predictions."):
		cls := b.At("cls.predictions")
		dense := cls.Linear("transform.dense", z.Width, z.Width)
		norm := cls.LayerNorm("transform.LayerNorm", z.Width, eps)
		head = &Head{Task: MaskedWords, Logits: then(dense.Forward, act, norm.Forward, cls.words(e.words, base.Name("embeddings.word_embeddings.weight"), "decoder", "bias", tied, z).Forward)}
	case b.HasAny("classifier."):
		out := b.Linear("classifier", z.Width, len(s.Labels()))
		head = b.classes(then(pooled, out.Forward), out.Forward)
	case b.HasAny("qa_outputs."):
		head = &Head{AnswerSpan, []string{"start", "end"}, b.Linear("qa_outputs", z.Width, 2).Forward}
	}
	return needPooler(head)
}
