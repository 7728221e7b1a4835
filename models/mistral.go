package models

// mistralFamily is Mistral: Llama; its first version has a sliding window in every block.
//
// Source: Jiang et al., "Mistral 7B", 2023, https://arxiv.org/abs/2310.06825.
var mistralFamily = Family{Type: "mistral", Name: "Mistral", New: newMistral, Pruning: HeadCounts}

func newMistral(b *Builder) Network {
	m := mistral(b)
	return m.build(b.Within("model"), b)
}

// mistral returns the settings of Mistral, in files with and without images.
func mistral(b *Builder) rotaryDecoder {
	s := b.Config
	m := llamaLike(b, Sizes{})
	if window := s.SizeOr("sliding_window", 4096); !s.null("sliding_window") {
		m.slide(window, nil)
	}
	return m
}

// mistral3Family is Mistral Small 3.1 and Ministral 3: Mistral or Ministral 3 in a file that also contains an image model,
// which is not read.
var mistral3Family = Family{Type: "mistral3", Name: "Mistral 3", New: newMistral3, Pruning: HeadCounts, Harmless: []string{
	"image_token_index", "multimodal_projector_bias", "projector_hidden_act", "spatial_merge_size", "vision_config", "vision_feature_layer",
}}

func newMistral3(b *Builder) Network {
	b.Unread("vision_tower.*", "multi_modal_projector.*", "model.vision_tower.*", "model.multi_modal_projector.*")
	family, build := mistralFamily, mistral
	if s := b.Config.Part(textConfig); s != nil && s.Text("model_type", "mistral") == ministral3Family.Type {
		family, build = ministral3Family, ministral3
	}
	text := b.textModel(family)
	m := build(text)
	text.Config.Ignore("tie_word_embeddings") // that of the whole model counts, unless the file has a head
	base, top := text.At("model.language_model"), text
	if b.HasAny("language_model.") {
		top = text.At("language_model")
		base = top.Within("model")
	}
	m.tied = b.Config.Bool("tie_word_embeddings", true) && !top.Has("lm_head.weight")
	return m.build(base, top)
}
