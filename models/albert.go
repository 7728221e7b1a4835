package models

import (
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// albertFamily is ALBERT: BERT whose layers share their parameters, all or those of a group, and whose embeddings are
// smaller than its states.
//
// Source: Lan et al., "ALBERT: A Lite BERT for Self-supervised Learning of Language Representations", 2019,
// https://arxiv.org/abs/1909.11942.
var albertFamily = Family{
	Type: "albert", Name: "ALBERT", New: newALBERT, graph: true,
	Harmless: []string{"classifier_dropout_prob", "down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks", "pad_token_id"},
}

var albertNames = encoderNames{
	norm: "embeddings.LayerNorm", layers: "encoder.albert_layer_groups", bias: attn.AllProjections,
	maps: Maps{
		Q: "albert_layers.0.attention.query", K: "albert_layers.0.attention.key", V: "albert_layers.0.attention.value",
		Out: "albert_layers.0.attention.dense",
	},
	selfNorm: "albert_layers.0.attention.LayerNorm", ffNorm: "albert_layers.0.full_layer_layer_norm",
	in: "albert_layers.0.ffn", out: "albert_layers.0.ffn_output",
}

func newALBERT(b *Builder) Network {
	const mostLayers = 1 << 12 // which share tensors
	s, base, names := b.Config, b.Within("albert"), albertNames
	bothWays(s)
	s.Only("inner_group_num", 1)
	groups := b.sizes("num_hidden_groups", "num_attention_heads", "hidden_size", "max_position_embeddings", 512)
	groups.Hidden, groups.Types = s.Size("intermediate_size"), s.SizeOr("type_vocab_size", 2)
	names.embedding = s.SizeOr("embedding_size", 128)
	eps, act, tied := s.Eps("layer_norm_eps", 1e-12), s.Activation("hidden_act", "gelu_new"), s.Bool("tie_word_embeddings", true)
	z := groups
	if z.Layers = s.Size("num_hidden_layers"); z.Layers > mostLayers {
		s.Fail("num_hidden_layers", "is %d, want at most %d", z.Layers, mostLayers)
		z.Layers = 1
	}
	e := names.encoder(base, groups, z.Positions, counting{}, eps, act, attn.Options{})
	e.wordsNorm = inTurn{e.wordsNorm, base.Linear("encoder.embedding_hidden_mapping_in", names.embedding, z.Width)}
	own := e.blocks
	e.sizes, e.blocks = z, make([]*block, z.Layers)
	for i := range e.blocks {
		p := *own[min(int(float64(i)/(float64(z.Layers)/float64(len(own)))), len(own)-1)] // as transformers computes it
		p.self = renamed(p.self, encoderName(i))
		e.blocks[i] = &p
	}

	var pool Layer
	if base.HasAny("pooler.") {
		pool = inTurn{firstToken{}, base.Linear("pooler", z.Width, z.Width), Activation(tensor.Tanh)}
	}
	if b.HasAny("predictions.") {
		at, small := b.At("predictions"), z
		small.Width = names.embedding
		e.head = &TaskHead{Task: MaskedWords, Layer: inTurn{
			at.Linear("dense", z.Width, small.Width), act, at.LayerNorm("LayerNorm", small.Width, eps),
			at.words("decoder", "bias", e.words, base.Name("embeddings.word_embeddings.weight"), tied, small),
		}}
		b.Unread("sop_classifier.classifier.weight", "sop_classifier.classifier.bias") // of the order of two sentences
		return e
	}
	e.head = b.pooledHead(pool, z)
	return e
}

// renamed returns a layer of another name with the same parameters.
func renamed(m *attn.MultiHead, name string) *attn.MultiHead {
	c := m.Config()
	c.Name, c.Init = name, func(int, int, bool, *rand.Rand) *nn.Linear { return new(nn.Linear) }
	other, err := attn.NewMultiHead(c, nil)
	if err != nil { // m is no layer, because of an error that the Builder has recorded
		return m
	}
	other.Q, other.K, other.V, other.Out = m.Q, m.K, m.V, m.Out
	return other
}
