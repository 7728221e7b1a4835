package models

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// debertaFamily is DeBERTa-v2 and DeBERTa-v3: BERT whose scores also compare queries and keys with vectors of their
// distance.
//
// Source: He et al., "DeBERTa: Decoding-enhanced BERT with Disentangled Attention", 2021,
// https://arxiv.org/abs/2006.03654; He et al., "DeBERTaV3: Improving DeBERTa using ELECTRA-Style Pre-Training with
// Gradient-Disentangled Embedding Sharing", 2023, https://arxiv.org/abs/2111.09543.
var debertaFamily = Family{
	Type: "deberta-v2", Name: "DeBERTa", New: newDeBERTa,
	Harmless: []string{"cls_dropout", "conv_act", "conv_groups", "legacy", "pad_token_id", "pooler_dropout"},
}

func newDeBERTa(b *Builder) Network {
	s, base := b.Config, b.Within("deberta")
	bothWays(s)
	s.Only("conv_kernel_size", 0)
	z := bertSizes(b)
	s.Only("attention_head_size", z.HeadSize)
	z.Types = max(0, s.Int("type_vocab_size", 0))
	eps, act := s.Eps("layer_norm_eps", 1e-7), s.Activation("hidden_act", "gelu")

	names, rows := bertNames, 0
	names.embedding, names.project, names.pruned = s.SizeOr("embedding_size", z.Width), "embed_proj", false
	const maps = "attention.self."
	names.maps.Q, names.maps.K, names.maps.V = maps+"query_proj", maps+"key_proj", maps+"value_proj"
	base.Unread(base.Name("embeddings.position_embeddings.weight")) // unless it is used
	if s.Bool("position_biased_input", true) {
		rows = z.Positions
	}
	r := newDistances(s, z)
	e := names.encoder(base, z, rows, counting{}, eps, act, attn.Options{Score: score.DotScale(r.scale)})
	if s.Only("norm_rel_ebd", "none", "layer_norm"); s.Text("norm_rel_ebd", "none") == "layer_norm" {
		r.norm = base.LayerNorm("encoder.LayerNorm", z.Width, eps)
	}
	if shared := s.Bool("share_att_key", false); s.Bool("relative_attention", false) {
		r.table = base.Tensor("encoder.rel_embeddings.weight", 2*r.span, z.Width)
		for i, p := range e.blocks {
			keys, queries, at := p.self.K, p.self.Q, base.At(fmt.Sprintf("encoder.layer.%d.attention.self", i))
			if r.keys && !shared {
				keys = at.Linear("pos_key_proj", z.Width, z.Width)
			}
			if r.queries && !shared {
				queries = at.Linear("pos_query_proj", z.Width, z.Width)
			}
			p.changes = func(t *tensor.Tape, l int) []attn.ScoreChange { return r.changes(t, max(1, l), p.self, keys, queries) }
		}
	}
	e.head = debertaHead(b, e, base.Name("embeddings.word_embeddings.weight"), names.embedding, eps, act)
	return e
}

// debertaHead is the head whose tensors are in the file. size is that of the embeddings.
func debertaHead(b *Builder, e *stack, embeddings string, size int, eps float32, act Activation) *TaskHead {
	s, z := b.Config, e.sizes
	b.Unread("mask_predictions.*") // of the discriminator in pre-training
	tied, pool := s.Bool("tie_word_embeddings", true), s.Activation("pooler_hidden_act", "gelu")
	s.Only("pooler_hidden_size", z.Width)
	switch {
	case b.HasAny("lm_predictions."): // in files of the original code
		at := b.At("lm_predictions.lm_head")
		s.Only("legacy", false)
		s.Only("embedding_size", z.Width)
		return &TaskHead{Task: MaskedWords, Layer: inTurn{
			at.Linear("dense", z.Width, z.Width), act, at.LayerNorm("LayerNorm", z.Width, eps),
			&nn.Linear{Weight: e.words.(*nn.Embedding).Weight, Bias: at.Tensor("bias", z.Vocabulary)},
		}}
	case b.HasAny("cls.predictions."):
		at, small := b.At("cls.predictions"), z
		small.Width = size
		s.Only("legacy", true)
		return &TaskHead{Task: MaskedWords, Layer: inTurn{
			at.Linear("transform.dense", z.Width, size), act, at.LayerNorm("transform.LayerNorm", size, eps),
			at.words("decoder", "bias", e.words, embeddings, tied, small),
		}}
	case b.HasAny("pooler."):
		return b.textHead(z, "pooler.dense", pool, "classifier")
	}
	return b.tokenHead(z)
}

