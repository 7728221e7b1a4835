package models

import (
	"fmt"
	"math"

	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/tensor"
)

// deepSeekV3Family is DeepSeek-V3: latent attention and, after the first blocks, mixtures of experts beside an expert that
// all tokens use. The layers that predict further tokens are not read.
//
// Source: DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, https://arxiv.org/abs/2412.19437; DeepseekV3Model of
// transformers.
var deepSeekV3Family = Family{
	Type: "deepseek_v3", Name: "DeepSeek-V3", New: newDeepSeekV3,
	Harmless: []string{"pretraining_tp", "output_router_logits", "num_nextn_predict_layers", "num_mtp_layers", "aux_loss_alpha", "seq_aux", "ep_size"},
	Code:     []string{"DeepseekV3Model", "DeepseekV3ForCausalLM"},
}

func newDeepSeekV3(b *Builder) Network {
	s := b.Config
	pairs := position.HalfPairs
	if s.Bool("rope_interleave", true) {
		pairs = position.AdjacentPairs
	}
	usual := Sizes{Hidden: 18432, Vocabulary: 129280, Positions: 4096}
	m := latentDecoder(b, usual, latentSizes{rank: 512, plain: 128, rotary: 64, value: 128}, 1536, pairs)
	s.Only("scoring_func", "sigmoid")
	s.Only("topk_method", "noaux_tc")
	s.Only("moe_layer_freq", 1)
	m.deepSeekExperts(b, deepSeekExperts{hidden: 2048, shared: 1, dense: 3, groups: 8, used: 4, factor: 2.5, biased: true})
	base := b.Within("model")
	for i := m.Layers; base.Has(fmt.Sprintf("layers.%d.eh_proj.weight", i)); i++ {
		b.Unread(base.Name(fmt.Sprintf("layers.%d.*", i)))
	}
	return m.build(base, b)
}

// deepSeekExperts are the defaults of the mixtures of experts: their sizes, the number of experts that all tokens use, the
// number of blocks without a mixture, and the factor of the outputs. A biased one chooses by the sigmoid of logits plus a
// bias, the other by their softmax.
type deepSeekExperts struct {
	hidden, shared, dense int
	groups, used          int // all groups of experts, and those that a token uses; 0 for no groups
	factor                float64
	biased                bool
}

// deepSeekExperts gives all blocks but the first mixtures of experts.
func (m *rotaryDecoder) deepSeekExperts(b *Builder, usual deepSeekExperts) {
	s := b.Config
	experts, top := b.expertsOf("n_routed_experts", "num_experts_per_tok", 8)
	hidden, shared, dense := s.SizeOr("moe_intermediate_size", usual.hidden), s.SizeOr("n_shared_experts", usual.shared), s.Int("first_k_dense_replace", usual.dense)
	groups, used, best := 1, 1, 1 // a group's score is the sum of its best numbers
	if usual.groups > 0 {
		groups, used = s.SizeOr("n_group", usual.groups), s.SizeOr("topk_group", usual.used)
	}
	if usual.biased {
		best = 2
	}
	if size := experts / groups; size*groups != experts || size < best || used > groups || top > used*size {
		s.Fail("n_group", "is %d with a topk_group of %d, want equal groups of %d experts (n_routed_experts), of which a token has %d", groups, used, experts, top)
	}
	normed := usual.biased && s.Bool("norm_topk_prob", true)
	factor := float32(s.multiplier("routed_scaling_factor", usual.factor))
	names := [3]string{"gate_proj", "up_proj", "down_proj"}
	m.feedForward = func(m *rotaryDecoder, b *Builder, i int) Layer {
		if i < dense {
			return m.gated(b, i)
		}
		b = b.At("mlp")
		x := newMixture(b, "gate", m.Width, experts, top, normed, m.experts(b, names, experts, hidden))
		var bias *tensor.Tensor
		if usual.biased {
			x.chances, bias = tensor.Sigmoid, b.Fixed("gate.e_score_correction_bias", experts)
		}
		x.choice = expertGroups(bias, groups, used, best)
		x.factor, x.shared = factor, newGated(b.At("shared_experts"), m.linear, names[0], names[1], names[2], m.Width, shared*hidden, m.activation)
		return x
	}
}

// deepSeekV2Family is DeepSeek-V2: V3 with a softmax over the experts, and no bias of their choice.
//
// Source: DeepSeek-AI, "DeepSeek-V2", 2024, https://arxiv.org/abs/2405.04434; DeepseekV2Model of transformers.
var deepSeekV2Family = Family{
	Type: "deepseek_v2", Name: "DeepSeek-V2", New: newDeepSeekV2,
	Harmless: []string{"pretraining_tp", "output_router_logits", "aux_loss_alpha", "seq_aux", "ep_size"},
	Code:     []string{"DeepseekV2Model", "DeepseekV2ForCausalLM"},
}

func newDeepSeekV2(b *Builder) Network {
	s := b.Config
	usual := Sizes{Hidden: 11008, Vocabulary: 102400, Positions: 2048}
	m := latentDecoder(b, usual, latentSizes{rank: 512, plain: 128, rotary: 64, value: 128}, 1536, position.AdjacentPairs)
	m.linear = s.biased("mlp_bias", false)
	s.Only("scoring_func", "softmax")
	s.Only("topk_method", "greedy", "group_limited_greedy")
	s.Only("moe_layer_freq", 1)
	s.Only("norm_topk_prob", false) // which transformers does not read
	s.need("num_experts_per_tok", "a positive number")
	x := deepSeekExperts{hidden: 1407, shared: 2, factor: 1}
	if s.Text("topk_method", "greedy") == "greedy" {
		s.Ignore("n_group", "topk_group")
	} else {
		s.need("n_group", "a positive number")
		s.need("topk_group", "a positive number")
		x.groups, x.used = 1, 1
	}
	m.deepSeekExperts(b, x)
	return m.build(b.Within("model"), b)
}

// expertGroups returns the numbers by which experts of several groups are chosen: chances plus bias, which may be nil, but
// −Inf in groups that a token does not use. It uses the top ones by the sum of their largest numbers, as many as most.
// Shapes: chances and out [L N].
func expertGroups(bias *tensor.Tensor, groups, top, most int) func(chances *tensor.Tensor) *tensor.Tensor {
	return func(y *tensor.Tensor) *tensor.Tensor {
		n, all := y.Dim(0), y.Dim(1)
		size := all / groups
		if bias != nil {
			y = tensor.Add(nil, y, tensor.BroadcastTo(nil, bias, n, all))
		}
		best, _ := tensor.TopK(tensor.Reshape(nil, y, n*groups, size), most)
		_, used := tensor.TopK(tensor.Reshape(nil, tensor.SumAxis(nil, best, 1), n, groups), top)
		out := tensor.Full(float32(math.Inf(-1)), n, all)
		for i, g := range used {
			at := i/top*all + g*size
			copy(out.Data()[at:at+size], y.Data()[at:])
		}
		return out
	}
}
