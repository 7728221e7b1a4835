package models

import (
	"errors"
	"fmt"
	"math"

	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// SimilarPair is two texts and their target similarity.
type SimilarPair struct {
	First, Second *tokenizer.Encoding // from Embedder.Encode
	Cosine        float64             // target cosine of the texts' vectors
}

// NewSimilarityProbe returns a probe of the model in e on pairs of texts. The loss of a
// pair is the squared error of the cosine of its vectors u and v:
//
//	(u·v/(‖u‖‖v‖) − Cosine)²
//
// Errors: a model loaded without Options.Trainable; no pairs; a cosine outside −1 to 1.
//
// Source: Reimers and Gurevych, "Sentence-BERT", 2019, section 3, the regression objective,
// https://arxiv.org/abs/1908.10084.
func NewSimilarityProbe(e *Embedder, pairs []SimilarPair) (*Probe, error) {
	if err := e.Model.wantTrainable("NewSimilarityProbe"); err != nil {
		return nil, err
	}
	if len(pairs) == 0 {
		return nil, errors.New("models: NewSimilarityProbe: no pairs, want one or more")
	}
	for i, p := range pairs {
		if !(math.Abs(p.Cosine) <= 1) {
			return nil, fmt.Errorf("models: NewSimilarityProbe: pair %d has cosine %v, want -1 to 1", i, p.Cosine)
		}
	}
	length := func(i int) int { return 2 * max(len(pairs[i].First.IDs), len(pairs[i].Second.IDs)) }
	logits := func(int) int { return 2 * e.width }
	order := longestFirst(length)
	return newProbe(e.Model, similarityAim{e}, len(pairs), length, logits, order, func(list []int) probeBatch {
		b := probeBatch{examples: list}
		var first, second []*tokenizer.Encoding
		for _, at := range list {
			p := pairs[at]
			first, second = append(first, p.First), append(second, p.Second)
			b.terms, b.cosines = append(b.terms, 1), append(b.cosines, float32(p.Cosine))
		}
		b.x = BatchOf(append(first, second...)...)
		return b
	}), nil
}

// similarityAim is the prediction of similarity by the cosine of two texts' vectors.
type similarityAim struct{ e *Embedder }

func (a similarityAim) onModel(m *Model) (aim, error) {
	e := *a.e
	e.Model = m
	return similarityAim{&e}, nil
}

// states are the vectors, divided by their length: [2B Width].
func (a similarityAim) states(t *tensor.Tape, hidden *tensor.Tensor, b *probeBatch) *tensor.Tensor {
	return normalized.Forward(t, a.e.pool(t, hidden, b.x.Lens()))
}

// outputs are the cosines, [B].
func (a similarityAim) outputs(t *tensor.Tape, states *tensor.Tensor) *tensor.Tensor {
	n := states.Dim(0) / 2
	return tensor.SumAxis(t, tensor.Mul(t, tensor.Slice(t, states, 0, 0, n), tensor.Slice(t, states, 0, n, 2*n)), 1)
}

func (a similarityAim) loss(t *tensor.Tape, cosines *tensor.Tensor, b *probeBatch) (*tensor.Tensor, int) {
	wrong := tensor.Sub(t, cosines, tensor.New(b.cosines, len(b.cosines)))
	return tensor.Sum(t, tensor.Square(t, wrong)), 1
}

func (a similarityAim) predicted(_ *tensor.Tape, cosines, _ *tensor.Tensor, b *probeBatch, list []Predicted) {
	for i, v := range cosines.Data() {
		cosine := float64(v)
		wrong := cosine - float64(b.cosines[i])
		list[b.examples[i]] = Predicted{Terms: 1, Loss: wrong * wrong, KL: math.NaN(), Cosine: cosine}
	}
}
