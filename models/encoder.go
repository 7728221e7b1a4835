package models

import (
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// encoder is a transformer whose tokens attend to each other in both directions: the sum of
// embeddings, normalised, and blocks.
type encoder struct {
	sizes     Sizes
	words     *nn.Embedding
	positions *nn.Embedding
	place     func(ids []int) []int // positions of the tokens of a sequence
	types     *nn.Embedding         // or nil
	norm      Layer
	blocks    []Block
	head      *Head
}

func (e *encoder) Hidden(t *tensor.Tape, x Batch, r Run) *tensor.Tensor {
	if r.Cache != nil {
		panic(&tensor.ValueError{Op: "models: Hidden", Arg: "cache", Got: "given", Want: "nil: the layers of an encoder are not causal"})
	}
	b, l := len(x.IDs), x.longest()
	sum := e.words.Forward(t, x.ids(), b, l)
	if e.types != nil {
		sum = tensor.Add(t, sum, e.types.Forward(t, x.types(), b, l))
	}
	sum = tensor.Add(t, sum, e.positions.Forward(t, x.places(e.place), b, l))
	return through(t, e.norm.Forward(t, sum), e.blocks, nil, &r, x.lens())
}

func (e *encoder) Attention() []*attn.MultiHead { return attentionOf(e.blocks) }
func (e *encoder) Sizes() Sizes                 { return e.sizes }
func (e *encoder) Head() *Head                  { return e.head }

// fromZero places tokens at 0, 1, 2, ….
func fromZero(ids []int) []int {
	at := make([]int, len(ids))
	for i := range at {
		at[i] = i
	}
	return at
}

// behindPadding places tokens at pad+1, pad+2, …, and those that are padding at pad, as
// RoBERTa does.
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

// bothWays refuses the settings that make a decoder, or half of one, of an encoder.
func bothWays(s *Settings) {
	for _, key := range []string{"is_decoder", "add_cross_attention", "is_encoder_decoder", "tie_encoder_decoder"} {
		s.Only(key, false)
	}
	s.Only("cross_attention_hidden_size")
	s.Only("position_embedding_type", "absolute")
}

// Class returns what the class in "architectures" is for: "MaskedLM" of BertForMaskedLM. It
// is empty where a model has no head.
func (b *Builder) Class() string {
	list := b.Config.Texts("architectures")
	if len(list) == 0 {
		return ""
	}
	_, class, _ := strings.Cut(list[0], "For")
	return class
}

// classes returns the head of a classifier, by the class in "architectures".
func (b *Builder) classes(text, token func(t *tensor.Tape, hidden *tensor.Tensor) *tensor.Tensor) *Head {
	switch labels := b.Config.Labels(); b.Class() {
	case "SequenceClassification":
		return &Head{TextClasses, labels, text}
	case "TokenClassification":
		return &Head{TokenClasses, labels, token}
	}
	b.Config.Fail("architectures", "is %s, want a class for SequenceClassification or TokenClassification, as the file has a classifier", b.Config.Texts("architectures"))
	return nil
}

// first returns the hidden state of the first token of each text: [B D] of [B L D].
func first(t *tensor.Tape, hidden *tensor.Tensor) *tensor.Tensor {
	return tensor.Reshape(t, tensor.Slice(t, hidden, 1, 0, 1), hidden.Dim(0), hidden.Dim(2))
}

// then applies layers one after the other.
func then(layers ...func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor) func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor {
	return func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
		for _, l := range layers {
			x = l(t, x)
		}
		return x
	}
}

// words returns the map from hidden states to tokens, a linear map called name. Its matrix
// is that of the embedding, a tensor called same, if they are tied, and the file may hold a
// copy; the bias stands beside the matrix or is a tensor called bias.
func (b *Builder) words(e *nn.Embedding, same, name, bias string, tied bool, z Sizes) *nn.Linear {
	l := &nn.Linear{Weight: e.Weight}
	if tied {
		b.Tied(b.Name(name+".weight"), same)
	} else {
		l.Weight = b.Tensor(name+".weight", z.Vocabulary, z.Width)
	}
	if b.Has(bias) {
		l.Bias = b.Tensor(bias, z.Vocabulary)
		b.Tied(b.Name(name+".bias"), b.Name(bias))
	} else {
		l.Bias = b.Tensor(name+".bias", z.Vocabulary)
	}
	return l
}
