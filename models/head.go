package models

import (
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// TaskHead maps hidden states to logits.
type TaskHead struct {
	Task   Task
	Labels []string // names of the classes, nil if the classes are tokens
	// Layer maps the output of Network.Hidden to logits, in the shape given at the Task. With a Pool, it maps what that
	// makes of the output.
	Layer Layer
	// Pool combines the states of the tokens of a text; nil means that Layer reads the states of all tokens.
	Pool *Pooling
	// Each is applied to the states of all tokens before Pool, unless it is nil.
	Each Layer
	// Padding are tokens that Pool leaves out at the end of a text, even if the tokenizer appends them: transformers
	// takes the pad_token_id of a decoder for padding there, also where it is the end token.
	Padding []int
}

// Logits applies the Layer.
func (h *TaskHead) Logits(t *tensor.Tape, hidden *tensor.Tensor) *tensor.Tensor {
	return h.Layer.Forward(t, hidden)
}

// Some returns a Layer that computes the logits of some tokens or classes only, [… len(numbers)], and no gradient of the
// head's parameters; nil if Layer does not end with a map whose products are in float32.
func (h *TaskHead) Some(numbers []int) Layer { return someLogits(h.Layer, numbers) }

func someLogits(l Layer, numbers []int) Layer {
	switch l := l.(type) {
	case wordLogits:
		if l.words = someLogits(l.words, numbers); l.words == nil {
			return nil
		}
		if l.shift != nil {
			l.shift = tensor.Gather(nil, l.shift, numbers)
		}
		return l
	case *nn.Linear:
		y := new(nn.Linear)
		switch {
		case l.Weight != nil:
			y.Weight = tensor.Gather(nil, l.Weight, numbers)
		case l.Packed.Format() == tensor.Float32 || l.Packed.Format() == tensor.BFloat16Weights:
			y.Weight = l.Packed.Rows(nil, numbers)
		default:
			return nil
		}
		if l.Bias != nil {
			y.Bias = tensor.Gather(nil, l.Bias, numbers)
		}
		return y
	case inTurn:
		if last := someLogits(l[len(l)-1], numbers); last != nil {
			return append(slices.Clone(l[:len(l)-1]), last)
		}
	}
	return nil
}

// Of returns the logits of the hidden states [B L D] of a batch. Gradients flow to hidden.
func (h *TaskHead) Of(t *tensor.Tape, hidden *tensor.Tensor, x Batch) *tensor.Tensor {
	if h.Pool != nil {
		lens := x.Lens()
		for i, ids := range x.IDs {
			for lens[i] > 1 && slices.Contains(h.Padding, ids[lens[i]-1]) {
				lens[i]--
			}
		}
		hidden = h.Pool.Forward(t, optional(t, h.Each, hidden), lens)
	}
	return h.Logits(t, hidden)
}

// Task is the kind of prediction that the logits of a TaskHead make.
type Task string

// The tasks of heads.
const (
	MaskedWords  Task = "masked words"          // [B L V], the token in the place of [MASK]
	NextWord     Task = "next word"             // [B L V], the token that follows
	TextClasses  Task = "classes of a text"     // [B C]
	TokenClasses Task = "classes of each token" // [B L C]
	AnswerSpan   Task = "span of an answer"     // [B L 2], where it begins and where it ends
	NextSentence Task = "next sentence"         // [B 2], whether the second text follows the first
)

// PerToken reports whether there are logits for each token, rather than one row for a text.
func (t Task) PerToken() bool { return t != TextClasses && t != NextSentence }

// inTurn applies layers in order.
type inTurn []Layer

// Forward applies the layers.
func (list inTurn) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	for _, l := range list {
		x = l.Forward(t, x)
	}
	return x
}

// firstToken is the Layer that returns the hidden state of the first token of each text: [B D] of [B L D].
type firstToken struct{}

func (firstToken) Forward(t *tensor.Tape, hidden *tensor.Tensor) *tensor.Tensor {
	return tensor.Reshape(t, tensor.Slice(t, hidden, 1, 0, 1), hidden.Dim(0), hidden.Dim(2))
}

