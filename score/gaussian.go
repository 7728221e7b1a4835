package score

import (
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Gaussian is the score −½‖(q − k)∘w‖². With it, attention is kernel regression with a Gaussian
// kernel of width 1/w: the nearest keys get the largest weights. Differences are computed before
// they are squared, so the score of a query close to a key is exact even far from the origin.
//
// A score below the range of float32 is −Inf. If this is true of every key that a query attends
// to, Attend recomputes the row in float64, relative to its largest score: the softmax depends
// only on differences of scores. Rows with soft-cap, score changes or sinks are not recomputed.
//
// Source: Nadaraya, 1964; Watson, 1964; as attention pooling in Zhang et al.,
// "Dive into Deep Learning", https://d2l.ai, chapter 11.
type Gaussian struct {
	// W is one factor for all features, [1], or one per feature, [E]. It is trained if it is a
	// parameter. Nil means 1.
	W *tensor.Tensor
}

// Form returns −½‖(q − k)∘w‖².
func (s *Gaussian) Form() attn.Form {
	if s.W == nil {
		return attn.Form{Gaussian: tensor.Full(1, 1)}
	}
	return attn.Form{Gaussian: s.W}
}

// Params returns "w", or nothing if W is nil.
func (s *Gaussian) Params() nn.Params { return nn.Vars{{Name: "w", Tensor: s.W}}.Params() }

// WithParams returns a Gaussian with the given "w".
func (s *Gaussian) WithParams(p map[string]*tensor.Tensor) attn.Score { return &Gaussian{W: p["w"]} }

// gaussianKind is the table entry of Gaussian. −½‖(q−k)∘w‖² contains the product w²·q·k, whose
// initial factor is the same as in ScaledDot.
var gaussianKind = Kind{
	Name: "gaussian", Formula: "−½·‖(q − k)∘w‖²", Score: &Gaussian{},
	Params: []Param{{Name: "w", Axes: []string{"E"}, Optional: true, New: func(s Sizes, _ *rand.Rand) *tensor.Tensor {
		return tensor.Full(float32(math.Pow(float64(s.Query), -0.25)), s.Query).Param()
	}}},
}
