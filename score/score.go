// Package score has the scores of attention, which compare a query with a key: dot product,
// scaled, bilinear, cosine, additive, Gaussian and L1; Func for any user-defined function; and a
// table of them by name, with formulas and parameters. MaxSim compares two texts by vectors of their tokens.
//
//	out := attn.Attend(tape, q, k, v, attn.Options{Score: &score.Gaussian{}})
//
// Each score is an attn.Score: it returns its formula as an attn.Form. Any score with a Form
// works with every option of Attend. Gradients flow to queries, keys and the parameters of the score.
package score

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Func is a user-defined scoring function. It consists of operations on tensors, so gradients
// need no extra code. It returns the scores of all pairs: B·H·Lq·Lk numbers.
//
// Shapes: q [B H Lq Eq], k [B H Lk Ek], the result [B H Lq Lk].
type Func func(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor

// Form returns f as a Given function.
func (f Func) Form() attn.Form { return attn.Form{Given: f.scores} }

// scores calls f.
func (f Func) scores(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
	if f == nil {
		panic(&tensor.ValueError{Op: "attn: Attend", Arg: "score", Got: "a nil score.Func", Want: "a function"})
	}
	return f(t, q, k)
}

// OnKeys returns a score equal to s for the keys k [B H Lk E]. The part of the work that depends
// only on the keys is done once, in OnKeys, instead of at every step of a decoder that attends to
// the same keys. Use the result only with the same k.
func OnKeys(t *tensor.Tape, s attn.Score, k *tensor.Tensor) attn.Score {
	tensor.Want("score: OnKeys", "key", k)
	if f := s.Form(); f.Keys != nil {
		return onKeys{s, f.Keys(t, k)}
	}
	return s
}

// onKeys is a score with mapped keys.
type onKeys struct {
	attn.Score
	keys *tensor.Tensor
}

// Form returns the form of s with the mapped keys.
func (s onKeys) Form() attn.Form {
	f := s.Score.Form()
	f.MappedKeys = s.keys
	return f
}

// dot is scale·qᵀk, divided by √E if perRoot is true.
type dot struct {
	scale   float32
	perRoot bool
}

// Dot returns the score qᵀk.
//
// Source: Luong et al., "Effective Approaches to Attention-based Neural Machine
// Translation", 2015, https://arxiv.org/abs/1508.04025, section 3.1.
func Dot() attn.Score { return dot{scale: 1} }

// ScaledDot returns the score qᵀk/√E.
//
// Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.2.1.
func ScaledDot() attn.Score { return dot{scale: 1, perRoot: true} }

// DotScale returns the score scale·qᵀk. It panics with a *tensor.ValueError if scale is
// not finite.
func DotScale(scale float32) attn.Score {
	s := float64(scale)
	if math.IsNaN(s) || math.IsInf(s, 0) {
		panic(&tensor.ValueError{Op: "score: DotScale", Arg: "scale", Got: fmt.Sprint(scale), Want: "a finite number"})
	}
	return dot{scale: scale}
}

// dotKind and scaledDotKind are the table entries of Dot and ScaledDot.
var (
	dotKind       = Kind{Name: "dot", Formula: "qᵀk", Score: Dot(), Scaled: DotScale}
	scaledDotKind = Kind{Name: "scaled", Formula: "qᵀk / √E", Score: ScaledDot(), Scaled: DotScale}
)

// Form returns scale·qᵀk.
func (s dot) Form() attn.Form { return attn.Form{Scale: s.scale, PerRoot: s.perRoot} }

// Bilinear is the score qᵀWk, Luong's "general", between queries and keys of
// any two sizes.
//
// Source: Luong et al., 2015, section 3.1.
type Bilinear struct {
	W *tensor.Tensor // [Eq Ek]
	// Scaled divides by (Eq·Ek)^¼, which is √E if the sizes are equal.
	Scaled bool
}

// NewBilinear returns a bilinear score with W drawn by nn.Xavier.
func NewBilinear(eq, ek int, rng *rand.Rand) *Bilinear {
	return &Bilinear{W: nn.Xavier(rng, eq, ek)}
}

// Form returns (Wᵀq)ᵀk, scaled if Scaled is true.
func (s *Bilinear) Form() attn.Form {
	const op, arg = "attn: Attend", "w of the bilinear score"
	tensor.Want(op, arg, s.W)
	wantShape(arg, s.W, s.W.Rank() == 2, "[Eq Ek]")
	f := attn.Form{Scale: 1, Queries: func(t *tensor.Tape, q *tensor.Tensor) *tensor.Tensor {
		wantSize("query", q, s.W.Dim(0))
		return tensor.MatMul(t, q, s.W)
	}}
	if s.Scaled {
		f.Scale = float32(math.Pow(float64(max(s.W.Len(), 1)), -0.25))
	}
	return f
}

// Params returns "w".
func (s *Bilinear) Params() nn.Params { return nn.Vars{{Name: "w", Tensor: s.W}}.Params() }

// WithParams returns the score with the given "w".
func (s *Bilinear) WithParams(p map[string]*tensor.Tensor) attn.Score {
	return &Bilinear{W: p["w"], Scaled: s.Scaled}
}

// bilinearKind and scaledBilinearKind are the table entries of Bilinear. Their initial scores are
// equally small, as in ScaledDot. The scaled kind has a larger W, so steps of an optimiser are
// smaller relative to it.
var (
	bilinearKind = Kind{
		Name: "bilinear", Formula: "qᵀ·w·k", Score: &Bilinear{},
		Params: []Param{{Name: "w", Axes: []string{"Eq", "Ek"}, New: func(s Sizes, rng *rand.Rand) *tensor.Tensor {
			w := nn.Xavier(rng, s.Query, s.Key)
			root := float32(math.Sqrt(math.Sqrt(float64(s.Query) * float64(s.Key))))
			for i := range w.Data() {
				w.Data()[i] /= root
			}
			return w
		}}},
	}
	scaledBilinearKind = Kind{
		Name: "scaled-bilinear", Formula: "qᵀ·w·k / (Eq·Ek)^¼", Score: &Bilinear{Scaled: true},
		Params: []Param{{Name: "w", Axes: []string{"Eq", "Ek"}, New: func(s Sizes, rng *rand.Rand) *tensor.Tensor {
			return nn.Xavier(rng, s.Query, s.Key)
		}}},
	}
)

// Cosine is the cosine of the angle between query and key, times a scale. It does not depend on
// the norms of the vectors, however large or small. A vector of zeros has no direction: its
// cosine with any other vector is 0, and so is its gradient. There is no ε.
//
// Source: Graves et al., "Neural Turing Machines", 2014,
// https://arxiv.org/abs/1410.5401, eq. 6.
type Cosine struct {
	Scale *tensor.Tensor // one element, trained if it is a parameter; nil means 1
}

// Form returns the dot product of normalised vectors, times the scale.
func (s *Cosine) Form() attn.Form { return attn.Form{Scale: 1, Queries: s.unitQueries, Keys: unit} }

// unit returns the vectors normalised to length 1.
func unit(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.Normalize(t, x, 0)
}

// unitQueries returns the vectors normalised to the length scale.
func (s *Cosine) unitQueries(t *tensor.Tape, q *tensor.Tensor) *tensor.Tensor {
	q = unit(t, q)
	if s.Scale == nil {
		return q
	}
	wantShape("scale of the cosine score", s.Scale, s.Scale.Len() == 1, "one element")
	return times(t, q, s.Scale)
}

// times returns s·x, where s has one element. The gradient of s is a sum over all queries of a
// batch, which may be millions. times sums it in float64, which tensor.Mul does not.
func times(t *tensor.Tape, x, s *tensor.Tensor) *tensor.Tensor {
	factor := s.Item()
	y := t.Make(x.Shape()...)
	par.For(x.Len(), par.ChunkOfNumbers(x.Len(), 1), func(lo, hi int) { simd.Scale(y.Data()[lo:hi], factor, x.Data()[lo:hi]) })
	if t.Needs(x, s) {
		t.Record(y, func(dy []float32) {
			if dx := t.GradOf(x); dx != nil {
				par.For(len(dx), par.ChunkOfNumbers(len(dx), 1), func(lo, hi int) { simd.Axpy(factor, dy[lo:hi], dx[lo:hi]) })
			}
			if ds := t.GradOf(s); ds != nil {
				var sum float64
				for i, d := range dy {
					if d != 0 {
						sum += float64(d) * float64(x.Data()[i])
					}
				}
				ds[0] += float32(sum)
			}
		})
	}
	return y
}

// Params returns "scale", or nothing if Scale is nil.
func (s *Cosine) Params() nn.Params { return nn.Vars{{Name: "scale", Tensor: s.Scale}}.Params() }

// WithParams returns the score with the given "scale".
func (s *Cosine) WithParams(p map[string]*tensor.Tensor) attn.Score {
	return &Cosine{Scale: p["scale"]}
}

// cosineKind is the table entry of Cosine. Cosines are in [−1, 1], so without a scale all weights
// would be similar. 10 is a usual initial value of a trained scale (Henry et al., "Query-Key
// Normalization for Transformers", 2020).
var cosineKind = Kind{
	Name: "cosine", Formula: "scale·qᵀk / (‖q‖·‖k‖)", Score: &Cosine{},
	Params: []Param{{Name: "scale", Axes: []string{"1"}, Optional: true, New: func(Sizes, *rand.Rand) *tensor.Tensor {
		return tensor.Full(10, 1).Param()
	}}},
	Scaled: func(factor float32) attn.Score { return &Cosine{Scale: tensor.Full(factor, 1)} },
}

// wantShape panics with a *tensor.ShapeError unless the shape of a parameter is ok.
func wantShape(arg string, x *tensor.Tensor, ok bool, want string, args ...any) {
	if !ok {
		panic(&tensor.ShapeError{Op: "attn: Attend", Arg: arg, Got: x.Shape(), Want: fmt.Sprintf(want, args...)})
	}
}

// wantSize panics unless the last axis of x has the given size. The message omits the whole
// shape, because Attend may have combined heads.
func wantSize(arg string, x *tensor.Tensor, e int) {
	tensor.Want("attn: Attend", arg, x)
	if got := x.Dim(-1); got != e {
		panic(&tensor.ShapeError{Op: "attn: Attend", Arg: arg, What: "head size", Got: []int{got}, Want: fmt.Sprintf("E=%d", e)})
	}
}
