package models

import (
	"fmt"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// bertFamily is BERT, including MiniLM and most encoders of sentence-transformers.
//
// Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
// Understanding", 2019, https://arxiv.org/abs/1810.04805.
var bertFamily = Family{Type: "bert", Name: "BERT", New: newBERT, Pruning: PrunedHeads, Harmless: []string{"pad_token_id"}}

func newBERT(b *Builder) Network {
	s, base := b.Config, b.Within("bert")
	bothWays(s)
	z := bertSizes(b)
	z.Types = s.SizeOr("type_vocab_size", 2)
	eps, act := s.Eps("layer_norm_eps", 1e-12), s.Activation("hidden_act", "gelu")

	in := base.At("embeddings")
	e := &encoder{
		sizes:     z,
		words:     in.Embedding("word_embeddings", z.Vocabulary, z.Width),
		positions: in.Embedding("position_embeddings", z.Positions, z.Width),
		place:     fromZero,
		types:     in.Embedding("token_type_embeddings", z.Types, z.Width),
		norm:      in.LayerNorm("LayerNorm", z.Width, eps),
	}
	for i := range z.Layers {
		e.blocks = append(e.blocks, bertBlock(base.At(fmt.Sprintf("encoder.layer.%d", i)), i, z, eps, act))
	}
	in.Unread(in.Name("position_ids"))

	tied := s.Bool("tie_word_embeddings", true)
	pool := bertPooler(base, z) // of the first token; text classifiers need it
	if b.HasAny("cls.seq_relationship.") {
		e.head = b.needs(pool, &TaskHead{NextSentence, []string{"follows", "random"}, then(pool, b.Linear("cls.seq_relationship", z.Width, 2))})
	}
	switch {
	case b.HasAny("cls.predictions."):
		cls := b.At("cls.predictions")
		e.head = &TaskHead{Task: MaskedWords, Logits: then(
			cls.Linear("transform.dense", z.Width, z.Width), act, cls.LayerNorm("transform.LayerNorm", z.Width, eps),
			cls.words("decoder", "bias", e.words, in.Name("word_embeddings.weight"), tied, z),
		)}
	case b.HasAny("classifier."):
		labels := s.Labels()
		out := b.Linear("classifier", z.Width, len(labels))
		switch b.wantClass("SequenceClassification", "TokenClassification") {
		case "SequenceClassification":
			e.head = b.needs(pool, &TaskHead{TextClasses, labels, then(pool, out)})
		case "TokenClassification":
			e.head = &TaskHead{TokenClasses, labels, out.Forward}
		}
	case b.HasAny("qa_outputs."):
		e.head = b.answers(z)
	}
	return e
}

// bertSizes reads the sizes from BERT's names of settings.
func bertSizes(b *Builder) Sizes {
	s := b.Config
	return Sizes{
		Kind:       heads.Encoder,
		Layers:     b.Count("num_hidden_layers"),
		Heads:      s.Size("num_attention_heads"),
		Width:      s.Size("hidden_size"),
		Hidden:     s.Size("intermediate_size"),
		Vocabulary: s.Size("vocab_size"),
		Positions:  s.Size("max_position_embeddings"),
	}.oneToOne()
}

// oneToOne sets KVHeads and HeadSize for layers whose heads do not share keys and values.
func (z Sizes) oneToOne() Sizes {
	z.KVHeads, z.HeadSize = z.Heads, z.Width/z.Heads
	return z
}

// bertBlock is a layer of BERT.
func bertBlock(b *Builder, i int, z Sizes, eps float32, act Activation) *PostNorm {
	return &PostNorm{
		Self: b.MultiHead(b.Kept(i, attn.MultiHeadConfig{
			Name: encoderName(i), Width: z.Width, Heads: z.Heads, Bias: attn.AllProjections,
		}), Maps{Q: "attention.self.query", K: "attention.self.key", V: "attention.self.value", Out: "attention.output.dense"}),
		SelfNorm: b.LayerNorm("attention.output.LayerNorm", z.Width, eps),
		FF: &nn.FeedForward{
			In:         b.Linear("intermediate.dense", z.Width, z.Hidden),
			Activation: act,
			Out:        b.Linear("output.dense", z.Hidden, z.Width),
		},
		FFNorm: b.LayerNorm("output.LayerNorm", z.Width, eps),
	}
}

// bertPooler is tanh(W·x + b) of the hidden state of the first token, nil if the file has no
// pooler.
func bertPooler(b *Builder, z Sizes) Layer {
	if !b.HasAny("pooler.") {
		return nil
	}
	return inTurn{Activation(first), b.Linear("pooler.dense", z.Width, z.Width), Activation(tensor.Tanh)}
}
