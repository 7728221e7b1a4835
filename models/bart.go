package models

import (
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// bartFamily is BART: Marian with learnt positions and norms of the embeddings.
//
// Source: Lewis et al., "BART: Denoising Sequence-to-Sequence Pre-training for Natural Language Generation, Translation,
// and Comprehension", 2020, https://arxiv.org/abs/1910.13461.
var bartFamily = Family{
	Type: "bart", Name: "BART", New: newBART,
	Harmless: []string{
		"activation_dropout", "classif_dropout", "decoder_layerdrop", "encoder_layerdrop", "extra_pos_embeddings",
		"force_bos_token_to_be_generated", "gradient_checkpointing", "init_std", "pad_token_id",
	},
}

func newBART(b *Builder) Network {
	s := b.Config
	for key, value := range map[string]bool{"normalize_before": false, "normalize_embedding": true, "add_final_layer_norm": false, "add_bias_logits": false} {
		s.Only(key, value)
	}
	s.Only("static_position_embeddings", false)
	b.Unread("model.encoder.version", "model.decoder.version")
	s.Only("tie_word_embeddings", true)
	return twoTransformers(b, twoUsual{start: 2, activation: "gelu"}, func(at *Builder, d *stack) {
		d.positions = bartPositions{at.Embedding("embed_positions", bartOffset+d.sizes.Positions, d.sizes.Width)}
		d.wordsNorm = at.LayerNorm("layernorm_embedding", d.sizes.Width, marianEps)
	}).shifted(b)
}

// bartOffset is the number of rows before that of position 0.
const bartOffset = 2

// bartPositions are learnt positions after rows that are not used.
type bartPositions struct{ table *nn.Embedding }

// Forward looks up the positions of a batch.
func (p bartPositions) Forward(t *tensor.Tape, at []int, b, l int) *tensor.Tensor {
	rows := make([]int, len(at))
	for i, n := range at {
		rows[i] = n + bartOffset
	}
	return p.table.Forward(t, rows, b, l)
}
