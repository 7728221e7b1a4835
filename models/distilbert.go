package models

import (
	"fmt"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// distilbertFamily is DistilBERT: BERT without token types and pooler, with other tensor names.
//
// Source: Sanh et al., "DistilBERT, a distilled version of BERT", 2019,
// https://arxiv.org/abs/1910.01108.
var distilbertFamily = Family{Type: "distilbert", Name: "DistilBERT", New: newDistilBERT, Pruning: PrunedHeads, Harmless: []string{
	"pad_token_id", "qa_dropout", "seq_classif_dropout",
	"sinusoidal_pos_embds", // only initialises the position table, which the file contains
}}

func newDistilBERT(b *Builder) Network {
	const eps = 1e-12 // not a setting
	s, base := b.Config, b.Within("distilbert")
	bothWays(s)
	s.Only("tie_weights_", true)
	z := Sizes{
		Kind:       heads.Encoder,
		Layers:     b.Count("n_layers"),
		Heads:      s.Size("n_heads"),
		Width:      s.Size("dim"),
		Hidden:     s.Size("hidden_dim"),
		Vocabulary: s.Size("vocab_size"),
		Positions:  s.Size("max_position_embeddings"),
	}.oneToOne()
	act := s.Activation("activation", "gelu")

	in := base.At("embeddings")
	e := &encoder{
		sizes:     z,
		words:     in.Embedding("word_embeddings", z.Vocabulary, z.Width),
		positions: in.Embedding("position_embeddings", z.Positions, z.Width),
		place:     fromZero,
		norm:      in.LayerNorm("LayerNorm", z.Width, eps),
	}
	for i := range z.Layers {
		layer := base.At(fmt.Sprintf("transformer.layer.%d", i))
		e.blocks = append(e.blocks, &PostNorm{
			Self: layer.MultiHead(layer.Kept(i, attn.MultiHeadConfig{
				Name: encoderName(i), Width: z.Width, Heads: z.Heads, Bias: attn.AllProjections,
			}), Maps{Q: "attention.q_lin", K: "attention.k_lin", V: "attention.v_lin", Out: "attention.out_lin"}),
			SelfNorm: layer.LayerNorm("sa_layer_norm", z.Width, eps),
			FF: &nn.FeedForward{
				In:         layer.Linear("ffn.lin1", z.Width, z.Hidden),
				Activation: act,
				Out:        layer.Linear("ffn.lin2", z.Hidden, z.Width),
			},
			FFNorm: layer.LayerNorm("output_layer_norm", z.Width, eps),
		})
	}
	in.Unread(in.Name("position_ids"))

	tied := s.Bool("tie_word_embeddings", true)
	switch {
	case b.HasAny("vocab_transform."):
		e.head = &TaskHead{Task: MaskedWords, Logits: then(
			b.Linear("vocab_transform", z.Width, z.Width), act, b.LayerNorm("vocab_layer_norm", z.Width, eps),
			b.words("vocab_projector", "vocab_projector.bias", e.words, in.Name("word_embeddings.weight"), tied, z),
		)}
	case b.HasAny("pre_classifier."):
		labels := s.Labels()
		b.wantClass("SequenceClassification")
		e.head = &TaskHead{TextClasses, labels, then(
			Activation(first), b.Linear("pre_classifier", z.Width, z.Width), Activation(tensor.ReLU), b.Linear("classifier", z.Width, len(labels)),
		)}
	case b.HasAny("classifier."):
		labels := s.Labels()
		b.wantClass("TokenClassification")
		e.head = &TaskHead{TokenClasses, labels, b.Linear("classifier", z.Width, len(labels)).Forward}
	case b.HasAny("qa_outputs."):
		e.head = b.answers(z)
	}
	return e
}
