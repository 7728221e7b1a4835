package models

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// mixtralFamily is Mixtral: Mistral with a mixture of experts in each block.
//
// Source: Jiang et al., "Mixtral of Experts", 2024, https://arxiv.org/abs/2401.04088.
var mixtralFamily = Family{
	Type: "mixtral", Name: "Mixtral", New: newMixtral, Pruning: HeadCounts,
	Harmless: []string{"output_router_logits", "router_aux_loss_coef", "router_jitter_noise"},
}

func newMixtral(b *Builder) Network {
	s := b.Config
	m := llamaLike(b, Sizes{KVHeads: 8})
	m.norm = s.rmsNorm(1e-5)
	m.rope(b, 1e6)
	m.slide(s.SizeOr("sliding_window", 0), nil)
	s.Only("pretraining_tp", 1)
	experts, top := b.expertsOf("num_local_experts", "num_experts_per_tok", 2)
	m.feedForward = func(m *rotaryDecoder, b *Builder, _ int) Layer {
		b = b.At("block_sparse_moe")
		return newMixture(b, "gate", m.Width, experts, top, true, m.experts(b, [3]string{"w1", "w3", "w2"}, experts, m.Hidden))
	}
	return m.build(b.Within("model"), b)
}

// qwen3MoEFamily is Qwen3 with mixtures of experts.
//
// Source: Yang et al., "Qwen3 Technical Report", 2025, https://arxiv.org/abs/2505.09388.
var qwen3MoEFamily = Family{
	Type: "qwen3_moe", Name: "Qwen3 MoE", New: newQwen3MoE, Pruning: HeadCounts,
	Harmless: []string{"output_router_logits", "router_aux_loss_coef"},
}

func newQwen3MoE(b *Builder) Network {
	s := b.Config
	m := qwen(b, Sizes{KVHeads: 4})
	m.headNorms = eachHead
	m.bias = s.attentionBias(false)
	if m.slideIfUsed(s, 4096, func(int) bool { return true }); s.Bool("use_sliding_window", false) {
		s.Only("layer_types") // which transformers does not read, nor max_window_layers: all blocks have the window
	}
	s.Only("use_qk_norm", true)
	s.Only("qkv_bias", false)
	s.Only("shared_expert_intermediate_size", 0)
	key := "num_experts"
	if !s.Has(key) { // as transformers 5 writes it
		key = "num_local_experts"
	}
	experts, top := b.expertsOf(key, "num_experts_per_tok", 8)
	hidden, every, normed := s.SizeOr("moe_intermediate_size", 768), s.SizeOr("decoder_sparse_step", 1), s.Bool("norm_topk_prob", false)
	without := s.Floats("mlp_only_layers")
	m.feedForward = func(m *rotaryDecoder, b *Builder, i int) Layer {
		if slices.Contains(without, float64(i)) || (i+1)%every != 0 {
			return m.gated(b, i)
		}
		b = b.At("mlp")
		return newMixture(b, "gate", m.Width, experts, top, normed, m.experts(b, [3]string{"gate_proj", "up_proj", "down_proj"}, experts, hidden))
	}
	return m.build(b.Within("model"), b)
}

// expertsOf reads the number of experts of a block, and how many of them a token uses.
func (b *Builder) expertsOf(key, topKey string, usualTop int) (all, top int) {
	all, top = b.Count(key), b.Config.SizeOr(topKey, usualTop)
	return all, b.Config.atMost(topKey, top, key, all)
}

// mixture is a mixture of experts: each token uses those with the highest probabilities, and adds their outputs, times
// the probabilities. Experts that no token uses are not computed.
//
// Source: Shazeer et al., "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer", 2017,
// https://arxiv.org/abs/1701.06538.
type mixture struct {
	router  Layer
	before  Layer // of the experts alone, or nil
	experts []Layer
	top     int
	normed  bool // probabilities of the experts of a token sum to 1

	chances func(t *tensor.Tape, logits *tensor.Tensor) *tensor.Tensor // the probabilities
	choice  func(chances *tensor.Tensor) *tensor.Tensor                // by which experts are chosen
	factor  float32                                                    // of the outputs of experts, 0 means 1
	scales  *tensor.Tensor                                             // [N] of each expert, nil means 1
	shared  Layer                                                      // whose output is added, or nil
}

// newMixture makes a mixture of n experts; router is the name of the map to their logits.
func newMixture(b *Builder, router string, width, n, top int, normed bool, experts []Layer) *mixture {
	m := &mixture{router: b.Matrix(router, width, n), top: top, normed: normed, chances: tensor.Softmax, experts: experts}
	m.choice = func(chances *tensor.Tensor) *tensor.Tensor { return chances }
	return m
}

