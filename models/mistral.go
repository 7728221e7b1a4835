package models

// mistralFamily is Mistral: Llama; its first version has a sliding window in every block.
//
// Source: Jiang et al., "Mistral 7B", 2023, https://arxiv.org/abs/2310.06825.
var mistralFamily = Family{Type: "mistral", Name: "Mistral", New: newMistral, Pruning: HeadCounts}

func newMistral(b *Builder) Network {
	s := b.Config
	m := rotaryDecoder{
		Sizes:      rotarySizes(b, Sizes{}),
		eps:        s.Eps("rms_norm_eps", 1e-6),
		activation: s.Activation("hidden_act", "silu"),
		tied:       s.Bool("tie_word_embeddings", false),
	}
	if window := s.SizeOr("sliding_window", 4096); !s.null("sliding_window") {
		m.window = func(int) int { return window }
	}
	m.rotate(b)
	return m.build(b.Within("model"), b)
}
