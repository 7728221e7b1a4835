package models

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/position"
)

// mpnetFamily is MPNet: RoBERTa with T5's bias of relative positions, one table for all
// layers, and without token types.
//
// Source: Song et al., "MPNet: Masked and Permuted Pre-training for Language Understanding",
// 2020, https://arxiv.org/abs/2004.09297.
var mpnetFamily = Family{Type: "mpnet", Name: "MPNet", New: newMPNet, graph: true, Harmless: []string{"pad_token_id"}}

var mpnetNames = encoderNames{
	norm:     "embeddings.LayerNorm",
	layers:   "encoder.layer",
	bias:     attn.AllProjections,
	maps:     Maps{Q: "attention.attn.q", K: "attention.attn.k", V: "attention.attn.v", Out: "attention.attn.o"},
	selfNorm: "attention.LayerNorm", in: "intermediate.dense", out: "output.dense", ffNorm: "output.LayerNorm",
}

func newMPNet(b *Builder) Network {
	const (
		pad     = 1  // whatever the setting
		buckets = 32 // transformers always computes with 32, whatever the setting
	)
	s, base := b.Config, b.Within("mpnet")
	bothWays(s)
	s.Only("relative_attention_num_buckets", buckets)
	z := bertSizes(b)
	rows, at := z.behindPadding(s, pad)
	eps, act := s.Eps("layer_norm_eps", 1e-12), s.Activation("hidden_act", "gelu")

	bias := position.T5Bias(base.Tensor("encoder.relative_attention_bias.weight", buckets, z.Heads), position.T5Config{MaxDistance: 128})
	o := attn.Options{Changes: []attn.ScoreChange{bias}}
	e := mpnetNames.encoder(base, z, rows, at, eps, act, o)
	bertPooler(base, z) // read so that it can be saved again; no head uses it
	e.head = robertaHead(b, e, base.Name("embeddings.word_embeddings.weight"), eps)
	return e
}
