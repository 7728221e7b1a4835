package models

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// encoder is a transformer whose tokens attend to each other in both directions: a normalised sum
// of embeddings, followed by blocks.
type encoder struct {
	sizes     Sizes
	words     *nn.Embedding
	positions *nn.Embedding
	place     func(ids []int) []int // positions of the tokens of a sequence
	types     *nn.Embedding         // or nil
	norm      Layer
	blocks    []Block
	head      *TaskHead
}

func (e *encoder) Hidden(t *tensor.Tape, x Batch, r Run) *tensor.Tensor {
	if r.State != nil {
		panic(&tensor.ValueError{Op: "models: Hidden", Arg: "cache", Got: "given", Want: "nil: the layers of an encoder are not causal"})
	}
	return inParts(t, x, &r, e.sizes.Width, func(t *tensor.Tape, x Batch) *tensor.Tensor { return e.states(t, x, &r) })
}

// states computes Hidden for the whole batch at once.
func (e *encoder) states(t *tensor.Tape, x Batch, r *Run) *tensor.Tensor {
	b, l := len(x.IDs), x.longest()
	sum := e.words.Forward(t, x.ids(), b, l)
	if e.types != nil {
		sum = tensor.Add(t, sum, e.types.Forward(t, x.types(), b, l))
	}
	sum = tensor.Add(t, sum, e.positions.Forward(t, x.places(e.place), b, l))
	return through(t, e.norm.Forward(t, sum), e.blocks, nil, Call{Run: r, Lens: x.lens()})
}

func (e *encoder) Attention() []*attn.MultiHead { return attentionOf(e.blocks) }
func (e *encoder) Sizes() Sizes                 { return e.sizes }
func (e *encoder) Head() *TaskHead              { return e.head }

// fromZero places tokens at 0, 1, 2, ….
func fromZero(ids []int) []int { return counted(len(ids)) }

// behindPadding places tokens at pad+1, pad+2, …, and padding tokens at pad, as RoBERTa does.
func behindPadding(pad int) func(ids []int) []int {
	return func(ids []int) []int {
		at, n := make([]int, len(ids)), pad
		for i, id := range ids {
			if at[i] = pad; id != pad {
				n++
				at[i] = n
			}
		}
		return at
	}
}

// bothWays rejects settings that add causal attention or cross-attention to an encoder.
func bothWays(s *Settings) {
	s.Only("is_decoder", false)
	s.Only("is_encoder_decoder", false)
	noCross(s)
	s.Only("position_embedding_type", "absolute")
}
