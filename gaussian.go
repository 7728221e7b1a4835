package attn

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Gaussian is the score −½‖(q − k)∘w‖². With it, attention is kernel regression
// with a Gaussian kernel of width 1/w, and the values of the nearest keys count
// most.
//
// Source: Nadaraya, 1964; Watson, 1964; as attention pooling in Zhang et al.,
// "Dive into Deep Learning", https://d2l.ai, chapter 11.
type Gaussian struct {
	// W is one factor for all features [1] or one for each [E], learnt if it
	// is a parameter. Nil means 1.
	W *tensor.Tensor
}

// Scores returns −½‖(q − k)∘w‖² for all pairs. It takes differences first and
// squares them, so that a query close to a key far from the origin is exact.
//
// A score below the range of float32 is −Inf. Where that holds for every key that a query
// attends to, Attend computes the row again in float64, less its largest score: only
// differences of scores matter to the softmax. Soft-cap, modifications and sinks know no
// such rows.
func (s *Gaussian) Scores(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
	return scoresOf(t, s, q, k)
}

// Form returns −½‖(q − k)∘w‖².
func (s *Gaussian) Form() Form {
	if s.W == nil {
		return Form{Gaussian: tensor.Full(1, 1)}
	}
	return Form{Gaussian: s.W}
}

// featureFactors returns the factors of e features, of which there may be one for all, or
// none.
func featureFactors(t *tensor.Tape, arg string, w *tensor.Tensor, e int) *tensor.Tensor {
	switch {
	case w == nil:
		return tensor.Full(1, e)
	case w.Len() == e:
		return w
	case w.Len() == 1:
		return tensor.BroadcastTo(t, w, e)
	default:
		panic(&tensor.ShapeError{Op: "attn: Attend", Arg: arg, Got: w.Shape(), Want: fmt.Sprintf("[1] or [E=%d]", e)})
	}
}

// Params returns "w" where there is one.
func (s *Gaussian) Params() nn.Params { return nn.Vars{{Name: "w", Tensor: s.W}}.Params() }

// WithParams returns a score with another "w".
func (s *Gaussian) WithParams(p map[string]*tensor.Tensor) Score { return &Gaussian{W: p["w"]} }

// gaussianKind is the entry of Gaussian. −½‖(q−k)∘w‖² holds the product w²·q·k, which
// begins with the factor that it has in ScaledDot.
var gaussianKind = ScoreKind{
	Name: "gaussian", Formula: "−½·‖(q − k)∘w‖²", Score: &Gaussian{},
	Params: []ScoreParam{{Name: "w", Axes: []string{"E"}, Optional: true, New: func(s ScoreSizes, _ *rand.Rand) *tensor.Tensor {
		return tensor.Full(float32(math.Pow(float64(s.Query), -0.25)), s.Query).Param()
	}}},
}

// gaussianFactors returns w of a Form as [E].
func gaussianFactors(t *tensor.Tape, w *tensor.Tensor, e int) *tensor.Tensor {
	return featureFactors(t, "w of the Gaussian score", w, e)
}

// gaussianScores is Gaussian with w [E].
func gaussianScores(t *tensor.Tape, q, k, w *tensor.Tensor) *tensor.Tensor {
	b, heads, lq, e := q.Dim(0), q.Dim(1), q.Dim(2), q.Dim(3)
	lk := k.Dim(2)
	out := t.Make(b, heads, lq, lk)
	par.For(b*heads*lq, 1, func(lo, hi int) {
		w := w.Data()
		for r := lo; r < hi; r++ {
			qr, keys := q.Data()[r*e:][:e], k.Data()[r/lq*lk*e:][:lk*e]
			for j, row := 0, out.Data()[r*lk:][:lk]; j < lk; j++ {
				key := keys[j*e:][:e]
				var sum float32
				for f, v := range key {
					d := (qr[f] - v) * w[f]
					sum += float32(d * d)
				}
				if row[j] = -0.5 * sum; sum > math.MaxFloat32 || sum != sum {
					row[j] = float32(gaussianScore(qr, key, w))
				}
			}
		}
	})
	if t.Needs(q, k, w) {
		t.Record(out, func(ds []float32) {
			// With u = (q−k)∘w: dq −= ds·u∘w, dk += ds·u∘w, dw −= ds·u∘(q−k).
			dq, dk := gradOr(t, q), gradOr(t, k)
			eachHead(t, b*heads, w, func(z int, dw []float32) {
				for r := z * lq; r < (z+1)*lq; r++ {
					for j := range lk {
						d := ds[r*lk+j]
						if d == 0 {
							continue // hidden, or without influence
						}
						c := (z*lk + j) * e
						for f := range e {
							diff := q.Data()[r*e+f] - k.Data()[c+f]
							g := d * diff * w.Data()[f]
							dq[r*e+f] -= float32(g * w.Data()[f])
							dk[c+f] += float32(g * w.Data()[f])
							dw[f] -= float32(g * diff)
						}
					}
				}
			})
		})
	}
	return out
}

// gaussianScore is the score of one pair, in float64, whose range no score leaves.
func gaussianScore(q, k, w []float32) float64 {
	var sum float64
	for f, v := range k {
		d := (float64(q[f]) - float64(v)) * float64(w[f])
		sum += float64(d * d)
	}
	return -0.5 * sum
}
