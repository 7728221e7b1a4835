package models

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/tensor"
)

// newFamily is the encoder of Alibaba's GTE models, whose model_type is "new": BERT with rotary positions, gated
// feed-forward networks, and one map of queries, keys and values. gteFamily is the same encoder as transformers 5 and
// Snowflake's Arctic Embed 2.0 write it.
//
// Source: Zhang et al., "mGTE: Generalized Long-Context Text Representation and Reranking Models for Multilingual Text
// Retrieval", 2024, https://arxiv.org/abs/2407.19669, and transformers' class GteModel.
var (
	newFamily = Family{
		Type: "new", Name: "mGTE", New: newGTE, graph: true, Harmless: gteHarmless,
		Code: []string{
			"NewModel", "NewForMaskedLM", "NewForMultipleChoice", "NewForQuestionAnswering", "NewForSequenceClassification",
			"NewForTokenClassification",
		},
	}
	gteFamily = Family{
		Type: "gte", Name: "GTE", New: newGTE, graph: true, Harmless: gteHarmless,
		Code: []string{"GteModel", "GteForMaskedLM", "GteForSequenceClassification", "GteForTokenClassification"},
	}
	gteHarmless = []string{"logn_attention_clip1", "pad_token_id", "unpad_inputs", "use_memory_efficient_attention"}
)

func newGTE(b *Builder) Network {
	s, base := b.Config, b.Within("new")
	if base == b {
		base = b.Within("gte")
	}
	bothWays(s, "rope") // in place of "absolute", which would have a table of positions in the file
	s.off("logn_attention_scale")
	s.Only("layer_norm_type", "layer_norm")
	s.Only("pack_qkv", true)
	z := bertSizes(b)
	z.Types, z.HeadSize = max(0, s.Int("type_vocab_size", 1)), s.rotated("hidden_size", z.HeadSize)
	eps, act := s.Eps("layer_norm_eps", 1e-12), s.Activation("hidden_act", "gelu")
	tied := s.Bool("tie_word_embeddings", true)

	names := bertNames
	names.maps = Maps{QKV: "attention.qkv_proj", Out: "attention.o_proj"}
	names.selfNorm, names.ffNorm, names.pruned = "attn_ln", "mlp_ln", false
	names.position, z.Positions = gteRotation(s, z).position(b.tokens)
	names.ff = func(b *Builder, _ int) Layer {
		upGate := b.matrices("mlp.up_gate_proj.weight", false, z.Width, z.Hidden, z.Hidden)
		return &GatedFeedForward{Gate: upGate[1], Up: upGate[0], Down: b.Linear("mlp.down_proj", z.Hidden, z.Width), Activation: act}
	}
	e := names.encoder(base, z, 0, counting{}, eps, act, attn.Options{})
	if b.HasAny("lm_head.") {
		at := b.At("lm_head")
		e.head = &TaskHead{Task: MaskedWords, Layer: inTurn{
			at.Linear("dense", z.Width, z.Width), Activation(tensor.GELU), at.LayerNorm("norm", z.Width, eps),
			at.words("decoder", "decoder.bias", e.words, base.Name("embeddings.word_embeddings.weight"), tied, z),
		}}
		return e
	}
	// gte-multilingual-base has a class of tokens, the weight of each in a sparse vector, beside its dense vectors.
	e.head = b.pooledHead(bertPooler(base, z), z)
	return e
}

// gteRotation returns the rotary positions. The NTK scaling of the original code is a fixed one, for all lengths.
func gteRotation(s *Settings, z Sizes) *rotation {
	if s.Has("rope_parameters") { // by transformers 5
		r := newRotation(s, z, 160000)
		return &r
	}
	s.need("rope_theta", "a number, or rope_parameters") // 10,000 in the original code, 160,000 in transformers
	r := newRotation(s, z, 10000)
	if p := r.scaling; p != nil {
		p.need("type", `"ntk"`)
		p.Only("type", "ntk")
		p.Only("mixed_b")
		factor := r.factor()
		r.scaled = func(int) position.RoPEScaling { return position.ScaleFixedNTK(factor) }
	}
	return &r
}