// distances are vectors of relative positions, from which each layer projects keys and queries.
type distances struct {
	keys, queries bool           // which of them the scores use
	buckets, most int            // of numbers of distances; no buckets if each distance has its own number
	span          int            // there are numbers from −span to span − 1
	table         *tensor.Tensor // [2·span D]
	norm          Layer          // of the table, or nil
	scale         float32        // of all terms of a score
}

func newDistances(s *Settings, z Sizes) *distances {
	s.Only("pos_att_type", "c2p", "p2c", "c2p|p2c", "p2c|c2p", []string{}, []string{"c2p"}, []string{"p2c"},
		[]string{"c2p", "p2c"}, []string{"p2c", "c2p"})
	used := fmt.Sprint(get[any](s, "pos_att_type", "", nil))
	r := &distances{keys: strings.Contains(used, "c2p"), queries: strings.Contains(used, "p2c")}
	r.scale = float32(1 / math.Sqrt(float64(max(1, z.HeadSize)*(1+strings.Count(used, "2"))))) // a 2 in each term
	if r.most = s.Int("max_relative_positions", -1); r.most < 1 {
		r.most = z.Positions
	}
	if r.buckets = max(0, s.Int("position_buckets", -1)); r.buckets == 1 || r.buckets/2 > max(0, r.most-2) {
		s.Fail("position_buckets", "is %d, want 2 to 2·max_relative_positions − 3, which is %d", r.buckets, 2*r.most-3)
	}
	r.span = cmp.Or(r.buckets, r.most)
	return r
}

// changes returns the terms of distances for sequences of at most l tokens. Only vectors within reach are projected.
func (r *distances) changes(t *tensor.Tape, l int, self *attn.MultiHead, keys, queries *nn.Linear) []attn.ScoreChange {
	reach := min(r.number(l-1)+1, r.span)
	x := optional(t, r.norm, tensor.Slice(t, r.table, 0, r.span-reach, r.span+reach))
	rows := make([]int, 2*l-1) // of keys at distances from −(l − 1) to l − 1
	for d := range l {
		n := r.number(d)
		rows[l-1-d], rows[l-1+d] = min(reach+n, 2*reach-1), max(reach-n, 0)
	}
	project := func(used bool, by *nn.Linear) *tensor.Tensor {
		if !used {
			return nil
		}
		y := tensor.Gather(t, by.Forward(t, x), rows)
		return tensor.Transpose(t, tensor.Reshape(t, y, len(rows), self.Config().Heads, -1), 1, 0, 2)
	}
	return position.DeBERTaBias(project(r.keys, keys), project(r.queries, queries), r.scale)
}

// number returns the number of a distance. Distances of more than half of the buckets share numbers, which grow with
// their logarithm, computed in float32 as in transformers.
func (r *distances) number(distance int) int {
	near := r.buckets / 2
	if r.buckets == 0 || distance <= near {
		return distance
	}
	log := func(x float64) float32 { return float32(math.Log(float64(float32(x / float64(near))))) }
	ratio := log(float64(distance)) / log(float64(r.most-1))
	return near + int(min(math.Ceil(float64(ratio*float32(near-1))), 1<<30))
}
