package models

import (
	"cmp"
	"fmt"
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// gemma4Family is the text model of Gemma 4: heads of another size in layers with full attention, whose values may be keys;
// keys and values that several layers use; another embedding of each token for each layer; outputs times a constant.
//
// Source: Gemma4TextModel of transformers.
var gemma4Family = Family{Type: "gemma4_text", Name: "Gemma 4", New: newGemma4, Harmless: []string{"moe_intermediate_size", "num_experts", "top_k_experts"}}

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
	s.off("enable_moe_block")
	local := slides(s, m.Layers, func(i int) bool { return (i+1)%6 != 0 })
	m.slide(s.SizeOr("sliding_window", 512), func(i int) bool { return i < m.Layers-1 && local(i) })
	// The sizes of layers with full attention, as published, or as transformers saves them.
	wide, equal := m.Sizes, s.Bool("attention_k_eq_v", false)
	head, groups := s.SizeOr("global_head_dim", 512), s.SizeOr("num_global_key_value_heads", m.KVHeads)
	if !equal {
		groups = m.KVHeads
	}
	if m.Heads%m.KVHeads != 0 {
		s.Fail("num_key_value_heads", "is %d, want a divisor of num_attention_heads, which is %d", m.KVHeads, m.Heads)
		m.KVHeads = m.Heads
	}
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

	// The layer whose keys and values each layer uses.
	blocks, from, last, first := make([]*block, m.Layers), make([]int, m.Layers), map[bool]int{}, m.Layers-s.Int("num_kv_shared_layers", 0)
	for i, window := range m.windows {
		if i < first {
			last[window > 0] = i
		}
		j, found := last[window > 0]
		if from[i] = j; !found {
			s.Fail("num_kv_shared_layers", "is %d, want fewer: layer %d uses keys of an earlier one of its type", m.Layers-first, i)
		}
	}
	m.attends = func(b *Builder, i int, c *attn.MultiHeadConfig, maps *Maps) {
		if m.windows[i] == 0 {
			c.HeadSize, c.KVHeads = wide.HeadSize, wide.KVHeads
			if equal {
				maps.V = ""
			}
		}
		c.QueryNorm = m.norm(b, "self_attn.q_norm", c.HeadSize)
		if from[i] != i {
			maps.K, maps.V = "", ""
			b.Unread(b.Name("self_attn.[kv]_*"))
			return
		}
		c.KeyNorm = m.norm(b, "self_attn.k_norm", c.HeadSize)
		c.ValueNorm = &nn.RMSNorm{Weight: tensor.Full(1, c.HeadSize), Eps: s.Eps("rms_norm_eps", 1e-6)}
	}
	double := s.Bool("use_double_wide_mlp", false)
	m.feedForward = func(m *rotaryDecoder, b *Builder, i int) Layer {
		own := *m
		if double && from[i] != i {
			own.Hidden *= 2
		}
		return own.gated(b, i)
	}
	size, n := s.Int("hidden_size_per_layer_input", 256), s.SizeOr("vocab_size_per_layer_input", 262144)
	if size < 0 {
		s.Fail("hidden_size_per_layer_input", "is %d, want 0 or more", size)
	} else if size > 0 && n < m.Vocabulary {
		s.Fail("vocab_size_per_layer_input", "is %d, want at least the %d tokens of vocab_size", n, m.Vocabulary)
	}
	m.beside = func(p *block, b *Builder, i int) {
		if blocks[i] = p; from[i] != i {
			p.from = blocks[from[i]]
			p.from.lends, p.self.K, p.self.V = true, p.from.self.K, p.from.self.V
		}
		factor := b.Fixed("layer_scalar", 1)
		scale := func(t *tensor.Tape, x *tensor.Tensor, _ *Run) *tensor.Tensor {
			return tensor.Scale(t, x, factor.Data()[0])
		}
		if p.end = scale; size == 0 {
			return
		}
		gate, out := b.Matrix("per_layer_input_gate", m.Width, size), b.Matrix("per_layer_projection", size, m.Width)
		norm := m.norm(b, "post_per_layer_input_norm", m.Width)
		p.end = func(t *tensor.Tape, x *tensor.Tensor, r *Run) *tensor.Tensor {
			y := tensor.Mul(t, m.activation(t, gate.Forward(t, x)), tensor.Slice(t, r.inputs, 2, i*size, (i+1)*size))
			return scale(t, tensor.Add(t, x, norm.Forward(t, out.Forward(t, y))), r)
		}
	}
	d := m.build(base, top).(*stack)
	if size > 0 {
		table, _ := base.Words("embed_tokens_per_layer", n, m.Layers*size)
		project, norm := base.Matrix("per_layer_model_projection", m.Width, m.Layers*size), m.norm(base, "per_layer_projection_norm", size)
		d.inputs = func(t *tensor.Tape, ids []int, h *tensor.Tensor) *tensor.Tensor {
			x := tensor.Reshape(t, project.Forward(t, h), h.Dim(0), h.Dim(1), m.Layers, size)
			x = norm.Forward(t, tensor.Scale(t, x, float32(1/math.Sqrt(float64(m.Width)))))
			own := tensor.Scale(t, table.Forward(t, ids, h.Dim(0), h.Dim(1)), float32(math.Sqrt(float64(size))))
			return tensor.Scale(t, tensor.Add(t, tensor.Reshape(t, x, own.Shape()...), own), math.Sqrt2/2)
		}
	}
	return d
}
