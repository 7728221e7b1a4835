package models

import (
	"slices"

	"github.com/attn-go/attn"
)

// qwen2Family is Qwen2 and Qwen2.5: Llama with biases in the maps of queries, keys and values.
//
// Source: Yang et al., "Qwen2 Technical Report", 2024, https://arxiv.org/abs/2407.10671.
var qwen2Family = Family{Type: "qwen2", Name: "Qwen2", New: newQwen2, Pruning: HeadCounts}

func newQwen2(b *Builder) Network {
	m := qwen(b, Sizes{})
	m.bias = attn.Query | attn.Key | attn.Value
	return m.build(b.Within("model"), b)
}

// qwen3Family is Qwen3: Llama with norms of queries and keys, and a separate setting for the size
// of heads.
//
// Source: Yang et al., "Qwen3 Technical Report", 2025, https://arxiv.org/abs/2505.09388.
var qwen3Family = Family{Type: "qwen3", Name: "Qwen3", New: newQwen3, Pruning: HeadCounts}

func newQwen3(b *Builder) Network {
	m := qwen(b, Sizes{HeadSize: 128})
	m.headNorms = eachHead
	m.bias = b.Config.attentionBias(false)
	return m.build(b.Within("model"), b)
}

// qwen returns the settings common to both. Upper blocks may have a sliding window.
func qwen(b *Builder, usual Sizes) rotaryDecoder {
	s := b.Config
	m := llamaLike(b, usual)
	s.Only("use_mrope", false)
	from := s.Int("max_window_layers", 28)
	m.slideIfUsed(s, 4096, func(i int) bool { return i >= from })
	return m
}

// slideIfUsed gives blocks a sliding window if use_sliding_window is set: those of layer_types, or else of usual.
// without is the window if the settings have none, 0 for no window.
func (m *rotaryDecoder) slideIfUsed(s *Settings, without int, usual func(block int) bool) {
	window := s.SizeOr("sliding_window", without)
	used := s.Bool("use_sliding_window", false) && !s.null("sliding_window") && window > 0
	m.slide(window, slides(s, m.Layers, func(i int) bool { return used && usual(i) }))
	if !used && slices.Max(m.windows) > 0 {
		s.Fail("layer_types", "has sliding_attention, but no window is used, want use_sliding_window and sliding_window")
	}
}
