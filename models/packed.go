package models

import (
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// packed reports whether matrices are packed.
func (b *Builder) packed() bool { return b.numbers != 0 }

// matrix returns a packed matrix [out in], nil in the first call of a Family.New.
func (b *Builder) matrix(name string, transposed bool, in, out int) []*tensor.Packed {
	rows, columns := out, in
	if transposed {
		rows, columns = in, out
	}
	if !b.want(name, rows, columns) || b.plan {
		return []*tensor.Packed{nil}
	}
	return b.pack(name, transposed, in, out)
}

// pack returns the packed parts of a matrix whose shape has been checked.
func (b *Builder) pack(name string, transposed bool, in int, outs ...int) []*tensor.Packed {
	var parts []*tensor.Packed
	for _, out := range outs {
		parts = append(parts, tensor.NewPacked(out, in, b.numbers))
	}
	b.dict = append(b.dict, nn.Entry{Name: b.prefix + name, Packed: parts, Transposed: transposed})
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

// Words returns the token embeddings, name.weight, and a map from states to logits with the same
// matrix.
func (b *Builder) Words(name string, n, width int) (words, *nn.Linear) {
	if b.packed() {
		w := b.matrix(name+".weight", false, width, n)[0]
		return packedWords{w}, &nn.Linear{Packed: w}
	}
	e := b.Embedding(name, n, width)
	return e, &nn.Linear{Weight: e.Weight}
}
