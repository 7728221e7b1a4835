package models

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// gemma4Family is the text model of Gemma 4: heads of another size in layers with full attention, whose values may be keys;
// keys and values that several layers use; another embedding of each token for each layer; outputs times a constant.
//
// Source: Gemma4TextModel of transformers.
var gemma4Family = Family{Type: "gemma4_text", Name: "Gemma 4", New: newGemma4}

func newGemma4(b *Builder) Network { return gemma4(b, b.Within("model"), b) }

// gemma4WithImages is Gemma 4 in a file that also contains models of images and sound, which are not read.
var gemma4WithImages = Family{Type: "gemma4", Name: "Gemma 4", New: newGemma4WithImages, Harmless: []string{
	"audio_config", "audio_token_id", "boa_token_id", "boi_token_id", "eoa_token_id", "eoa_token_index", "eoi_token_id", "image_token_id",
	"video_token_id", "vision_config", "vision_soft_tokens_per_image",
}}

func newGemma4WithImages(b *Builder) Network {
	b.Unread("model.vision_tower.*", "model.embed_vision.*", "model.audio_tower.*", "model.embed_audio.*")
	text := b.textModel(gemma4Family)
	text.Config.Only("tie_word_embeddings", b.Config.Bool("tie_word_embeddings", true))
	return gemma4(text, text.At("model.language_model"), text)
}

// gemma4 makes the layers from the tensors of base, and the map to logits from those of top.
func gemma4(b, base, top *Builder) Network {
	s := b.Config
	m := gemma(b, Sizes{Heads: 8, KVHeads: 4, HeadSize: 256, Hidden: 9216, Vocabulary: 262144, Positions: 131072})
	m.norm, m.norms, m.activation = s.rmsNorm(1e-6), normsAround, s.Activation("hidden_activation", "gelu_pytorch_tanh")
	m.score, m.logitCap = score.DotScale(1), s.softCap("final_logit_softcapping", 0)
	s.Only("use_bidirectional_attention", "vision")
	experts := m.gemmaExperts(b)
	local := slides(s, m.Layers, func(i int) bool { return (i+1)%6 != 0 })
	m.slide(s.SizeOr("sliding_window", 512), func(i int) bool { return i < m.Layers-1 && local(i) })
	// The sizes of layers with full attention, as published, or as transformers saves them.
	wide, equal := m.Sizes, s.Bool("attention_k_eq_v", false)
	head, groups := s.SizeOr("global_head_dim", 512), s.SizeOr("num_global_key_value_heads", m.KVHeads)
	if !equal {
		groups = m.KVHeads
	}
	m.wantGroups(s)
	const own, e, g = "per_layer_config", "head_dim", "num_key_value_heads"
	if layers := get[map[string]map[string]int](s, own, "an object of sizes by layer", nil); layers != nil {
		last, want := layers[fmt.Sprint(m.Layers-1)], map[string]any{}
		head, groups = max(1, last[e]), max(1, cmp.Or(last[g], m.KVHeads))
		sizes := map[string]int{e: head}
		if last[g] != 0 {
			sizes[g] = groups
		}
		for i, window := range m.windows {
			if window == 0 {
				want[fmt.Sprint(i)] = sizes
			}
		}
		s.Only(own, want)
	}
	wide.HeadSize, wide.KVHeads = s.rotated("global_head_dim", head), groups
	if rope := s.Part("rope_parameters"); rope == nil || rope.Part("full_attention") == nil || rope.Part("sliding_attention") == nil {
		s.Fail("rope_parameters", "is missing, want an object with full_attention and sliding_attention")
	}
	m.twoRopes(b, wide, 10000, 10000)

	blocks, from := make([]*block, m.Layers), m.lenders(s, 0)
	m.attends = func(b *Builder, i int, c *attn.MultiHeadConfig, maps *Maps) {
		if m.windows[i] == 0 {
			c.HeadSize, c.KVHeads = wide.HeadSize, wide.KVHeads
			if equal {
				maps.V = ""
			}
		}
		m.borrows(b, from[i] != i, c, maps)
	}
	double := s.Bool("use_double_wide_mlp", false)
	m.feedForward = func(m *rotaryDecoder, b *Builder, i int) Layer {
		own := *m
		if double && from[i] != i {
			own.Hidden *= 2
		}
		dense := own.gated(b, i)
		if experts == nil {
			return dense
		}
		norm := func(name string) Layer { return m.norm(b, name, m.Width) }
		return residual{
			inTurn{norm("pre_feedforward_layernorm"), dense, norm("post_feedforward_layernorm_1")},
			inTurn{experts(b), norm("post_feedforward_layernorm_2")},
		}
	}
	inputs := m.layerInputs(s)
	if inputs.size > 0 && inputs.vocabulary < m.Vocabulary {
		s.Fail("vocab_size_per_layer_input", "is %d, want at least the %d tokens of vocab_size", inputs.vocabulary, m.Vocabulary)
	}
	m.beside = func(p *block, b *Builder, i int) {
		if blocks[i] = p; from[i] != i {
			p.borrow(blocks[from[i]])
		}
		factor, add := b.Fixed("layer_scalar", 1), inputs.gate(b, i)
		p.end = func(t *tensor.Tape, x *tensor.Tensor, r *Run) *tensor.Tensor {
			if add != nil {
				x = tensor.Add(t, x, add(t, x, r))
			}
			return tensor.Scale(t, x, factor.Data()[0])
		}
	}
	d := m.build(base, top).(*stack)
	inputs.build(base, d, true)
	return d
}

