package attn

import (
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn/internal/flash"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Score compares queries with keys: the scoring function a(q, k) of an attention mechanism.
type Score interface {
	// Form returns the formula that compares queries and keys.
	Form() Form
}

// ParamScore is a Score that can be copied with other parameters. MultiHead.Keep copies such a
// score; it shares other scores.
type ParamScore interface {
	Score
	nn.Module
	// WithParams returns a copy of the score with the given parameters, named as in Params.
	// params contains all parameters and no others.
	WithParams(params map[string]*tensor.Tensor) Score
}

// copyScore returns a score with copied parameters, or s if it is no ParamScore.
func copyScore(s Score) Score {
	m, ok := s.(ParamScore)
	if !ok {
		return s
	}
	params := map[string]*tensor.Tensor{}
	for name, x := range m.Params() {
		params[name] = like(x, slices.Clone(x.Data()), x.Shape()...)
	}
	return m.WithParams(params)
}

// formScore is a score that consists of a form.
type formScore Form

// Form returns s.
func (s formScore) Form() Form { return Form(s) }

// Form is the formula of a Score. φ and ψ are maps of queries and keys:
//
//	Scale·φ(q)ᵀψ(k)          the dot product, unless one of the others is set
//	wᵀ·tanh(φ(q) + ψ(k))     Additive is w
//	−½‖(φ(q) − ψ(k))∘w‖²     Gaussian is w
//	Given(φ(q), ψ(k))        any function that returns the scores of all pairs
//
// The first three are computed in tiles, without storing the scores of all pairs. At most one of
// Additive, Gaussian and Given is set.
type Form struct {
	// Queries and Keys are φ and ψ. They map each vector [… E] separately, with operations on
	// tensors. Nil leaves the vectors unchanged.
	Queries, Keys func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor
	// Scale multiplies the dot product. PerRoot also divides it by √E, the root of the size of
	// the mapped vectors.
	Scale   float32
	PerRoot bool
	// Additive is w [h], trained if it is a parameter; φ and ψ return h elements.
	Additive *tensor.Tensor
	// Gaussian is w [E], or [1] for a single factor, trained if it is a parameter; φ and ψ return
	// E elements.
	Gaussian *tensor.Tensor
	// Given returns scores [B H Lq Lk]. With grouped queries, each key head is repeated for the
	// query heads that share it.
	Given func(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor
	// MappedKeys is ψ(k) [B G Lk …] of the keys of the call, if it has been computed before. Keys
	// is then not called.
	MappedKeys *tensor.Tensor
}

// isDot reports whether the form is the dot product.
func (f Form) isDot() bool { return f.Additive == nil && f.Gaussian == nil && f.Given == nil }

// scale returns the factor of the dot product of vectors with e elements.
func (f Form) scale(e int) float32 {
	if f.PerRoot {
		return f.Scale * float32(1/math.Sqrt(float64(max(e, 1))))
	}
	return f.Scale
}

// check panics if more than one of Additive, Gaussian and Given is set.
func (f Form) check(op string) {
	n := 0
	for _, set := range []bool{f.Additive != nil, f.Gaussian != nil, f.Given != nil} {
		if set {
			n++
		}
	}
	if n > 1 {
		badValue(op, "form of the score", fmt.Sprintf("one that sets %d of Additive, Gaussian and Given", n), "at most one of them set")
	}
}

// gaussianFactors returns the factors w as [E].
func (f Form) gaussianFactors(t *tensor.Tape, e int) *tensor.Tensor {
	w := f.Gaussian
	if n := w.Len(); n != e && n != 1 {
		badShape("attn: Attend", "w of the Gaussian score", "", w.Shape(), "[1] or [E=%d]", e)
	}
	return tensor.BroadcastTo(t, tensor.Reshape(t, w, w.Len()), e)
}

// given returns the scores [B H Lq Lk] from Given.
func (f Form) given(t *tensor.Tape, c *call) *tensor.Tensor {
	s := f.Given(t, c.q.split(t), perQuery(t, c.kv.keys.split(t), c.H))
	tensor.Want("attn: Attend", "score's result", s)
	if want := []int{c.B, c.H, c.Lq, c.Extra + c.Lk}; !slices.Equal(s.Shape(), want) {
		badShape("attn: Attend", "score's result", "", s.Shape(), "%v", want)
	}
	return s
}

// perQuery repeats the heads of keys [B G Lk E] for h query heads.
func perQuery(t *tensor.Tape, k *tensor.Tensor, h int) *tensor.Tensor {
	b, g, lk, e := k.Dim(0), k.Dim(1), k.Dim(2), k.Dim(3)
	if g == h {
		return k
	}
	k = tensor.BroadcastTo(t, tensor.Reshape(t, k, b, g, 1, lk, e), b, g, h/g, lk, e)
	return tensor.Reshape(t, k, b, h, lk, e)
}

func wantHeadSize(op, arg string, got, want int) {
	if got != want {
		badShape(op, arg, "head size", []int{got}, "E=%d", want)
	}
}

// Scores returns the scores of all pairs of queries and keys, as Attend passes them to the
// softmax:
//
//	scores[i,j] = changes(softcap(Score(q_i, k_j))) + Bias[i,j]   unit: nats
//
// The score is −Inf if the Mask hides key j from query i. For the scores at an earlier stage, set
// fewer options: only the Score for its raw scores, or the Score and SoftCap for the scores
// before the bias. Sinks and options that act after the softmax have no effect.
//
// Attend itself does not need this array. This function is for inspection and tests.
//
// Shapes: as for Attend; the result is [B H Lq Lk], or [B Lq Lk] if q has three axes.
//
// Gradients flow to q, k, Bias and the parameters of Score and Changes.
//
// Scores panics under the same conditions as Attend.
func Scores(t *tensor.Tape, q, k *tensor.Tensor, o Options) *tensor.Tensor {
	const op = "attn: Scores"
	q, k, _, flat := wantHeads(t, op, q, k, k, &o)
	c := newCall(op, headFirst(q), KV{keys: headFirst(k)}, &o)
	c.ThreeAxes = flat
	c.check()
	c.o.Sinks, c.o.Dropout, c.o.Observers = nil, 0, nil
	c.describe(t)
	s := t.Make(c.B, c.H, c.Lq, c.Lk)
	flash.Scores(&c.Attention, s.Data())
	if c.needs(t) {
		t.Record(s, func(ds []float32) {
			g := c.grads(t)
			g.DScores = ds
			flash.Backward(&c.Attention, g)
		})
	}
	if flat {
		s = tensor.Reshape(t, s, c.B, c.Lq, c.Lk)
	}
	return s
}

// MaskedSoftmax returns the softmax of scores over the keys that each query attends to: the
// weights of Attend for precomputed scores.
//
//	weights[i,j] = exp(scores[i,j]) / Σ exp(scores[i,j'])   over the keys j' that query i attends to
//
// All other weights are 0, whatever their scores, and so are all weights of a query that attends
// to no key.
//
// Shapes: scores and the result are [B H Lq Lk], or [B Lq Lk] for one head.
//
// Gradients flow to the scores.
//
// MaskedSoftmax panics with a *tensor.ShapeError if the mask does not fit the scores.
func MaskedSoftmax(t *tensor.Tape, scores *tensor.Tensor, m Mask) *tensor.Tensor {
	const op = "attn: MaskedSoftmax"
	tensor.Want(op, "scores", scores)
	x := scores
	if x.Rank() == 3 {
		x = withHeadAxis(t, op, "scores", x)
	}
	if x.Rank() != 4 {
		badShape(op, "scores", "", x.Shape(), "[B H Lq Lk] or [B Lq Lk]")
	}
	// Queries and keys have no elements because the scores are given.
	given := func(*tensor.Tape, *tensor.Tensor, *tensor.Tensor) *tensor.Tensor { return x }
	o := Options{Mask: m, Weights: true, Score: formScore{Given: given}}
	q, k := tensor.Zeros(x.Dim(0), x.Dim(1), x.Dim(2), 0), tensor.Zeros(x.Dim(0), x.Dim(1), x.Dim(3), 0)
	c := newCall(op, headFirst(q), KV{keys: headFirst(k)}, &o)
	c.ThreeAxes = scores.Rank() == 3
	_, y := c.attend(t, nil)
	return tensor.Reshape(t, y.Weights, scores.Shape()...)
}
