package probe

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// SimilarPair is two texts and their target similarity.
type SimilarPair struct {
	First, Second *tokenizer.Encoding // from Embedder.Encode
	Cosine        float64             // target cosine of the texts' vectors
}

// NewSimilarity returns a probe of the model in e on pairs of texts. The loss of a
// pair is the squared error of the cosine of its vectors u and v:
//
//	(u·v/(‖u‖‖v‖) − Cosine)²
//
// Errors: a model loaded without Options.Trainable; no pairs; a cosine outside −1 to 1.
//
// Source: Reimers and Gurevych, "Sentence-BERT", 2019, section 3, the regression objective,
// https://arxiv.org/abs/1908.10084.
func NewSimilarity(e *models.Embedder, pairs []SimilarPair) (*Probe, error) {
	if err := e.Model.WantTrainable("probe: NewSimilarity"); err != nil {
		return nil, err
	}
	if len(pairs) == 0 {
		return nil, errors.New("probe: NewSimilarity: no pairs, want one or more")
	}
	for i, p := range pairs {
		if !(math.Abs(p.Cosine) <= 1) {
			return nil, fmt.Errorf("probe: NewSimilarity: pair %d has cosine %v, want -1 to 1", i, p.Cosine)
		}
	}
	length := func(i int) int { return 2 * max(len(pairs[i].First.IDs), len(pairs[i].Second.IDs)) }
	logits := func(int) int { return 2 * e.Width() }
	order := longestFirst(length)
	return newProbe(e.Model, cosineAim{e, true}, len(pairs), length, logits, order, func(list []int) batch {
		b := batch{examples: list}
		var first, second []*tokenizer.Encoding
		for _, at := range list {
			p := pairs[at]
			first, second = append(first, p.First), append(second, p.Second)
			b.terms, b.cosines = append(b.terms, 1), append(b.cosines, float32(p.Cosine))
		}
		b.x = models.BatchOf(append(first, second...)...)
		return b
	}), nil
}

// NewVector returns a probe of the model in e on texts and the vectors [N Width] that it should give: its own, to keep
// them without some heads, or another model's. The loss of a text with vector u and target v is 1 − u·v/(‖u‖‖v‖). With e's
// own vectors it is 0, and so are its gradients: prune.LeaveOneOut, WeightNorm and Confidence can then score heads.
//
// Errors: a model loaded without Options.Trainable; no texts; vectors of another shape.
func NewVector(e *models.Embedder, texts []*tokenizer.Encoding, vectors *tensor.Tensor) (*Probe, error) {
	if err := e.Model.WantTrainable("probe: NewVector"); err != nil {
		return nil, err
	}
	if len(texts) == 0 || !slices.Equal(vectors.Shape(), []int{len(texts), e.Width()}) {
		return nil, fmt.Errorf("probe: NewVector: %d texts and vectors %v, want one text or more and vectors [%d %d]",
			len(texts), vectors.Shape(), len(texts), e.Width())
	}
	targets := models.Normalize().Forward(nil, vectors)
	length := func(i int) int { return len(texts[i].IDs) }
	return newProbe(e.Model, cosineAim{e, false}, len(texts), length, nil, longestFirst(length), func(list []int) batch {
		b := batch{examples: list, terms: slices.Repeat([]int{1}, len(list)), vectors: tensor.Gather(nil, targets, list)}
		b.cosines = tensor.Full(1, len(list)).Data()
		b.x = models.BatchOf(stats.Pick(texts, list)...)
		return b
	}), nil
}

// cosineAim is the prediction of the cosine of two texts' vectors or, without pairs, of a text's vector and its target.
type cosineAim struct {
	e     *models.Embedder
	pairs bool
}

func (a cosineAim) onModel(m *models.Model) (aim, error) {
	e := *a.e
	e.Model = m
	return cosineAim{&e, a.pairs}, nil
}

// states are the vectors of pairs, divided by their length: [2B Width]. Without pairs, they are the cosines, [B].
func (a cosineAim) states(t *tensor.Tape, hidden *tensor.Tensor, b *batch) *tensor.Tensor {
	y := models.Normalize().Forward(t, a.e.Pool(t, hidden, b.x.Lens()))
	if a.pairs {
		return y
	}
	return tensor.SumAxis(t, tensor.Mul(t, y, b.vectors), 1)
}

// outputs are the cosines, [B].
func (a cosineAim) outputs(t *tensor.Tape, states *tensor.Tensor) *tensor.Tensor {
	if !a.pairs {
		return states
	}
	n := states.Dim(0) / 2
	return tensor.SumAxis(t, tensor.Mul(t, tensor.Slice(t, states, 0, 0, n), tensor.Slice(t, states, 0, n, 2*n)), 1)
}

func (a cosineAim) loss(t *tensor.Tape, cosines *tensor.Tensor, b *batch) (*tensor.Tensor, int) {
	wrong := tensor.Sub(t, tensor.New(b.cosines, len(b.cosines)), cosines)
	if a.pairs {
		wrong = tensor.Square(t, wrong)
	}
	return tensor.Sum(t, wrong), 1
}

func (a cosineAim) predicted(_ *tensor.Tape, cosines, _ *tensor.Tensor, b *batch, list []Predicted) {
	for i, v := range cosines.Data() {
		loss := float64(b.cosines[i]) - float64(v)
		if a.pairs {
			loss *= loss
		}
		list[b.examples[i]] = Predicted{Terms: 1, Loss: loss, KL: math.NaN(), Cosine: float64(v)}
	}
}