// Class returns the suffix of the first class in "architectures" of config.json that names a task: "MaskedLM" of
// BertForMaskedLM. It is empty for a model without a head.
func (b *Builder) Class() string {
	for _, name := range b.Config.Texts("architectures") {
		if _, class, ok := strings.Cut(name, "For"); ok {
			return class
		}
	}
	return ""
}

// bare reports whether config.json names the class of a model without a head: LlamaModel.
func (b *Builder) bare() bool {
	list := b.Config.Texts("architectures")
	return len(list) > 0 && strings.HasSuffix(list[0], "Model") && !strings.HasSuffix(list[0], "LMHeadModel")
}

// wantClass returns Class and records an error unless it is one of classes, those that match the
// head's tensors in the file.
func (b *Builder) wantClass(classes ...string) string {
	class := b.Class()
	if !slices.Contains(classes, class) {
		b.Config.Fail("architectures", "is [%s], but the file has the head of a class …For%s",
			quote.Texts(b.Config.Texts("architectures")), strings.Join(classes, " or …For"))
	}
	return class
}

// pooling returns a pooling of the table.
func pooling(name string) *Pooling {
	p, err := PoolingByName(name)
	if err != nil {
		panic(err)
	}
	return &p
}

// needs returns a head that needs a pooler, or records an error if the pooler is missing.
func (b *Builder) needs(pooler Layer, h *TaskHead) *TaskHead {
	if pooler == nil {
		b.Fail("the head for %s needs a pooler, and the file has none", h.Task)
	}
	return h
}

// textHead is the head that classifies texts by the first token: a map, an activation, and a map to the classes.
func (b *Builder) textHead(z Sizes, first string, act Activation, last string) *TaskHead {
	labels := b.Config.Labels()
	b.wantClass("SequenceClassification")
	return &TaskHead{Task: TextClasses, Labels: labels, Layer: inTurn{
		firstToken{}, b.Linear(first, z.Width, z.Width), act, b.Linear(last, z.Width, len(labels)),
	}}
}

// pooledHead is the head that classifies texts by what a pooler makes of the first token, or tokenHead.
func (b *Builder) pooledHead(pooler Layer, z Sizes) *TaskHead {
	const texts, tokens = "SequenceClassification", "TokenClassification"
	if !b.HasAny("classifier.") || b.wantClass(texts, tokens) != texts {
		return b.tokenHead(z)
	}
	labels := b.Config.Labels()
	layer := inTurn{pooler, b.Linear("classifier", z.Width, len(labels))}
	return b.needs(pooler, &TaskHead{Task: TextClasses, Labels: labels, Layer: layer})
}

// tokenHead is the head that classifies tokens or finds where an answer begins and ends, nil if the file has neither.
func (b *Builder) tokenHead(z Sizes) *TaskHead {
	switch {
	case b.HasAny("classifier."):
		labels := b.Config.Labels()
		b.wantClass("TokenClassification")
		return &TaskHead{Task: TokenClasses, Labels: labels, Layer: b.Linear("classifier", z.Width, len(labels))}
	case b.HasAny("qa_outputs."):
		return &TaskHead{Task: AnswerSpan, Labels: []string{"start", "end"}, Layer: b.Linear("qa_outputs", z.Width, 2)}
	}
	return nil
}

// words returns the map from hidden states to tokens, a linear map called name. If it is tied,
// its matrix is that of the embedding, a tensor called same, and the bias is the tensor called
// bias, if present; the file may contain copies. Otherwise it has its own matrix and bias.
func (b *Builder) words(name, bias string, e words, same string, tied bool, z Sizes) *nn.Linear {
	l, own := &nn.Linear{Weight: e.(*nn.Embedding).Weight}, name+".bias"
	if tied {
		b.Tied(b.Name(name+".weight"), same)
	} else {
		l.Weight = b.Tensor(name+".weight", z.Vocabulary, z.Width)
	}
	switch {
	case bias == own || !b.Has(bias):
	case tied || !b.Has(own):
		b.Tied(b.Name(own), b.Name(bias))
		own = bias
	default:
		b.Unread(b.Name(bias)) // unused
	}
	l.Bias = b.Tensor(own, z.Vocabulary)
	return l
}
