package models

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// distilbertFamily is DistilBERT: BERT without token types and pooler, with other tensor names.
//
// Source: Sanh et al., "DistilBERT, a distilled version of BERT", 2019,
// https://arxiv.org/abs/1910.01108.
var distilbertFamily = Family{Type: "distilbert", Name: "DistilBERT", New: newDistilBERT, Pruning: PrunedHeads, graph: true, Harmless: []string{
	"pad_token_id", "qa_dropout", "seq_classif_dropout",
	"sinusoidal_pos_embds", // only initialises the position table, which the file contains
}}

var distilbertNames = encoderNames{
	norm:     "embeddings.LayerNorm",
	layers:   "transformer.layer",
	bias:     attn.AllProjections,
	maps:     Maps{Q: "attention.q_lin", K: "attention.k_lin", V: "attention.v_lin", Out: "attention.out_lin"},
	selfNorm: "sa_layer_norm", in: "ffn.lin1", out: "ffn.lin2", ffNorm: "output_layer_norm", pruned: true,
}

func newDistilBERT(b *Builder) Network {
	const eps = 1e-12 // not a setting
	s, base := b.Config, b.Within("distilbert")
	bothWays(s)
	s.Only("tie_weights_", true)
	z := b.sizes("n_layers", "n_heads", "dim", "max_position_embeddings", 0)
	z.Hidden = s.Size("hidden_dim")
	act := s.Activation("activation", "gelu")

	in := base.At("embeddings")
	e := distilbertNames.encoder(base, z, z.Positions, counting{}, eps, act, attn.Options{})

	tied := s.Bool("tie_word_embeddings", true)
	switch {
	case b.HasAny("vocab_transform."):
		e.head = &TaskHead{Task: MaskedWords, Layer: inTurn{
			b.Linear("vocab_transform", z.Width, z.Width), act, b.LayerNorm("vocab_layer_norm", z.Width, eps),
			b.words("vocab_projector", "vocab_projector.bias", e.words, in.Name("word_embeddings.weight"), tied, z),
		}}
	case b.HasAny("pre_classifier."):
		e.head = b.textHead(z, "pre_classifier", tensor.ReLU, "classifier")
	default:
		e.head = b.tokenHead(z)
	}
	return e
}
