package models

import (
	"math"
	"slices"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// The generations of Gemma multiply the embeddings by √D, have norms whose gain is 1 + weight,
// gate with tanh-approximated GELU, and use the embedding matrix as the map to logits.

// gemmaFamily is the first Gemma.
//
// Source: Gemma Team, "Gemma: Open Models Based on Gemini Research and Technology", 2024,
// https://arxiv.org/abs/2403.08295.
var gemmaFamily = Family{
	Type: "gemma", Name: "Gemma", New: newGemma, Pruning: HeadCounts, Harmless: []string{"hidden_activation"},
}

func newGemma(b *Builder) Network {
	b.Config.Only("use_bidirectional_attention", false)
	m := gemma(b, Sizes{HeadSize: 256})
	// "gelu" in early files means the tanh approximation, with which the models were trained.
	if s := b.Config; s.Text("hidden_act", "gelu") != "gelu" {
		m.activation = s.Activation("hidden_act", "")
	}
	return m.build(b.Within("model"), b)
}

// gemma2Family is Gemma 2: norms also after both parts of a block, soft-caps of scores and
// logits, and a sliding window in every other block, starting with the first.
//
// Source: Gemma Team, "Gemma 2: Improving Open Language Models at a Practical Size", 2024,
// https://arxiv.org/abs/2408.00118.
var gemma2Family = Family{
	Type: "gemma2", Name: "Gemma 2", New: newGemma2, Pruning: HeadCounts, Harmless: gemma2Harmless,
}

func newGemma2(b *Builder) Network {
	s := b.Config
	s.Only("use_bidirectional_attention", false)
	m := gemma2(b, Sizes{HeadSize: 256})
	m.softCap, m.logitCap = s.softCap("attn_logit_softcapping", 50), s.softCap("final_logit_softcapping", 30)
	s.Only("sliding_window_size", m.slideSome(s, func(i int) bool { return i%2 == 0 }))
	return m.build(b.Within("model"), b)
}

// gemma3Family is the text model of Gemma 3: Gemma 2 with norms of queries and keys, five blocks
// with a sliding window to one without, and a different rotary base in the blocks with a sliding
// window. EmbeddingGemma is an encoder: a query attends to keys on both sides.
//
// Source: Gemma Team, "Gemma 3 Technical Report", 2025, https://arxiv.org/abs/2503.19786; Vera et al.,
// "EmbeddingGemma: Powerful and Lightweight Text Representations", 2025, https://arxiv.org/abs/2509.20354.
var gemma3Family = Family{
	Type: "gemma3_text", Name: "Gemma 3", New: newGemma3, Pruning: HeadCounts, Harmless: gemma2Harmless,
}

// gemma2Harmless are settings of Gemma 2 and 3 that have no effect.
var gemma2Harmless = []string{"cache_implementation", "hidden_act"}

func newGemma3(b *Builder) Network {
	m := gemma3(b)
	m.Causal = !b.Config.Bool("use_bidirectional_attention", false)
	d := m.build(b.Within("model"), b).(*stack)
	if !m.Causal { // EmbeddingGemma
		d.logits = nil
	}
	return d
}

// gemma3WithImages is Gemma 3 in a file that also contains an image model, which is not read.
var gemma3WithImages = Family{Type: "gemma3", Name: "Gemma 3", New: newGemma3WithImages, Pruning: HeadCounts, Harmless: []string{
	"boi_token_index", "eoi_token_index", "image_token_index", "mm_tokens_per_image", "vision_config",
	"cache_implementation", "hidden_act", // gemma2Harmless; a call of append would link this family into every program
}}

func newGemma3WithImages(b *Builder) Network {
	b.Unread("vision_tower.*", "multi_modal_projector.*", "model.vision_tower.*", "model.multi_modal_projector.*")
	text := b.textModel(gemma3Family)
	text.Config.Only("use_bidirectional_attention", false)
	m := gemma3(text)
	m.tied = b.Config.Bool("tie_word_embeddings", m.tied)
	if b.HasAny("language_model.") {
		top := text.At("language_model")
		return m.build(top.Within("model"), top)
	}
	return m.build(text.At("model.language_model"), text)
}

// textModel returns a Builder with the settings of the text model of a family, a decoder.
func (b *Builder) textModel(f Family) *Builder {
	oneWay(b.Config)
	s := b.Config.Part(textConfig)
	if s == nil {
		b.Config.Fail(textConfig, "is missing, want an object")
		s = b.Config // only the first error is returned
	}
	s.Only("model_type", f.Type)
	s.Ignore(harmless...)
	s.Ignore(f.Harmless...)
	return &Builder{s, b.building, b.prefix}
}

// gemma returns the settings common to all generations.
func gemma(b *Builder, usual Sizes) rotaryDecoder {
	s := b.Config
	m := newRotary(b, usual)
	m.activation, m.tied = tensor.TanhGELU, s.Bool("tie_word_embeddings", true)
	m.norm = s.plusOneNorm()
	m.pad, m.scale = []int{0}, float32(math.Sqrt(float64(m.Width)))
	m.bias = s.attentionBias(false)
	return m
}

// gemma2 returns the settings common to Gemma 2 and 3.
func gemma2(b *Builder, usual Sizes) rotaryDecoder {
	s := b.Config
	m := gemma(b, usual)
	m.activation, m.norms = s.Activation("hidden_activation", "gelu_pytorch_tanh"), normsAround
	m.score = score.DotScale(float32(1 / math.Sqrt(s.multiplier("query_pre_attn_scalar", 256))))
	return m
}

// gemma3 returns the settings of Gemma 3, in files with and without images.
func gemma3(b *Builder) rotaryDecoder {
	s := b.Config
	// Files with images omit settings that have their default.
	m := gemma2(b, Sizes{Heads: 8, KVHeads: 4, HeadSize: 256, Vocabulary: 262208, Positions: 131072})
	m.headNorms = eachHead
	s.Only("attn_logit_softcapping") // which transformers ignores
	m.logitCap = s.softCap("final_logit_softcapping", 0)
	period := s.SizeOr("sliding_window_pattern", 6)
	s.Ignore("_sliding_window_pattern")
	if !s.Has("layer_types") && !s.Has("sliding_window_pattern") { // beside which transformers saves it, too
		s.Only("_sliding_window_pattern", period)
	}
	m.slideSome(s, func(i int) bool { return (i+1)%period != 0 })
	m.twoRopes(b, m.Sizes, s.base("rope_theta", 1e6), s.base("rope_local_base_freq", 1e4))
	return m
}

// slideSome gives blocks a sliding window: those of layer_types, or else of usual. It returns the window.
func (m *rotaryDecoder) slideSome(s *Settings, usual func(block int) bool) int {
	window := s.SizeOr("sliding_window", 4096)
	if m.slide(window, slides(s, m.Layers, usual)); s.null("sliding_window") && slices.Max(m.windows) > 0 {
		s.Fail("sliding_window", "is null, want a number for the layers that have one")
	}
	return window
}

// plusOneNorm makes norms that multiply by 1 + weight.
func (s *Settings) plusOneNorm() func(b *Builder, name string, width int) nn.Norm {
	eps := s.Eps("rms_norm_eps", 1e-6)
	return func(b *Builder, name string, width int) nn.Norm { return plusOne{b.RMSNorm(name, width, eps)} }
}

// plusOne is an RMSNorm that multiplies by 1 + weight.
type plusOne struct{ *nn.RMSNorm }

// Forward normalises x.
func (n plusOne) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.RMSNorm(t, x, tensor.Shift(t, n.Weight, 1), n.Eps)
}
