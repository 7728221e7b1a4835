package models

import (
	"fmt"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// decoderFamilies returns the entries of this package's table that are decoders.
func decoderFamilies() Table {
	return Table{
		gpt2Family, llamaFamily, mistralFamily, qwen2Family, qwen3Family, gemmaFamily, gemma2Family, gemma3Family,
		gemma3WithImages, marianFamily, t5Family,
	}
}

// decoder is the common structure of all decoders: token embeddings, blocks with causal
// attention, a final norm, and a map to logits, which often is the embedding matrix. Each family
// sets the fields; parts that it lacks are nil or zero. An encoder–decoder has two decoders.
type decoder struct {
	sizes     Sizes
	words     words
	scale     float32 // of the embeddings, 0 means 1
	positions words   // nil if the blocks have their own
	dropout   float32 // of the embeddings, in training
	blocks    []Block
	windows   func(block int) int // keys that a query attends to, 0 for all; nil means all everywhere
	norm      Layer
	logits    *nn.Linear     // nil in a bare model, which has no head
	shrink    float32        // of the states for logits, 0 means 1
	shift     *tensor.Tensor // [1 V], added to the logits, or nil
	softCap   float32        // of the logits, 0 means none
}

func (d *decoder) Hidden(t *tensor.Tape, x Batch, r Run) *tensor.Tensor {
	return inParts(t, x, &r, d.sizes.Width, func(t *tensor.Tape, x Batch) *tensor.Tensor {
		return through(t, d.embed(t, x, &r), d.blocks, d.norm, Call{Run: &r, Lens: x.lens()})
	})
}

func (d *decoder) Attention() []*attn.MultiHead { return attentionOf(d.blocks) }
func (d *decoder) Sizes() Sizes                 { return d.sizes }

// Window returns how many keys a query of a block attends to, 0 for all.
func (d *decoder) Window(block int) int {
	if d.windows == nil {
		return 0
	}
	return d.windows(block)
}

// embed returns the embeddings of tokens, plus those of their positions if these are learnt.
func (d *decoder) embed(t *tensor.Tape, x Batch, r *Run) *tensor.Tensor {
	b, l := len(x.IDs), x.longest()
	before := make([]int, b) // tokens of each sequence read in earlier runs
	if r.State != nil {
		before = r.State.Lens()
	}
	for i, ids := range x.IDs {
		if n := before[i] + len(ids); d.sizes.Positions > 0 && n > d.sizes.Positions {
			panic(&tensor.ShapeError{
				Op: "models: Hidden", Arg: fmt.Sprintf("sequence %d", i), What: "number of tokens", Got: []int{n},
				Want: fmt.Sprintf("at most %d", d.sizes.Positions),
			})
		}
	}
	h := d.words.Forward(t, x.ids(), b, l)
	if d.scale != 0 {
		h = tensor.Scale(t, h, d.scale)
	}
	if d.positions == nil {
		return tensor.Dropout(t, h, d.dropout)
	}
	places := make([][]int, b)
	for i, ids := range x.IDs {
		for j := range ids {
			places[i] = append(places[i], before[i]+j)
		}
	}
	return tensor.Dropout(t, tensor.Add(t, h, d.positions.Forward(t, x.flat(places), b, l)), d.dropout)
}

// Head returns the head that predicts the next token, nil for a bare model.
func (d *decoder) Head() *TaskHead {
	if d.logits == nil {
		return nil
	}
	return &TaskHead{Task: NextWord, Logits: func(t *tensor.Tape, hidden *tensor.Tensor) *tensor.Tensor {
		if d.shrink != 0 {
			hidden = tensor.Scale(t, hidden, d.shrink)
		}
		y := d.logits.Forward(t, hidden)
		if d.shift != nil {
			y = tensor.Add(t, y, tensor.Reshape(t, d.shift, 1, 1, d.sizes.Vocabulary))
		}
		if d.softCap == 0 {
			return y
		}
		return tensor.Scale(t, tensor.Tanh(t, tensor.Scale(t, y, 1/d.softCap)), d.softCap)
	}}
}

// makeLogits adds the map to logits, lm_head, unless the decoder already has it because it is
// tied to the embeddings, whose full name is given. The files of a bare model, such as many
// text-embedding models, have no map to logits.
func (d *decoder) makeLogits(b *Builder, tied bool, embeddings string) {
	switch {
	case tied:
		b.Tied(b.Name("lm_head.weight"), embeddings)
	case b.bare() && !b.Has("lm_head.weight"):
		d.logits = nil
	default:
		d.logits = b.Matrix("lm_head", d.sizes.Width, d.sizes.Vocabulary)
	}
}

// oneWay rejects settings that add an encoder or cross-attention to a decoder.
func oneWay(s *Settings) {
	s.Ignore("is_decoder", "pad_token_id")
	s.Only("is_encoder_decoder", false)
	noCross(s)
}

// noCross rejects settings that add cross-attention.
func noCross(s *Settings) {
	s.Only("add_cross_attention", false)
	s.Only("tie_encoder_decoder", false)
	s.Only("cross_attention_hidden_size")
}

// decoderName is the name of the attention of a decoder's block.
func decoderName(block int) string { return fmt.Sprintf("decoder.%d.self", block) }

// decoderMask lets a query attend to itself and the keys before it: at most window keys in total,
// unless window is 0.
func decoderMask(window int) attn.Mask {
	if window > 0 {
		return mask.Window(window-1, 0)
	}
	return mask.Causal()
}
