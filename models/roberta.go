package models

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// robertaFamily is RoBERTa: BERT with other heads, and with positions that begin after that of
// the padding token.
//
// Source: Liu et al., "RoBERTa: A Robustly Optimized BERT Pretraining Approach", 2019,
// https://arxiv.org/abs/1907.11692.
var robertaFamily = Family{Type: "roberta", Name: "RoBERTa", New: newRoBERTa, Pruning: PrunedHeads}

// xlmRobertaFamily is RoBERTa with the vocabulary of a hundred languages.
//
// Source: Conneau et al., "Unsupervised Cross-lingual Representation Learning at Scale",
// 2020, https://arxiv.org/abs/1911.02116.
var xlmRobertaFamily = Family{Type: "xlm-roberta", Name: "XLM-RoBERTa", New: newRoBERTa, Pruning: PrunedHeads}

// camembertFamily is RoBERTa in French.
var camembertFamily = Family{Type: "camembert", Name: "CamemBERT", New: newRoBERTa, Pruning: PrunedHeads}

func newRoBERTa(b *Builder) Network {
	s, base := b.Config, b.Within("roberta")
	bothWays(s)
	z := bertSizes(b)
	z.Types = s.SizeOr("type_vocab_size", 2)
	rows, first := z.behindPadding(s, s.Int("pad_token_id", 1))
	eps, act := s.Eps("layer_norm_eps", 1e-12), s.Activation("hidden_act", "gelu")

	e := bertNames.encoder(base, z, rows, first, eps, act, attn.Options{})
	bertPooler(base, z) // read so that it can be saved again; no head uses it
	e.head = robertaHead(b, e, base.Name("embeddings.word_embeddings.weight"), eps)
	return e
}

// behindPadding sets Positions for positions that begin after pad, and returns the number of rows
// of their table. Tokens are at first = pad+1, pad+2, …, and padding tokens at pad.
func (z *Sizes) behindPadding(s *Settings, pad int) (rows, first int) {
	rows = z.Positions
	if pad < 0 || pad > rows-2 {
		s.Fail("pad_token_id", "is %d, want 0 to max_position_embeddings − 2, which is %d", pad, rows-2)
		return rows, 0
	}
	z.Positions -= pad + 1
	return rows, pad + 1
}

// robertaHead is the head whose tensors are in the file. The head for masked words always uses
// GELU.
func robertaHead(b *Builder, e *stack, embeddings string, eps float32) *TaskHead {
	s, z := b.Config, e.sizes
	tied := s.Bool("tie_word_embeddings", true)
	switch {
	case b.HasAny("lm_head."):
		lm := b.At("lm_head")
		return &TaskHead{Task: MaskedWords, Layer: inTurn{
			lm.Linear("dense", z.Width, z.Width), Activation(tensor.GELU), lm.LayerNorm("layer_norm", z.Width, eps),
			lm.words("decoder", "bias", e.words, embeddings, tied, z),
		}}
	case b.HasAny("classifier.out_proj."):
		labels, c := s.Labels(), b.At("classifier")
		b.wantClass("SequenceClassification")
		return &TaskHead{Task: TextClasses, Labels: labels, Layer: inTurn{
			firstToken{}, c.Linear("dense", z.Width, z.Width), Activation(tensor.Tanh), c.Linear("out_proj", z.Width, len(labels)),
		}}
	}
	return b.tokenHead(z)
}
