package models

// bartFamily is BART: Marian with learnt positions and norms of the embeddings.
//
// Source: Lewis et al., "BART: Denoising Sequence-to-Sequence Pre-training for Natural Language Generation, Translation,
// and Comprehension", 2020, https://arxiv.org/abs/1910.13461.
var bartFamily = Family{
	Type: "bart", Name: "BART", New: newBART,
	Harmless: []string{
		"activation_dropout", "classif_dropout", "decoder_layerdrop", "encoder_layerdrop", "extra_pos_embeddings",
		"force_bos_token_to_be_generated", "init_std", "pad_token_id", "save_step",
	},
}

func newBART(b *Builder) Network {
	s := b.Config
	s.Only("normalize_embedding", true)
	s.off("normalize_before", "add_final_layer_norm", "add_bias_logits", "do_blenderbot_90_layernorm")
	s.off("static_position_embeddings")
	s.Only("tie_word_embeddings", true)
	b.Unread("*coder.version")
	return twoTransformers(b, 2, "gelu", false, func(at *Builder, d *stack) {
		const unused = 2 // rows
		d.positions, d.counting = at.Embedding("embed_positions", unused+d.sizes.Positions, d.sizes.Width), counting{first: unused}
		d.wordsNorm = at.LayerNorm("layernorm_embedding", d.sizes.Width, marianEps)
	})
}
