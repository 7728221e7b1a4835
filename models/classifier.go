package models

import (
	"fmt"
	"math"

	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// Classifier predicts the class of a text, or of a pair of texts, with a model of a class …ForSequenceClassification. A
// cross-encoder has one class; its logit says how well the second text answers the first.
//
// Several goroutines may use a Classifier at the same time, like an Embedder.
type Classifier struct {
	Model *Model
	// MostTokens is the length in tokens, special tokens included, to which a text is truncated, or a pair: first the
	// longer text.
	MostTokens int

	several bool // classes do not exclude each other
}

// NewClassifier returns a Classifier, or a *FormatError if the head of the model has another task.
func NewClassifier(m *Model) (*Classifier, error) {
	head := m.Head()
	if head == nil {
		return nil, &FormatError{m.Dir, fmt.Errorf("has no head, want a head for the %s", TextClasses)}
	}
	if head.Task != TextClasses {
		return nil, &FormatError{m.Dir, fmt.Errorf("has a head for the %s, want one for the %s", head.Task, TextClasses)}
	}
	kind := m.Settings.Text("problem_type", "")
	return &Classifier{Model: m, MostTokens: m.mostTokens(), several: kind == "multi_label_classification" || len(head.Labels) == 1}, nil
}

// Labels returns the names of the classes.
func (c *Classifier) Labels() []string { return c.Model.Head().Labels }

// Encode returns the tokens of a text, or of a pair; cut reports whether they were truncated.
//
// Errors: those of tokenizer.Tokenizer.Encode and EncodePair; more than two texts.
func (c *Classifier) Encode(texts ...string) (x *tokenizer.Encoding, cut bool, err error) {
	t, err := c.Model.Tokenizer()
	if err != nil {
		return nil, false, err
	}
	switch o := atMost(c.MostTokens); len(texts) {
	case 1:
		x, err = t.Encode(texts[0], o)
	case 2:
		x, err = t.EncodePair(texts[0], texts[1], o)
	default:
		err = fmt.Errorf("%d texts, want one or two", len(texts))
	}
	if err == nil {
		err = c.Model.Sizes().Check(BatchOf(x))
	}
	if err != nil {
		return nil, false, err
	}
	return x, x.Truncated, nil
}

// Logits returns the logits of each text of a batch: [B C]. Texts of similar lengths run together, and the logits of a
// text do not depend on the others. The tape must not record.
func (c *Classifier) Logits(t *tensor.Tape, x Batch) *tensor.Tensor {
	classes := len(c.Labels())
	return eachSimilar(t, x, classes, func(own *tensor.Tape, some Batch) *tensor.Tensor {
		return c.Model.Head().Of(own, c.Model.Hidden(own, some, Run{}), some.Lens())
	})
}

// Probabilities returns the probabilities of the classes: the softmax of the logits or, if classes do not exclude each
// other (problem_type multi_label_classification, or a single class), the sigmoid of each.
func (c *Classifier) Probabilities(logits []float32) []float64 {
	p, top, sum := make([]float64, len(logits)), math.Inf(-1), 0.
	for _, x := range logits {
		top = max(top, float64(x))
	}
	for i, x := range logits {
		if p[i] = math.Exp(float64(x) - top); c.several {
			p[i] = 1 / (1 + math.Exp(-float64(x)))
		}
		sum += p[i]
	}
	for i := range p {
		if !c.several {
			p[i] /= sum
		}
	}
	return p
}
