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
var robertaFamily = Family{Type: "roberta", Name: "RoBERTa", New: newRoBERTa, Pruning: PrunedHeads, graph: true}

// xlmRobertaFamily is RoBERTa with the vocabulary of a hundred languages.
//
// Source: Conneau et al., "Unsupervised Cross-lingual Representation Learning at Scale",
// 2020, https://arxiv.org/abs/1911.02116.
var xlmRobertaFamily = Family{
	Type: "xlm-roberta", Name: "XLM-RoBERTa", New: newXLMRoBERTa, Pruning: PrunedHeads, graph: true,
	Code: []string{"XLMRobertaLoRA", "XLMRobertaForMaskedLM", "XLMRobertaForPreTraining"},
}

// camembertFamily is RoBERTa in French.
var camembertFamily = Family{Type: "camembert", Name: "CamemBERT", New: newRoBERTa, Pruning: PrunedHeads, graph: true}

func newRoBERTa(b *Builder) Network {
	s, base := b.Config, b.Within("roberta")
	bothWays(s)
	z := bertSizes(b)
	z.Types = s.SizeOr("type_vocab_size", 2)
	rows, at := z.behindPadding(s, s.Int("pad_token_id", 1))
	eps, act := s.Eps("layer_norm_eps", 1e-12), s.Activation("hidden_act", "gelu")

	e := bertNames.encoder(base, z, rows, at, eps, act, attn.Options{})
	bertPooler(base, z) // read so that it can be saved again; no head uses it
	e.head = robertaHead(b, e, base.Name("embeddings.word_embeddings.weight"), eps)
	return e
}

// behindPadding sets Positions for positions that begin after pad, and returns the number of rows
// of their table.
func (z *Sizes) behindPadding(s *Settings, pad int) (rows int, at counting) {
	rows = z.Positions
	if pad < 0 || pad > rows-2 {
		s.Fail("pad_token_id", "is %d, want 0 to max_position_embeddings − 2, which is %d", pad, rows-2)
		return rows, counting{}
	}
	z.Positions -= pad + 1
	return rows, counting{first: pad + 1, padded: true}
}

// counting are the positions of the tokens of a sequence: first, first+1, …
type counting struct {
	first  int
	padded bool // whether tokens of id first−1 are padding, at first−1
	counts bool // whether a padding token takes a position from those after it
}

// of returns the positions of tokens. before is the number of tokens of the sequence that were read in earlier runs.
func (c counting) of(ids []int, before int) []int {
	at, next := make([]int, len(ids)), c.first+before
	for i, id := range ids {
		padding := c.padded && id == c.first-1
		if at[i] = next; padding {
			at[i] = id
		}
		if !padding || c.counts {
			next++
		}
	}
	return at
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
		return b.textHead(z, "classifier.dense", tensor.Tanh, "classifier.out_proj")
	}
	return b.tokenHead(z)
}