// experts makes experts with gates; maps are the names of the maps Gate, Up and Down.
func (m *rotaryDecoder) experts(b *Builder, maps [3]string, n, hidden int) (list []Layer) {
	for i := range n {
		list = append(list, newGated(b.At(fmt.Sprintf("experts.%d", i)), (*Builder).Matrix, maps[0], maps[1], maps[2], m.Width, hidden, m.activation))
	}
	return list
}

// stacked makes experts with gates whose maps are in two tensors: in [N 2H D] and out [N D H].
func (m *rotaryDecoder) stacked(b *Builder, in, out string, n, hidden int) (list []Layer) {
	gates, downs := b.stacked(in, n, m.Width, hidden, hidden), b.stacked(out, n, hidden, m.Width)
	for i := range min(len(gates), len(downs)) {
		list = append(list, &GatedFeedForward{gates[i][0], gates[i][1], downs[i][0], m.activation})
	}
	return list
}

// stacked returns the maps of n parts, each with maps of the same sizes, from one tensor [n Σouts in]; none if it does not
// fit.
func (b *Builder) stacked(name string, n, in int, outs ...int) [][]*nn.Linear {
	if !b.want(name, n, sum(outs), in) {
		return nil
	}
	all := slices.Repeat(outs, n)
	maps := emptyMaps(len(all))
	if !b.plan {
		b.weights(name, false, maps, in, all...)
		b.dict[len(b.dict)-1].Blocks = n
	}
	return slices.Collect(slices.Chunk(maps, len(outs)))
}

// experts reads the number of experts in stacked tensors, and how many of them a token uses.
func (s *Settings) experts(key, topKey string) (all, top int) {
	all, top = s.Size(key), s.Size(topKey)
	return all, s.atMost(topKey, top, key, all)
}

// atMost returns the number of experts of a token, or records that there are fewer.
func (s *Settings) atMost(topKey string, top int, key string, all int) int {
	if top > all {
		s.Fail(topKey, "is %d, want at most %s, which is %d", top, key, all)
	}
	return min(top, all)
}

// mixes reports whether a layer is or contains a mixture of experts.
func mixes(l Layer) bool {
	list, _ := l.(inTurn)
	_, mixed := l.(*mixture)
	return mixed || slices.ContainsFunc(list, mixes)
}

// Forward applies the mixture to each token. Shapes: x and out [B L D].
func (m *mixture) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	d, k, all := x.Dim(2), m.top, len(m.experts)
	n := x.Dim(0) * x.Dim(1)
	if n == 0 {
		return x
	}
	flat := tensor.Reshape(t, x, n, d)
	chances := m.chances(t, m.router.Forward(t, flat))
	flat = optional(t, m.before, flat)
	tokens, slots := make([][]int, all), make([][]int, all) // of each expert; token i has slots i·k to i·k+k
	_, chosen := tensor.TopK(m.choice(chances), k)
	for slot, e := range chosen {
		tokens[e], slots[e] = append(tokens[e], slot/k), append(slots[e], slot)
		chosen[slot] += slot / k * all
	}
	var outputs []*tensor.Tensor
	place, done := make([]int, n*k), 0 // of each slot in outputs
	for e, expert := range m.experts {
		if len(tokens[e]) == 0 {
			continue
		}
		outputs = append(outputs, expert.Forward(t, tensor.Gather(t, flat, tokens[e])))
		for _, slot := range slots[e] {
			place[slot], done = done, done+1
		}
	}
	weights := tensor.Reshape(t, tensor.Gather(t, tensor.Reshape(t, chances, n*all, 1), chosen), n, k)
	if m.normed {
		sums := tensor.Reshape(t, tensor.SumAxis(t, weights, 1), n, 1)
		weights = tensor.Div(t, weights, tensor.BroadcastTo(t, sums, n, k))
	}
	if m.scales != nil {
		ids := make([]int, len(chosen))
		for slot, at := range chosen {
			ids[slot] = at - slot/k*all
		}
		weights = tensor.Mul(t, weights, tensor.Reshape(t, tensor.Gather(t, tensor.Reshape(t, m.scales, all, 1), ids), n, k))
	}
	y := tensor.Gather(t, tensor.Concat(t, 0, outputs...), place)
	y = tensor.Mul(t, y, tensor.BroadcastTo(t, tensor.Reshape(t, scaled(t, weights, m.factor), n*k, 1), n*k, d))
	y = tensor.Reshape(t, tensor.SumAxis(t, tensor.Reshape(t, y, n, k, d), 1), x.Shape()...)
	if m.shared == nil {
		return y
	}
	return tensor.Add(t, y, m.shared.Forward(t, x))
}
