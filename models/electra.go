package models

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// electraFamily is ELECTRA: BERT whose embeddings may be smaller than its states. The discriminator, which says which
// tokens were replaced, is what other tasks begin from.
//
// Source: Clark et al., "ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators", 2020,
// https://arxiv.org/abs/2003.10555.
var electraFamily = Family{
	Type: "electra", Name: "ELECTRA", New: newELECTRA, graph: true,
	Harmless: []string{"pad_token_id", "summary_activation", "summary_last_dropout", "summary_type", "summary_use_proj"},
}

func newELECTRA(b *Builder) Network {
	s, base := b.Config, b.Within("electra")
	bothWays(s)
	z := bertSizes(b)
	z.Types = s.SizeOr("type_vocab_size", 2)
	eps, act, size := s.Eps("layer_norm_eps", 1e-12), s.Activation("hidden_act", "gelu"), s.SizeOr("embedding_size", 128)
	tied := s.Bool("tie_word_embeddings", true)

	names := bertNames
	names.embedding, names.pruned = size, false
	e := names.encoder(base, z, z.Positions, counting{}, eps, act, attn.Options{})
	if size != z.Width {
		e.wordsNorm = inTurn{e.wordsNorm, base.Linear("embeddings_project", size, z.Width)}
	}
	switch {
	case b.HasAny("discriminator_predictions."):
		at := b.At("discriminator_predictions")
		e.head = &TaskHead{Task: TokenClasses, Labels: []string{"replaced"}, Layer: inTurn{
			at.Linear("dense", z.Width, z.Width), act, at.Linear("dense_prediction", z.Width, 1),
		}}
	case b.HasAny("generator_predictions."):
		at, small := b.At("generator_predictions"), z
		small.Width = size
		e.head = &TaskHead{Task: MaskedWords, Layer: inTurn{
			at.Linear("dense", z.Width, size), Activation(tensor.GELU), at.LayerNorm("LayerNorm", size, eps),
			b.words("generator_lm_head", "generator_lm_head.bias", e.words, base.Name("embeddings.word_embeddings.weight"), tied, small),
		}}
	case b.HasAny("classifier.out_proj."):
		e.head = b.textHead(z, "classifier.dense", tensor.GELU, "classifier.out_proj")
	default:
		e.head = b.tokenHead(z)
	}
	return e
}
