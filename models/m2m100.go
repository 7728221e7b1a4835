package models

import (
	"github.com/attn-go/attn/tensor"
)

// m2m100Family is M2M100 and the dense models of NLLB: Marian with norms before each part of a block and at the end of
// each stack, and with positions that begin after that of the padding token, whose vector is 0.
//
// Differs: transformers computes the angles in float32, with an error of up to 6e-5 at position 1000.
//
// Source: Fan et al., "Beyond English-Centric Multilingual Machine Translation", 2020, https://arxiv.org/abs/2010.11125,
// and NLLB Team, "No Language Left Behind", 2022, https://arxiv.org/abs/2207.04672.
var m2m100Family = Family{
	Type: "m2m_100", Name: "M2M100", New: newM2M100,
	Harmless: []string{"activation_dropout", "decoder_layerdrop", "encoder_layerdrop", "init_std"},
}

func newM2M100(b *Builder) Network {
	s := b.Config
	s.Only("decoder_vocab_size")
	s.Only("share_encoder_decoder_embeddings", true)
	if b.Has("final_logits_bias") {
		b.Fail("the file has final_logits_bias, which is not a tensor of M2M100")
	}
	b.Unread("*coder.version", "*coder.embed_positions.weights")
	return twoTransformers(b, 2, "relu", true, func(at *Builder, d *stack) {
		pad, width := s.token("pad_token_id", 1, d.sizes.Vocabulary), d.sizes.Width
		// A padding token in a target counts, as in a step of generation, which knows only the number of earlier tokens.
		d.counting = counting{first: pad + 1, padded: true, counts: d.sizes.Causal}
		d.positions = &sinusoids{width: width, rows: func(n int) *tensor.Tensor {
			table := halves(n, width, width/2, float64(max(width/2-1, 1)))
			clear(table.Data()[min(pad, n)*width : min(pad+1, n)*width])
			return table
		}}
		d.norm = at.LayerNorm("layer_norm", width, marianEps)
	})
}
