package models

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// bertFamily is BERT, including MiniLM and most encoders of sentence-transformers.
//
// Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
// Understanding", 2019, https://arxiv.org/abs/1810.04805.
var bertFamily = Family{
	Type: "bert", Name: "BERT", New: newBERT, Pruning: PrunedHeads, graph: true, Harmless: []string{"pad_token_id"}, Code: jinaCode,
}

func newBERT(b *Builder) Network {
	s, base := b.Config, b.Within("bert")
	z := bertSizes(b)
	z.Types = s.SizeOr("type_vocab_size", 2)
	s.Only("emb_size", z.Width)
	s.Only("embedding_size", z.Width)
	eps, act := s.Eps("layer_norm_eps", 1e-12), s.Activation("hidden_act", "gelu")

	names, rows, o := bertNames, z.Positions, attn.Options{}
	if fromJina(s) {
		rows, o = 0, names.jina(s, z)
	} else {
		bothWays(s)
	}
	in := base.At("embeddings")
	e := names.encoder(base, z, rows, counting{}, eps, act, o)

	tied := s.Bool("tie_word_embeddings", true)
	pool := bertPooler(base, z) // of the first token; text classifiers need it
	if b.HasAny("cls.seq_relationship.") {
		follows := inTurn{pool, b.Linear("cls.seq_relationship", z.Width, 2)}
		e.head = b.needs(pool, &TaskHead{Task: NextSentence, Labels: []string{"follows", "random"}, Layer: follows})
	}
	switch {
	case b.HasAny("cls.predictions."):
		cls := b.At("cls.predictions")
		e.head = &TaskHead{Task: MaskedWords, Layer: inTurn{
			cls.Linear("transform.dense", z.Width, z.Width), act, cls.LayerNorm("transform.LayerNorm", z.Width, eps),
			cls.words("decoder", "bias", e.words, in.Name("word_embeddings.weight"), tied, z),
		}}
	case slices.Contains(s.Texts("architectures"), colbertClass) && b.r != nil:
		if info, ok := b.r.Lookup("linear.weight"); ok && len(info.Shape) == 2 {
			e.tokens = tail{layers: []Layer{b.Matrix("linear", z.Width, info.Shape[0])}, width: info.Shape[0]}
		}
	default:
		e.head = cmp.Or(b.pooledHead(pool, z), e.head)
	}
	return e
}

// bertSizes reads the sizes from BERT's names of settings.
func bertSizes(b *Builder) Sizes {
	z := b.sizes("num_hidden_layers", "num_attention_heads", "hidden_size", "max_position_embeddings", 0)
	z.Hidden = b.Config.Size("intermediate_size")
	return z
}

// sizes reads sizes from the settings of the given names, for layers whose heads do not share keys and values. mostTokens
// is the default of positions, 0 if there is none.
func (b *Builder) sizes(layers, heads, width, positions string, mostTokens int) Sizes {
	s := b.Config
	z := Sizes{
		Layers: b.Count(layers), Heads: s.Size(heads), Width: s.Size(width),
		Vocabulary: s.Size("vocab_size"), Positions: s.sizeOr(positions, mostTokens),
	}
	if z.Width%z.Heads != 0 {
		s.Fail(heads, "is %d, want a divisor of %s, which is %d", z.Heads, width, z.Width)
	}
	return z.oneToOne()
}

// oneToOne sets KVHeads and HeadSize for layers whose heads do not share keys and values.
func (z Sizes) oneToOne() Sizes {
	z.KVHeads, z.HeadSize = z.Heads, z.Width/z.Heads
	return z
}

// encoderNames are the names of the tensors in a layer of BERT and its variants, and what differs in the layers.
type encoderNames struct {
	norm     string // of the sum of the embeddings
	layers   string // the prefix of the layers, which are numbered
	maps     Maps
	bias     attn.Projections
	selfNorm string
	in, out  string // of the feed-forward network
	ffNorm   string
	pruned   bool // config.json may list pruned heads

	position attn.Position                     // of queries and keys; nil if there is none
	ff       func(b *Builder, block int) Layer // makes the feed-forward network; nil: from in, out and an activation

	embedding int    // size of the embeddings, 0 for that of the states
	project   string // the map of smaller embeddings before their norm; empty if there is none
}

var bertNames = encoderNames{
	norm:   "embeddings.LayerNorm",
	layers: "encoder.layer",
	bias:   attn.AllProjections,
	maps: Maps{
		Q: "attention.self.query", K: "attention.self.key", V: "attention.self.value", Out: "attention.output.dense",
	},
	selfNorm: "attention.output.LayerNorm",
	in:       "intermediate.dense", out: "output.dense",
	ffNorm: "output.LayerNorm",
	pruned: true,
}

// encoder builds the embeddings and the layers. The table of positions has the given number of
// rows, and there is none for 0; there are token types if z has some.
func (n encoderNames) encoder(
	base *Builder, z Sizes, rows int, at counting, eps float32, act Activation, o attn.Options,
) *stack {
	in, size := base.At("embeddings"), cmp.Or(n.embedding, z.Width)
	e := &stack{sizes: z, words: in.Embedding("word_embeddings", z.Vocabulary, size), counting: at}
	if rows > 0 {
		e.positions = in.Embedding("position_embeddings", rows, size)
	}
	if z.Types > 0 {
		e.types = in.Embedding("token_type_embeddings", z.Types, size)
	}
	if n.project != "" && size != z.Width {
		e.wordsNorm = inTurn{in.Matrix(n.project, size, z.Width), base.LayerNorm(n.norm, z.Width, eps)}
	} else {
		e.wordsNorm = base.LayerNorm(n.norm, size, eps)
	}
	if n.ff == nil {
		n.ff = func(b *Builder, _ int) Layer {
			return &nn.FeedForward{In: b.Linear(n.in, z.Width, z.Hidden), Activation: act, Out: b.Linear(n.out, z.Hidden, z.Width)}
		}
	}
	for i := range z.Layers {
		b := base.At(fmt.Sprintf("%s.%d", n.layers, i))
		c := attn.MultiHeadConfig{Name: encoderName(i), Width: z.Width, Heads: z.Heads, Bias: n.bias, Position: n.position}
		if n.pruned {
			c = b.Kept(i, c)
		}
		e.blocks = append(e.blocks, &block{
			self:     b.MultiHead(c, n.maps),
			selfNorm: b.LayerNorm(n.selfNorm, z.Width, eps),
			ff:       n.ff(b, i),
			ffNorm:   b.LayerNorm(n.ffNorm, z.Width, eps),
			postNorm: true,
			options:  o,
		})
	}
	in.Unread(in.Name("position_ids"))
	return e
}

// bertPooler is tanh(W·x + b) of the hidden state of the first token, nil if the file has no
// pooler.
func bertPooler(b *Builder, z Sizes) Layer {
	if !b.HasAny("pooler.") {
		return nil
	}
	return inTurn{firstToken{}, b.Linear("pooler.dense", z.Width, z.Width), Activation(tensor.Tanh)}
}
