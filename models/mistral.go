package models

// mistralFamily is Mistral: Llama; its first version has a sliding window in every block.
//
// Source: Jiang et al., "Mistral 7B", 2023, https://arxiv.org/abs/2310.06825.
var mistralFamily = Family{Type: "mistral", Name: "Mistral", New: newMistral, Pruning: HeadCounts}

func newMistral(b *Builder) Network {
	s := b.Config
	m := llamaLike(b, Sizes{})
	if window := s.SizeOr("sliding_window", 4096); !s.null("sliding_window") {
		m.slide(window, nil)
	}
	return m.build(b.Within("model"), b)
}
