package models

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Layer maps each vector of a sequence independently: a feed-forward network, a norm.
type Layer interface {
	Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor
}

// Block is attention and a feed-forward network with their residual connections: one layer
// of a transformer.
type Block interface {
	// Forward returns the next hidden states. Shapes: x and out [B L D].
	Forward(t *tensor.Tape, x *tensor.Tensor, c Call) *tensor.Tensor
	// Attention returns the layer's self-attention.
	Attention() *attn.MultiHead
}

// Call is the data of a run that a Block receives.
type Call struct {
	Run *Run
	// Number is the number of the block, from 0.
	Number int
	// Lens are the lengths of the sequences of x, nil if they are equal.
	Lens []int

	memory *memory // of the source, for the decoder of an encoder–decoder
}

// attend is self-attention over x, and over the tokens in the cache if there is one.
func (c Call) attend(t *tensor.Tape, self *attn.MultiHead, x *tensor.Tensor, o attn.Options) *tensor.Tensor {
	o = c.Run.options(o, self, c.Lens)
	if cache := c.Run.cache(c.Number); cache != nil {
		return self.Extend(t, x, cache, o).Out
	}
	return self.Forward(t, x, x, x, o).Out
}

// PostNorm is a block that normalises after each residual sum, like the transformer of 2017 and
// BERT:
//
//	x ← SelfNorm(x + Self(x))
//	x ← CrossNorm(x + Cross(x, source))    in the decoder of an encoder–decoder
//	x ← FFNorm(x + FF(x))
type PostNorm struct {
	Self      *attn.MultiHead
	SelfNorm  Layer
	Cross     *attn.MultiHead // or nil
	CrossNorm Layer
	FF        Layer
	FFNorm    Layer
	// Options are the attention options of the layer: masks, biases, soft-cap. A Run adds to them.
	Options attn.Options
}

// Forward applies the block.
func (b *PostNorm) Forward(t *tensor.Tape, x *tensor.Tensor, c Call) *tensor.Tensor {
	x = b.SelfNorm.Forward(t, tensor.Add(t, x, c.attend(t, b.Self, x, b.Options)))
	if b.Cross != nil {
		x = b.CrossNorm.Forward(t, tensor.Add(t, x, c.attendAcross(t, b.Cross, x)))
	}
	return b.FFNorm.Forward(t, tensor.Add(t, x, b.FF.Forward(t, x)))
}

// Attention returns Self.
func (b *PostNorm) Attention() *attn.MultiHead { return b.Self }

// CrossAttention returns Cross.
func (b *PostNorm) CrossAttention() *attn.MultiHead { return b.Cross }

// PreNorm is a block that normalises before each branch, like GPT-2 and Llama, and after it, like
// Gemma 2. Norms that are nil are left out:
//
//	x ← x + SelfAfter(Self(SelfNorm(x)))
//	x ← x + Cross(CrossNorm(x), source)    in the decoder of an encoder–decoder
//	x ← x + FFAfter(FF(FFNorm(x)))
type PreNorm struct {
	SelfNorm  Layer
	Self      *attn.MultiHead
	SelfAfter Layer
	CrossNorm Layer
	Cross     *attn.MultiHead // or nil
	FFNorm    Layer
	FF        Layer
	FFAfter   Layer
	// Dropout is the probability of dropping an element of a branch in training.
	Dropout float32
	// Options are the attention options of the layer: masks, biases, soft-cap. A Run adds to them.
	Options attn.Options
}

// Forward applies the block.
func (b *PreNorm) Forward(t *tensor.Tape, x *tensor.Tensor, c Call) *tensor.Tensor {
	add := func(branch *tensor.Tensor) { x = tensor.AddDropout(t, x, branch, b.Dropout) }
	add(optional(t, b.SelfAfter, c.attend(t, b.Self, optional(t, b.SelfNorm, x), b.Options)))
	if b.Cross != nil {
		add(c.attendAcross(t, b.Cross, optional(t, b.CrossNorm, x)))
	}
	add(optional(t, b.FFAfter, b.FF.Forward(t, optional(t, b.FFNorm, x))))
	return x
}

// Attention returns Self.
func (b *PreNorm) Attention() *attn.MultiHead { return b.Self }

// CrossAttention returns Cross.
func (b *PreNorm) CrossAttention() *attn.MultiHead { return b.Cross }

// optional applies a layer unless it is nil.
func optional(t *tensor.Tape, l Layer, x *tensor.Tensor) *tensor.Tensor {
	if l == nil {
		return x
	}
	return l.Forward(t, x)
}

// GatedFeedForward is Down(Activation(Gate(x))·Up(x)): SwiGLU with SiLU, or GeGLU with GELU.
//
// Source: Shazeer, "GLU Variants Improve Transformer", 2020, https://arxiv.org/abs/2002.05202.
type GatedFeedForward struct {
	Gate, Up, Down *nn.Linear
	Activation     Activation
}

// Forward applies the network to each position. Shapes: x and out [… D].
func (f *GatedFeedForward) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	y := nn.Linears(t, x, f.Gate, f.Up)
	return f.Down.Forward(t, tensor.Mul(t, f.Activation(t, y[0]), y[1]))
}

// attentionOf returns the self-attention layers of blocks.
func attentionOf(blocks []Block) []*attn.MultiHead {
	layers := make([]*attn.MultiHead, len(blocks))
	for i, b := range blocks {
		layers[i] = b.Attention()
	}
	return layers
}

// through runs the blocks in order and passes the states between them to the Run's callback.
// last, if not nil, is applied to the output of the last block.
func through(t *tensor.Tape, x *tensor.Tensor, blocks []Block, last Layer, c Call) *tensor.Tensor {
	r := c.Run
	r.state(0, x)
	begin := t.Mark()
	for i, b := range blocks {
		c.Number = i
		if r.States != nil { // the callback may keep x
			begin = t.Mark()
		}
		x = b.Forward(t, x, c)
		if i == len(blocks)-1 {
			x = optional(t, last, x)
		}
		if r.Observe == nil && r.Inspect == nil { // and no callback has received internal tensors
			x = t.Release(begin, x)
		}
		r.state(i+1, x)
	}
	return x
}
