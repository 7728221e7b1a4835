package models

import (
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tensor"
)

// euroBERTFamily is EuroBERT: Llama whose queries attend to keys on both sides.
//
// Source: Boizard et al., "EuroBERT: Scaling Multilingual Encoders for European Languages", 2025,
// https://arxiv.org/abs/2503.05500.
var euroBERTFamily = Family{
	Type: "eurobert", Name: "EuroBERT", New: newEuroBERT, Pruning: HeadCounts,
	Harmless: []string{"bos_token", "eos_token", "hidden_dropout", "mask_token", "pad_token", "pretraining_tp"},
	Code: []string{ // the code of the authors, from before transformers had the family
		"EuroBertModel", "EuroBertForMaskedLM", "EuroBertForSequenceClassification", "EuroBertForTokenClassification",
		"EuroBertPreTrainedModel",
	},
}

func newEuroBERT(b *Builder) Network {
	s := b.Config
	m := llamaLike(b, Sizes{Vocabulary: 128256, Positions: 8192})
	s.off("is_decoder", "is_causal")
	m.Causal, m.norm, m.linear, m.bias = false, s.rmsNorm(1e-5), s.biased("mlp_bias", false), s.attentionBias(false)
	kind := s.Text("classifier_pooling", "late")
	s.Only("clf_pooling", kind) // the name in the code of the authors, which transformers does not read
	base := b.Within("model")
	e := m.build(base, b).(*stack)
	all := e.logits // the embeddings as a map to words
	e.logits = nil
	switch z := m.Sizes; {
	case b.HasAny("dense."):
		labels, dense := s.Labels(), inTurn{b.Linear("dense", z.Width, z.Width), Activation(tensor.GELU)}
		b.wantClass("SequenceClassification")
		e.head = &TaskHead{Task: TextClasses, Labels: labels, Pool: pooling("mean")}
		classes := b.Linear("classifier", z.Width, len(labels))
		switch kind {
		case "late": // the mean of the logits of all tokens
			e.head.Each, e.head.Layer = dense, classes
		case "mean", "bos":
			if e.head.Layer = append(dense, classes); kind == "bos" {
				e.head.Pool = pooling("cls")
			}
		default:
			s.Fail("classifier_pooling", "is %s, want late, mean or bos", quote.Text(kind))
		}
	case b.Class() == "MaskedLM" || b.Has("lm_head.weight"):
		if m.tied {
			b.Tied("lm_head.weight", base.Name("embed_tokens.weight"))
			s.Only("mlp_bias", false) // which would give the map to words a bias
		} else {
			all = m.linear(b, "lm_head", z.Width, z.Vocabulary)
		}
		e.head = &TaskHead{Task: MaskedWords, Layer: all}
	default:
		e.head = b.tokenHead(z)
	}
	return e
}
