package models

import (
	"fmt"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/position"
)

// mpnetFamily is MPNet: RoBERTa with T5's bias of relative positions, one table for all
// layers, and without token types.
//
// Source: Song et al., "MPNet: Masked and Permuted Pre-training for Language Understanding",
// 2020, https://arxiv.org/abs/2004.09297.
var mpnetFamily = Family{Type: "mpnet", Name: "MPNet", New: newMPNet, Harmless: []string{"pad_token_id"}}

func newMPNet(b *Builder) Network {
	const (
		pad     = 1  // whatever the setting
		buckets = 32 // transformers always computes with 32, whatever the setting
	)
	s, base := b.Config, b.Within("mpnet")
	bothWays(s)
	s.Only("relative_attention_num_buckets", buckets)
	z := bertSizes(b)
	rows := z.behindPadding(s, pad)
	eps, act := s.Eps("layer_norm_eps", 1e-12), s.Activation("hidden_act", "gelu")

	in := base.At("embeddings")
	e := &encoder{
		sizes:     z,
		words:     in.Embedding("word_embeddings", z.Vocabulary, z.Width),
		positions: in.Embedding("position_embeddings", rows, z.Width),
		place:     behindPadding(pad),
		norm:      in.LayerNorm("LayerNorm", z.Width, eps),
	}
	bias := position.T5Bias(base.Tensor("encoder.relative_attention_bias.weight", buckets, z.Heads), position.T5Config{MaxDistance: 128})
	for i := range z.Layers {
		layer := base.At(fmt.Sprintf("encoder.layer.%d", i))
		e.blocks = append(e.blocks, &PostNorm{
			Self: layer.MultiHead(attn.MultiHeadConfig{
				Name: encoderName(i), Width: z.Width, Heads: z.Heads, Bias: attn.AllProjections,
			}, Maps{Q: "attention.attn.q", K: "attention.attn.k", V: "attention.attn.v", Out: "attention.attn.o"}),
			SelfNorm: layer.LayerNorm("attention.LayerNorm", z.Width, eps),
			FF: &nn.FeedForward{
				In:         layer.Linear("intermediate.dense", z.Width, z.Hidden),
				Activation: act,
				Out:        layer.Linear("output.dense", z.Hidden, z.Width),
			},
			FFNorm:  layer.LayerNorm("output.LayerNorm", z.Width, eps),
			Options: attn.Options{Changes: []attn.ScoreChange{bias}},
		})
	}
	in.Unread(in.Name("position_ids"))
	bertPooler(base, z) // read so that it can be saved again; no head uses it
	e.head = robertaHead(b, e, in.Name("word_embeddings.weight"), eps)
	return e
}
