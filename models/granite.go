package models

import "github.com/attn-go/attn/score"

// graniteFamily is Granite: Llama with four multipliers.
//
// Source: Granite Team, "Granite 3.0 Language Models", 2024,
// https://github.com/ibm-granite/granite-3.0-language-models.
var graniteFamily = Family{Type: "granite", Name: "Granite", New: newGranite, Pruning: HeadCounts}

func newGranite(b *Builder) Network {
	s := b.Config
	m := llamaLike(b, Sizes{})
	m.linear = s.biased("mlp_bias", false)
	m.bias = s.attentionBias(false)
	m.granite(s)
	return m.build(b.Within("model"), b)
}

// granite reads the multipliers.
func (m *rotaryDecoder) granite(s *Settings) {
	m.score = score.DotScale(float32(s.multiplier("attention_multiplier", 1)))
	m.scale, m.branch = float32(s.multiplier("embedding_multiplier", 1)), float32(s.multiplier("residual_multiplier", 1))
	m.shrink = 1 / float32(s.multiplier("logits_scaling", 1))
}

// multiplier returns a positive number whose inverse is in the range of float32.
func (s *Settings) multiplier(key string, usual float64) float64 {
	x := s.Float(key, usual)
	if !(x >= 1e-30 && x <= 1e30) {
		s.Fail(key, "is %v, want a positive number from 1e-30 to 1e30", x)
		return usual
	}
	return x
}
