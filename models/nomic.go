package models

import (
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/tensor"
)

// nomicFamily is the encoder of Nomic Embed: BERT with rotary positions, one map of queries, keys and values, gated or
// plain feed-forward networks, and optionally mixtures of experts.
//
// Source: Nussbaum et al., "Nomic Embed: Training a Reproducible Long Context Text Embedder", 2024,
// https://arxiv.org/abs/2402.01613; Nussbaum and Duderstadt, "Training Sparse Mixture Of Experts Text Embedding Models",
// 2025, https://arxiv.org/abs/2502.07972; transformers' class NomicBertModel.
var nomicFamily = Family{
	Type: "nomic_bert", Name: "Nomic BERT", New: newNomicBERT, graph: true,
	beforeCut: Activation(func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
		return nn.NewLayerNorm(x.Dim(1)).Forward(t, x) // with its first weights, 1 and 0
	}),
	Harmless: []string{
		"attn_pdrop", "dense_seq_output", "embd_pdrop", "fused_bias_fc", "fused_dropout_add_ln", "moe_impl",
		"moe_resid_pdrop", "pad_token_id", "pad_vocab_to_multiple_of", "parallel_block_tied_norm", "reorder_and_upcast_attn", "resid_pdrop",
		"router_aux_loss_coef", "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
		"summary_use_proj", "use_flash_attn", "use_xentropy",
	},
	Code: []string{
		"NomicBertModel", "NomicBertForMultipleChoice", "NomicBertForPreTraining", "NomicBertForQuestionAnswering",
		"NomicBertForSequenceClassification", "NomicBertForTokenClassification",
	},
}

func newNomicBERT(b *Builder) Network {
	s, base := b.Config, b.Within("nomic_bert")
	if base == b {
		base = b.Within("bert")
	}
	bothWays(s)
	n := nomic{encoderNames: encoderNames{
		norm: "emb_ln", layers: "encoder.layers", maps: Maps{QKV: "attn.Wqkv", Out: "attn.out_proj"}, selfNorm: "norm1", ffNorm: "norm2",
	}}
	if s.Has("n_embd") || s.Has("n_layer") {
		n.published(b)
	} else {
		n.native(b)
	}
	z := n.Sizes
	e := n.encoder(base, z, 0, counting{}, n.eps, n.act, attn.Options{})
	if tied := s.Bool("tie_word_embeddings", true); b.HasAny("cls.predictions.") {
		at := b.At("cls.predictions")
		e.head = &TaskHead{Task: MaskedWords, Layer: inTurn{
			at.Linear("transform.dense", z.Width, z.Width), n.act, at.LayerNorm("transform.layer_norm", z.Width, n.eps),
			at.words("decoder", "bias", e.words, base.Name("embeddings.word_embeddings.weight"), tied, z),
		}}
		return e
	}
	e.head = b.pooledHead(bertPooler(base, z), z)
	return e
}

// nomic is what the settings of a Nomic BERT say.
type nomic struct {
	encoderNames
	Sizes
	eps float32
	act Activation
}

// native reads the settings as transformers 5 writes them.
func (n *nomic) native(b *Builder) {
	s := b.Config
	n.Sizes = bertSizes(b)
	n.Types, n.eps, n.act = s.SizeOr("type_vocab_size", 2), s.Eps("layer_norm_eps", 1e-12), s.Activation("hidden_act", "silu")
	s.Only("head_dim", n.HeadSize)
	n.HeadSize = s.rotated("hidden_size", n.HeadSize)
	r := newRotation(s, n.Sizes, 1000)
	n.position, n.Positions = r.position(b.tokens)
	n.ff = n.gated((*Builder).Matrix, (*Builder).Matrix)
}

