package attn

import (
	"math"

	"github.com/attn-go/attn/internal/simd"
)

// ScoreMod changes scores after their scale and before bias and mask, a row at a time:
// a score modification, as soft-cap is. Its methods are called concurrently.
type ScoreMod interface {
	// Modify changes the scores of a query with the keys at.Key, at.Key+1, …. Some of
	// them may be hidden by the mask, and hold anything.
	Modify(at Row, scores []float32)
	// Back turns grad, the gradient of the changed scores, into that of the scores
	// before, where before and after are what Modify was given and made of it.
	Back(at Row, before, after, grad []float32)
}

// AddTo sets scores[j] += terms[j], by the processor's vectors: for a ScoreMod or BiasRule
// that adds what it has in a slice, which a loop in Go does several times as slowly. It
// panics unless there are as many terms as scores.
func AddTo(scores, terms []float32) { simd.Add(scores, scores, terms) }

// SoftCap returns the modification that bounds scores smoothly to ±limit:
//
//	s becomes limit·tanh(s/limit)
//
// It panics with a *tensor.ValueError if the limit is not a positive finite number.
//
// Source: Gemma Team, "Gemma 2", 2024, https://arxiv.org/abs/2408.00118, section 2.
func SoftCap(limit float32) ScoreMod {
	wantNumber("attn: SoftCap", "limit", limit, validCap(limit), "a positive finite number")
	return softCap(limit)
}

// validCap reports whether a limit and its inverse are positive finite numbers.
func validCap(limit float32) bool { return limit >= 0x1p-126 && limit <= math.MaxFloat32 }

type softCap float32

func (c softCap) Modify(_ Row, s []float32) {
	simd.Scale(s, 1/float32(c), s)
	simd.Tanh(s, s)
	simd.Scale(s, float32(c), s)
}

func (c softCap) Back(_ Row, _, after, grad []float32) {
	for j, y := range after {
		t := y / float32(c)
		grad[j] *= 1 - float32(t*t)
	}
}
