package models

import (
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/tensor"
)

// jinaCode are the classes of Jina's BERT. Its second version, with norms of queries and keys, has the same names, and
// other tensors.
var jinaCode = []string{"JinaBertModel", "JinaBertForMaskedLM", "JinaBertForSequenceClassification", "JinaBertForTokenClassification"}

// fromJina reports whether auto_map or architectures names a class of Jina's BERT: its model_type is also "bert".
func fromJina(s *Settings) bool {
	named := func(class string) bool { return slices.Contains(jinaCode, class) }
	return strings.Contains(string(s.values["auto_map"]), ".JinaBert") || slices.ContainsFunc(s.Texts("architectures"), named)
}

// jina makes the names those of Jina's BERT: it has ALiBi in both directions in place of a table of positions, and gated
// feed-forward networks. It returns the options of attention.
//
// Source: Günther et al., "Jina Embeddings 2: 8192-Token General-Purpose Text Embeddings for Long Documents", 2023,
// https://arxiv.org/abs/2310.19923, section 3.
func (n *encoderNames) jina(s *Settings, z Sizes) attn.Options {
	bothWays(s, "alibi")
	s.need("position_embedding_type", `"alibi"`)
	s.Only("position_embedding_type", "alibi")
	s.need("feed_forward_type", `"geglu" or "reglu"`)
	s.Only("feed_forward_type", "geglu", "reglu")
	s.Ignore("emb_pooler") // of a method that attn does not have
	gate := Activation(tensor.GELU)
	if s.Text("feed_forward_type", "") == "reglu" {
		gate = tensor.ReLU
	}
	n.ffNorm, n.pruned = "mlp.layernorm", false
	n.ff = func(b *Builder, _ int) Layer {
		both := b.matrices("mlp.gated_layers.weight", false, z.Width, z.Hidden, z.Hidden)
		return &GatedFeedForward{Gate: both[0], Up: both[1], Down: b.Linear("mlp.wo", z.Hidden, z.Width), Activation: gate}
	}
	return attn.Options{Changes: []attn.ScoreChange{position.ALiBi()}}
}