// published reads the settings of the original code, which have the names of GPT-2 and of FlashAttention. Newer files
// have those of transformers 5 beside them.
func (n *nomic) published(b *Builder) {
	s := b.Config
	s.off("causal", "norm_mlp", "parallel_block", "prenorm", "rotary_emb_interleaved", "rotary_head_dim", "scale_attn_by_inverse_layer_idx", "use_rms_norm")
	s.Only("scale_attn_weights", true)
	s.Only("rotary_emb_scale_base")
	n.Sizes = b.sizes("n_layer", "n_head", "n_embd", "n_positions", 0)
	n.Hidden, n.eps = s.Size("n_inner"), s.Eps("layer_norm_epsilon", 1e-5)
	n.Types = max(0, s.Int("type_vocab_size", 0))
	multiple := s.SizeOr("pad_vocab_size_multiple", 1)
	n.Vocabulary += (multiple - n.Vocabulary%multiple) % multiple
	s.Only("num_heads_kv", n.Heads)

	if s.Bool("qkv_proj_bias", true) {
		n.bias = attn.AllProjections
	}
	in, out := s.biased("mlp_fc1_bias", true), s.biased("mlp_fc2_bias", true)
	n.ff, n.act = n.gated(in, out), tensor.GELU
	switch kind := s.Text("activation_function", ""); kind {
	case "swiglu":
		n.act = tensor.SiLU
		s.Only("hidden_act", "silu")
	case "geglu":
		s.Only("hidden_act", "gelu")
	case "gelu":
		s.Only("hidden_act", "gelu")
		n.ff = func(b *Builder, _ int) Layer {
			return &nn.FeedForward{In: in(b, "mlp.fc1", n.Width, n.Hidden), Activation: n.act, Out: out(b, "mlp.fc2", n.Hidden, n.Width)}
		}
	default:
		s.Fail("activation_function", "is %s, want swiglu, geglu or gelu", quote.Text(kind))
	}
	s.Ignore("max_position_embeddings") // which limits nothing
	s.Only("hidden_size", n.Width)
	s.Only("num_hidden_layers", n.Layers)
	s.Only("num_attention_heads", n.Heads)
	s.Only("intermediate_size", n.Hidden)
	s.Only("head_dim", n.HeadSize)
	s.Only("layer_norm_eps", n.eps)
	n.rotate(b)
	n.mix(b)
}

// rotate sets the positions. With rotary_scaling_factor, the base grows with sequences longer than in training, as in
// "dynamic" of rope_type; such lengths need Options.Tokens.
func (n *nomic) rotate(b *Builder) {
	s := b.Config
	s.need("rotary_emb_fraction", "1") // by default, there are no rotary positions
	s.Only("rotary_emb_fraction", 1)
	n.HeadSize = s.rotated("n_embd", n.HeadSize)
	r := rotation{all: s, scaling: ropeScaling(s), theta: s.base("rotary_emb_base", 10000), sizes: n.Sizes}
	if r.scaling != nil {
		r.scaling.Only("rope_type", "default")
		r.scaling.Only("rope_theta", r.theta)
	}
	trained := s.SizeOr("max_trained_positions", 2048)
	if factor := s.Float("rotary_scaling_factor", 0); factor != 0 {
		r.sizes.Positions = min(trained, n.Positions)
		r.scaled = func(tokens int) position.RoPEScaling { return position.ScaleNTK(factor, trained, tokens) }
	}
	n.position, n.Positions = r.position(b.tokens)
}

// mix gives some blocks a mixture of experts, in place of the feed-forward network. The outputs of the experts of a token
// have their probabilities as weights, and a bias is added to their sum.
func (n *nomic) mix(b *Builder) {
	s := b.Config
	s.off("expert_choice_router", "moe_normalize_expert_weights")
	s.Only("num_shared_experts", 0)
	s.Only("ffn_div", 1)
	every := s.Int("moe_every_n_layers", 0)
	if every <= 0 {
		s.Ignore("moe_top_k", "num_experts")
		return
	}
	s.Only("activation_function", "gelu")
	experts, top := b.expertsOf("num_experts", "moe_top_k", 1)
	plain := n.ff
	n.ff = func(b *Builder, block int) Layer {
		if block%every != 1 {
			return plain(b, block)
		}
		b = b.At("mlp")
		var list []Layer
		in := b.matrices("experts.mlp.w1", false, n.Width, slices.Repeat([]int{n.Hidden}, experts)...)
		for i, out := range b.transposes("experts.mlp.w2", experts, n.Hidden, n.Width) {
			list = append(list, &nn.FeedForward{In: in[i], Activation: n.act, Out: out})
		}
		mixed := newMixture(b, "router.layer", n.Width, experts, top, false, list)
		bias := b.Tensor("experts.bias", n.Width)
		return inTurn{mixed, Activation(func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
			return tensor.Add(t, x, tensor.Reshape(t, bias, 1, 1, n.Width))
		})}
	}
}

// gated returns what makes feed-forward networks with gates.
func (n *nomic) gated(in, out newMap) func(b *Builder, _ int) Layer {
	return func(b *Builder, _ int) Layer {
		return &GatedFeedForward{
			Gate: in(b, "mlp.fc12", n.Width, n.Hidden), Up: in(b, "mlp.fc11", n.Width, n.Hidden),
			Down: out(b, "mlp.fc2", n.Hidden, n.Width), Activation: n.act,
		}
	}
}