// wantGroups records that heads cannot share the keys and values of as many groups.
func (m *rotaryDecoder) wantGroups(s *Settings) {
	if m.Heads%m.KVHeads != 0 {
		s.Fail("num_key_value_heads", "is %d, want a divisor of num_attention_heads, which is %d", m.KVHeads, m.Heads)
		m.KVHeads = m.Heads
	}
}

// gemmaExperts returns what makes a mixture of experts beside a feed-forward network, nil if there is none. Both read the
// states before the norm of the block, and each has its own norms.
func (m *rotaryDecoder) gemmaExperts(b *Builder) func(b *Builder) Layer {
	s := b.Config
	if !s.Bool("enable_moe_block", false) {
		s.Ignore("moe_intermediate_size", "num_experts", "top_k_experts")
		return nil
	}
	if s.null("num_experts") || !s.Has("num_experts") {
		s.Fail("enable_moe_block", "is true, want false, or a number in num_experts")
		return nil
	}
	n, top := s.experts("num_experts", "top_k_experts")
	hidden, eps := s.Size("moe_intermediate_size"), s.Eps("rms_norm_eps", 1e-6)
	m.norms.ff = ""
	return func(b *Builder) Layer {
		x := newMixture(b, "router.proj", m.Width, n, top, true, m.stacked(b.At("experts"), "gate_up_proj", "down_proj", n, hidden))
		scale := Activation(func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
			return tensor.Scale(t, x, float32(1/math.Sqrt(float64(m.Width))))
		})
		x.router = inTurn{&nn.RMSNorm{Weight: b.Tensor("router.scale", m.Width), Eps: eps}, scale, x.router}
		x.before, x.scales = m.norm(b, "pre_feedforward_layernorm_2", m.Width), b.Tensor("router.per_expert_scale", n)
		return x
	}
}

// lenders returns, for each layer, the one whose keys and values it uses: its own, or in the last ones those of the last
// earlier layer of its type. usual is the default of their number.
func (m *rotaryDecoder) lenders(s *Settings, usual int) []int {
	const key = "num_kv_shared_layers"
	from, last, first := make([]int, m.Layers), map[bool]int{}, m.Layers-s.Int(key, usual)
	for i, window := range m.windows {
		if i < first {
			last[window > 0] = i
		}
		j, found := last[window > 0]
		if from[i] = j; !found {
			s.Fail(key, "is %d, want fewer: layer %d uses keys of an earlier one of its type", m.Layers-first, i)
		}
	}
	return from
}

