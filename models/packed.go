package models

import (
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// packed reports whether matrices are packed.
func (b *Builder) packed() bool { return b.format != 0 }

// pack returns the packed parts of a matrix whose shape has been checked.
func (b *Builder) pack(name string, transposed bool, in int, outs ...int) []*tensor.Packed {
	var parts []*tensor.Packed
	for _, out := range outs {
		parts = append(parts, tensor.NewPacked(out, in, b.format))
	}
	b.dict = append(b.dict, nn.Entry{Name: b.stored(name), Packed: parts, Transposed: transposed})
	return parts
}

// words are the embeddings of tokens.
type words interface {
	Forward(t *tensor.Tape, ids []int, b, l int) *tensor.Tensor
}

// packedWords are packed embeddings.
type packedWords struct{ *tensor.Packed }

// Forward looks up a batch of token ids.
func (w packedWords) Forward(t *tensor.Tape, ids []int, b, l int) *tensor.Tensor {
	return tensor.Reshape(t, w.Rows(t, ids), b, l, w.Shape()[1])
}

// Words returns the token embeddings, name.weight, and a linear map from hidden states to logits
// that uses the same matrix (weight tying).
func (b *Builder) Words(name string, n, width int) (words, *nn.Linear) {
	l := b.Matrix(name, width, n)
	if b.packed() {
		return packedWords{l.Packed}, l
	}
	e := &nn.Embedding{Weight: l.Weight}
	// States of unit variance have logits of unit variance, and √width times the vectors have unit variance. Source:
	// Press and Wolf, "Using the Output Embedding to Improve Language Models", 2017, https://arxiv.org/abs/1608.05859;
	// Vaswani et al. 2017, section 3.4.
	b.draw(e, func(rng *rand.Rand) nn.Module {
		return nn.NewEmbedding(n, width, float32(1/math.Sqrt(float64(width))), rng)
	})
	return e, l
}
