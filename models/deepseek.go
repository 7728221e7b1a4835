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
	experts, top := b.expertsOf("n_routed_experts", "num_experts_per_tok", 8)
	hidden, shared, dense := s.SizeOr("moe_intermediate_size", 2048), s.SizeOr("n_shared_experts", 1), s.Int("first_k_dense_replace", 3)
	groups, used := s.SizeOr("n_group", 8), s.SizeOr("topk_group", 4)
	if size := experts / groups; size*groups != experts || size < 2 || used > groups || top > used*size {
		s.Fail("n_group", "is %d with a topk_group of %d, want equal groups of %d experts (n_routed_experts), of which a token has %d", groups, used, experts, top)
	}
	normed, factor := s.Bool("norm_topk_prob", true), float32(s.multiplier("routed_scaling_factor", 2.5))
	names := [3]string{"gate_proj", "up_proj", "down_proj"}
	m.feedForward = func(m *rotaryDecoder, b *Builder, i int) Layer {
		if i < dense {
			return m.gated(b, i)
		}
		b = b.At("mlp")
		x := newMixture(b, "gate", m.Width, experts, top, normed, m.expert(b, names, hidden))
		x.chances, x.choice = tensor.Sigmoid, expertGroups(b.Fixed("gate.e_score_correction_bias", experts), groups, used)
		x.factor, x.shared = factor, newGated(b.At("shared_experts"), (*Builder).Matrix, names[0], names[1], names[2], m.Width, shared*hidden, m.activation)
		return x
	}
	base := b.Within("model")
	for i := m.Layers; base.Has(fmt.Sprintf("layers.%d.eh_proj.weight", i)); i++ {
		b.Unread(base.Name(fmt.Sprintf("layers.%d.*", i)))
	}
	return m.build(base, b)
}

// expertGroups returns the numbers by which experts of several groups are chosen: chances plus bias, but −Inf in groups
// that a token does not use. It uses the top ones by the sum of their two largest numbers. Shapes: chances and out [L N].
func expertGroups(bias *tensor.Tensor, groups, top int) func(chances *tensor.Tensor) *tensor.Tensor {
	return func(chances *tensor.Tensor) *tensor.Tensor {
		n, all := chances.Dim(0), chances.Dim(1)
		size := all / groups
		y := tensor.Add(nil, chances, tensor.BroadcastTo(nil, bias, n, all))
		best, _ := tensor.TopK(tensor.Reshape(nil, y, n*groups, size), 2)
		_, used := tensor.TopK(tensor.Reshape(nil, tensor.SumAxis(nil, best, 1), n, groups), top)
		out := tensor.Full(float32(math.Inf(-1)), n, all)
		for i, g := range used {
			at := i/top*all + g*size
			copy(out.Data()[at:at+size], y.Data()[at:])
		}
		return out
	}
}
