package score

import (
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Gaussian is the score −½‖(q − k)∘w‖². With it, attention is kernel regression
// with a Gaussian kernel of width 1/w, and the values of the nearest keys count
// most. Differences are taken before they are squared, so that a query close to a key far
// from the origin is exact.
//
// A score below the range of float32 is −Inf. Where that holds for every key that a query
// attends to, Attend computes the row again in float64, less its largest score: only
// differences of scores matter to the softmax. Soft-cap, modifications and sinks know no
// such rows.
//
// Source: Nadaraya, 1964; Watson, 1964; as attention pooling in Zhang et al.,
// "Dive into Deep Learning", https://d2l.ai, chapter 11.
type Gaussian struct {
	// W is one factor for all features [1] or one for each [E], learnt if it
	// is a parameter. Nil means 1.
	W *tensor.Tensor
}

// Form returns −½‖(q − k)∘w‖².
func (s *Gaussian) Form() attn.Form {
	if s.W == nil {
		return attn.Form{Gaussian: tensor.Full(1, 1)}
	}
	return attn.Form{Gaussian: s.W}
}

// Params returns "w" where there is one.
func (s *Gaussian) Params() nn.Params { return nn.Vars{{Name: "w", Tensor: s.W}}.Params() }

// WithParams returns a score with another "w".
func (s *Gaussian) WithParams(p map[string]*tensor.Tensor) attn.Score { return &Gaussian{W: p["w"]} }

// gaussianKind is the entry of Gaussian. −½‖(q−k)∘w‖² holds the product w²·q·k, which
// begins with the factor that it has in ScaledDot.
var gaussianKind = Kind{
	Name: "gaussian", Formula: "−½·‖(q − k)∘w‖²", Score: &Gaussian{},
	Params: []Param{{Name: "w", Axes: []string{"E"}, Optional: true, New: func(s Sizes, _ *rand.Rand) *tensor.Tensor {
		return tensor.Full(float32(math.Pow(float64(s.Query), -0.25)), s.Query).Param()
	}}},
}
