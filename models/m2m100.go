package models

import (
	"math"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/tensor"
)

// m2m100Family is M2M100 and the dense models of NLLB: Marian with norms before each part of a block and at the end of
// each stack, and with positions that begin after that of the padding token.
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
	b.Unread("model.encoder.version", "model.decoder.version", "model.encoder.embed_positions.weights", "model.decoder.embed_positions.weights")
	return twoTransformers(b, 2, "relu", true, func(at *Builder, d *stack) {
		z := d.sizes
		// In a target, steps of generation count the tokens that were read, whatever they are.
		pad, advance := s.token("pad_token_id", 1, z.Vocabulary), 0
		if z.Kind == heads.Decoder {
			advance = 1
		}
		d.place = countFrom(pad+1, pad, advance)
		d.positions = &sinusoids{width: z.Width, rows: func(n, width int) *tensor.Tensor { return m2m100Positions(n, width, pad) }}
		d.norm = at.LayerNorm("layer_norm", z.Width, marianEps)
	})
}

// m2m100Positions are n vectors of h = ⌊width/2⌋ sines, h cosines and, for an odd width, 0, with the frequencies
// 10000^(−i/(h−1)). The vector of position pad is 0.
//
// Differs: transformers computes the angles in float32, with an error of up to 6e-5 at position 1000.
func m2m100Positions(n, width, pad int) *tensor.Tensor {
	table, half := tensor.Zeros(n, width), width/2
	for i := range half {
		frequency := math.Pow(10000, -float64(i)/float64(max(half-1, 1)))
		for p := range n {
			if p != pad {
				sin, cos := math.Sincos(float64(p) * frequency)
				row := table.Data()[p*width:][:width]
				row[i], row[half+i] = float32(sin), float32(cos)
			}
		}
	}
	return table
}