// borrows adds the norms of queries, keys and values to a layer, which may use the keys and values of another one.
func (m *rotaryDecoder) borrows(b *Builder, borrows bool, c *attn.MultiHeadConfig, maps *Maps) {
	c.QueryNorm = m.norm(b, "self_attn.q_norm", c.HeadSize)
	if borrows {
		maps.K, maps.V = "", ""
		b.Unread(b.Name("self_attn.[kv]_*"))
		return
	}
	c.KeyNorm = m.norm(b, "self_attn.k_norm", c.HeadSize)
	c.ValueNorm = &nn.RMSNorm{Weight: tensor.Full(1, c.HeadSize), Eps: b.Config.Eps("rms_norm_eps", 1e-6)}
}

// borrow makes a block attend to the keys and values of an earlier one.
func (b *block) borrow(from *block) {
	b.from, from.lends = from, true
	b.self.K, b.self.V = from.self.K, from.self.V
}

// layerInputs are further embeddings of each token, of which each layer has its own: x·W_p of the first embeddings x,
// normalised, and rows of a table.
type layerInputs struct {
	*rotaryDecoder
	size, vocabulary int
}

// layerInputs reads the sizes.
func (m *rotaryDecoder) layerInputs(s *Settings) layerInputs {
	in := layerInputs{m, s.Int("hidden_size_per_layer_input", 256), s.SizeOr("vocab_size_per_layer_input", 262144)}
	if in.size < 0 {
		s.Fail("hidden_size_per_layer_input", "is %d, want 0 or more", in.size)
	}
	return in
}

// gate returns what a layer adds: norm((act(x·W_gate) ⊙ inputs)·W_out). It is nil without inputs.
func (in layerInputs) gate(b *Builder, layer int) func(t *tensor.Tape, x *tensor.Tensor, r *Run) *tensor.Tensor {
	if in.size <= 0 {
		return nil
	}
	gate, out := b.Matrix("per_layer_input_gate", in.Width, in.size), b.Matrix("per_layer_projection", in.size, in.Width)
	norm := in.norm(b, "post_per_layer_input_norm", in.Width)
	return func(t *tensor.Tape, x *tensor.Tensor, r *Run) *tensor.Tensor {
		y := tensor.Mul(t, in.activation(t, gate.Forward(t, x)), tensor.Slice(t, r.inputs, 2, layer*in.size, (layer+1)*in.size))
		return norm.Forward(t, out.Forward(t, y))
	}
}

// build gives a stack the inputs of all layers.
func (in layerInputs) build(b *Builder, d *stack, table bool) {
	if in.size <= 0 {
		return
	}
	var words words
	all, vocabulary := in.Layers*in.size, in.vocabulary
	if table {
		words, _ = b.Words("embed_tokens_per_layer", vocabulary, all)
	}
	project, norm := b.Matrix("per_layer_model_projection", in.Width, all), in.norm(b, "per_layer_projection_norm", in.size)
	d.inputs = func(t *tensor.Tape, ids []int, h *tensor.Tensor) *tensor.Tensor {
		x := tensor.Reshape(t, project.Forward(t, tensor.Slice(t, h, 2, 0, in.Width)), h.Dim(0), h.Dim(1), in.Layers, in.size)
		x = norm.Forward(t, tensor.Scale(t, x, float32(1/math.Sqrt(float64(in.Width)))))
		x = tensor.Reshape(t, x, h.Dim(0), h.Dim(1), all)
		if words == nil {
			return x
		}
		own := slices.Clone(ids)
		for i, id := range own {
			if id >= vocabulary { // as in transformers
				own[i] = 0
			}
		}
		y := tensor.Scale(t, words.Forward(t, own, h.Dim(0), h.Dim(1)), float32(math.Sqrt(float64(in.size))))
		return tensor.Scale(t, tensor.Add(t, x, y), math.Sqrt2/2)
	}
}
