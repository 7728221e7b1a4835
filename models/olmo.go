package models

// olmo2Family is OLMo 2: Llama with norms after both parts of a block instead of before, and norms of all queries and of
// all keys of a token.
//
// Source: OLMo Team, "2 OLMo 2 Furious", 2025, https://arxiv.org/abs/2501.00656.
var olmo2Family = Family{Type: "olmo2", Name: "OLMo 2", New: newOLMo2}

func newOLMo2(b *Builder) Network {
	m := olmo(b)
	return m.build(b.Within("model"), b)
}

// olmo3Family is OLMo 3: OLMo 2 with a sliding window in three of four blocks, whose rotary frequencies are not scaled.
//
// Source: OLMo Team, "Olmo 3", 2025, https://arxiv.org/abs/2512.13961.
var olmo3Family = Family{Type: "olmo3", Name: "OLMo 3", New: newOLMo3}

func newOLMo3(b *Builder) Network {
	s, m := b.Config, olmo(b)
	m.slide(s.SizeOr("sliding_window", 4096), slides(s, m.Layers, func(i int) bool { return (i+1)%4 != 0 }))
	const base = 500000
	if s.Only("rope_theta", base); !s.Has("rope_theta") && !s.Has("rope_parameters") {
		s.Fail("rope_theta", "is missing, want %d: versions of transformers differ in its default", base)
	}
	m.twoRopes(b, base, base)
	return m.build(b.Within("model"), b)
}

// olmo returns the settings common to both.
func olmo(b *Builder) rotaryDecoder {
	m := llamaLike(b, Sizes{})
	m.norm, m.norms, m.headNorms = b.Config.rmsNorm(1e-5), normsAfter, headsAsWhole
	m.bias, m.pad = b.Config.attentionBias(false), []int{1}
	return m
}
