package attn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Score compares queries with keys: the scoring function a(q, k) of an attention mechanism.
type Score interface {
	// Form returns how queries and keys are compared.
	Form() Form
}

// ScoreFunc is a user-defined scoring function, made of operations on tensors: gradients
// flow by themselves. It returns the scores of all pairs, which take B·H·Lq·Lk numbers.
//
// Shapes: q [B H Lq Eq], k [B H Lk Ek], the result [B H Lq Lk].
type ScoreFunc func(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor

// Form returns the form that is given by f.
func (f ScoreFunc) Form() Form {
	if f == nil {
		panic(&tensor.ValueError{Op: "attn: Attend", Arg: "score", Got: "a nil ScoreFunc", Want: "a function"})
	}
	return Form{Given: f}
}

// Form is how a Score compares φ(q) with ψ(k), the vectors that it makes of a query and of a
// key:
//
//	Scale·φ(q)ᵀψ(k)          the dot product, unless one of the others is set
//	wᵀ·tanh(φ(q) + ψ(k))     Additive is w
//	−½‖(φ(q) − ψ(k))∘w‖²     Gaussian is w
//	Given(φ(q), ψ(k))        any function, which returns the scores of all pairs
//
// The first three are computed in tiles, and the scores of all pairs are never in memory.
// At most one of Additive, Gaussian and Given is set.
type Form struct {
	// Queries and Keys are φ and ψ. Nil leaves the vectors as they are.
	Queries, Keys VectorMap
	// Scale multiplies the dot product, which PerRoot divides by √E, the root of the
	// size of what is multiplied.
	Scale   float32
	PerRoot bool
	// Additive is w [h], learnt if it is a parameter, where φ and ψ give h elements.
	Additive *tensor.Tensor
	// Gaussian is w [E], or [1] for one factor, learnt if it is a parameter, where φ and ψ
	// give E elements.
	Gaussian *tensor.Tensor
	// Given returns scores [B H Lq Lk]. With grouped queries, each key head is repeated for
	// the query heads that share it.
	Given ScoreFunc
	// MappedKeys is ψ(k) [B G Lk …] of the keys of the call, where it is known. Keys is
	// then not called.
	MappedKeys *tensor.Tensor
}

// isDot reports whether the form is the dot product.
func (f Form) isDot() bool { return f.Additive == nil && f.Gaussian == nil && f.Given == nil }

// scale returns the factor of the dot product of vectors of e elements.
func (f Form) scale(e int) float32 {
	if f.PerRoot {
		return f.Scale * float32(1/math.Sqrt(float64(max(e, 1))))
	}
	return f.Scale
}

// check panics if the form is more than one.
func (f Form) check(op string) {
	n := 0
	for _, set := range []bool{f.Additive != nil, f.Gaussian != nil, f.Given != nil} {
		if set {
			n++
		}
	}
	if n > 1 {
		panic(&tensor.ValueError{Op: op, Arg: "form of the score", Got: fmt.Sprint(n, " of Additive, Gaussian and Given"), Want: "at most one"})
	}
}

// given returns the scores [B H Lq Lk] of a form that is given.
func (f Form) given(t *tensor.Tape, q, k *tensor.Tensor, d dims) *tensor.Tensor {
	s := f.Given(t, q, perQuery(t, k, d.H))
	wantTensor("attn: Attend", "score's result", s)
	if want := []int{d.B, d.H, d.Lq, d.allKeys()}; !slices.Equal(s.Shape(), want) {
		panic(&tensor.ShapeError{Op: "attn: Attend", Arg: "score's result", Got: s.Shape(), Want: fmt.Sprint(want)})
	}
	return s
}

// perQuery returns keys [B G Lk E] with one head for each of h query heads.
func perQuery(t *tensor.Tape, k *tensor.Tensor, h int) *tensor.Tensor {
	b, g, lk, e := k.Dim(0), k.Dim(1), k.Dim(2), k.Dim(3)
	if g == h {
		return k
	}
	k = tensor.BroadcastTo(t, tensor.Reshape(t, k, b, g, 1, lk, e), b, g, h/g, lk, e)
	return tensor.Reshape(t, k, b, h, lk, e)
}

// VectorMap turns vectors [… E] into others one by one, by operations on tensors.
type VectorMap func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor

// OnKeys returns a score equal to s on the keys k [B H Lk E], with the part of
// the work that depends on the keys alone already done: a decoder that asks the
// same keys step after step saves it. The result must be given the same k.
func OnKeys(t *tensor.Tape, s Score, k *tensor.Tensor) Score {
	wantTensor("attn: OnKeys", "key", k)
	if f := s.Form(); f.Keys != nil {
		return onKeys{s, f.Keys(t, k)}
	}
	return s
}

// onKeys is a score whose keys have been mapped.
type onKeys struct {
	Score
	keys *tensor.Tensor
}

// Form compares queries with the keys that have been mapped.
func (s onKeys) Form() Form {
	f := s.Score.Form()
	f.MappedKeys = s.keys
	return f
}

// dot is scale·qᵀk, divided by √E if it is perRoot.
type dot struct {
	scale   float32
	perRoot bool
}

// Dot returns the score qᵀk.
//
// Source: Luong et al., "Effective Approaches to Attention-based Neural Machine
// Translation", 2015, https://arxiv.org/abs/1508.04025, section 3.1.
func Dot() Score { return dot{scale: 1} }

// ScaledDot returns the score qᵀk/√E.
//
// Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.2.1.
func ScaledDot() Score { return dot{scale: 1, perRoot: true} }

// DotScale returns the score scale·qᵀk. It panics with a *tensor.ValueError if scale is
// not finite.
func DotScale(scale float32) Score {
	s := float64(scale)
	wantNumber("attn: DotScale", "scale", scale, !math.IsNaN(s) && !math.IsInf(s, 0), "a finite number")
	return dot{scale: scale}
}

// dotKind and scaledDotKind are the entries of Dot and ScaledDot.
var (
	dotKind       = ScoreKind{Name: "dot", Formula: "qᵀk", Score: Dot(), Scaled: DotScale}
	scaledDotKind = ScoreKind{Name: "scaled", Formula: "qᵀk / √E", Score: ScaledDot(), Scaled: DotScale}
)

// Form returns scale·qᵀk.
func (s dot) Form() Form { return Form{Scale: s.scale, PerRoot: s.perRoot} }

// Bilinear is the score qᵀWk, Luong's "general", between queries and keys of
// any two sizes.
//
// Source: Luong et al., 2015, section 3.1.
type Bilinear struct {
	W *tensor.Tensor // [Eq Ek]
	// Scaled divides by (Eq·Ek)^¼, which is √E where the sizes agree.
	Scaled bool
}

// NewBilinear returns a bilinear score with W drawn as nn.Xavier does.
func NewBilinear(eq, ek int, rng *rand.Rand) *Bilinear {
	return &Bilinear{W: nn.Xavier(rng, eq, ek)}
}

// Form returns (Wᵀq)ᵀk, scaled if it should be.
func (s *Bilinear) Form() Form {
	const op, arg = "attn: Attend", "w of the bilinear score"
	wantTensor(op, arg, s.W)
	if s.W.Rank() != 2 {
		panic(&tensor.ShapeError{Op: op, Arg: arg, Got: s.W.Shape(), Want: "[Eq Ek]"})
	}
	f := Form{Scale: 1, Queries: func(t *tensor.Tape, q *tensor.Tensor) *tensor.Tensor {
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

// WithParams returns the score with another "w".
func (s *Bilinear) WithParams(p map[string]*tensor.Tensor) Score {
	return &Bilinear{W: p["w"], Scaled: s.Scaled}
}

// bilinearKind and scaledBilinearKind are the entries of Bilinear. The scores of both
// begin alike, as small as the factor of ScaledDot makes them. W is larger in the second,
// and so the steps of an optimiser are smaller beside it.
var (
	bilinearKind = ScoreKind{
		Name: "bilinear", Formula: "qᵀ·w·k", Score: &Bilinear{},
		Params: []ScoreParam{{Name: "w", Axes: []string{"Eq", "Ek"}, New: func(s ScoreSizes, rng *rand.Rand) *tensor.Tensor {
			w := nn.Xavier(rng, s.Query, s.Key)
			root := float32(math.Sqrt(math.Sqrt(float64(s.Query) * float64(s.Key))))
			for i := range w.Data() {
				w.Data()[i] /= root
			}
			return w
		}}},
	}
	scaledBilinearKind = ScoreKind{
		Name: "scaled-bilinear", Formula: "qᵀ·w·k / (Eq·Ek)^¼", Score: &Bilinear{Scaled: true},
		Params: []ScoreParam{{Name: "w", Axes: []string{"Eq", "Ek"}, New: func(s ScoreSizes, rng *rand.Rand) *tensor.Tensor {
			return nn.Xavier(rng, s.Query, s.Key)
		}}},
	}
)

// Cosine is the cosine of the angle between query and key, times a scale. It does not
// depend on their lengths, however large or small. A vector of zeros has no direction:
// its cosine with any other is 0, and so is its gradient. There is no ε.
//
// Source: Graves et al., "Neural Turing Machines", 2014,
// https://arxiv.org/abs/1410.5401, eq. 6.
type Cosine struct {
	Scale *tensor.Tensor // one element, learnt if it is a parameter; nil means 1
}

// Form returns the dot product of vectors of length 1.
func (s *Cosine) Form() Form { return Form{Scale: 1, Queries: s.unitQueries, Keys: unit} }

// unit returns vectors of length 1.
func unit(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.Normalize(t, x, 0)
}

// unitQueries returns vectors whose length is the scale.
func (s *Cosine) unitQueries(t *tensor.Tape, q *tensor.Tensor) *tensor.Tensor {
	q = unit(t, q)
	if s.Scale == nil {
		return q
	}
	if s.Scale.Len() != 1 {
		panic(&tensor.ShapeError{Op: "attn: Attend", Arg: "scale of the cosine score", Got: s.Scale.Shape(), Want: "one element"})
	}
	return times(t, q, s.Scale)
}

// times returns s·x, where s has one element. The gradient of s is a sum over all
// queries of a batch, which may be millions: it is taken in float64, and so this
// is not tensor.Mul.
func times(t *tensor.Tape, x, s *tensor.Tensor) *tensor.Tensor {
	factor := s.Item()
	y := t.Make(x.Shape()...)
	par.For(x.Len(), grain, func(lo, hi int) { simd.Scale(y.Data()[lo:hi], factor, x.Data()[lo:hi]) })
	if t.Needs(x, s) {
		t.Record(y, func(dy []float32) {
			if dx := t.GradOf(x); dx != nil {
				par.For(len(dx), grain, func(lo, hi int) { simd.Axpy(factor, dy[lo:hi], dx[lo:hi]) })
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

// grain is the number of scores that one thread takes at a time.
const grain = 1 << 13

// Params returns "scale" where there is one.
func (s *Cosine) Params() nn.Params { return nn.Vars{{Name: "scale", Tensor: s.Scale}}.Params() }

// WithParams returns the score with another "scale".
func (s *Cosine) WithParams(p map[string]*tensor.Tensor) Score { return &Cosine{Scale: p["scale"]} }

// cosineKind is the entry of Cosine. Cosines lie in [−1, 1]: without a scale no weight
// could ever stand out. 10 is where learnt scales tend to begin (Henry et al.,
// "Query-Key Normalization for Transformers", 2020).
var cosineKind = ScoreKind{
	Name: "cosine", Formula: "scale·qᵀk / (‖q‖·‖k‖)", Score: &Cosine{},
	Params: []ScoreParam{{Name: "scale", Axes: []string{"1"}, Optional: true, New: func(ScoreSizes, *rand.Rand) *tensor.Tensor {
		return tensor.Full(10, 1).Param()
	}}},
	Scaled: func(factor float32) Score { return &Cosine{Scale: tensor.Full(factor, 1)} },
}

// wantSize panics unless the last axis of x has the given size. It does not name
// the whole shape, because Attend may have put heads together.
func wantSize(arg string, x *tensor.Tensor, e int) {
	wantTensor("attn: Attend", arg, x)
	wantHeadSize("attn: Attend", arg, x.Dim(-1), e)
}

func wantHeadSize(op, arg string, got, want int) {
	if got != want {
		panic(&tensor.ShapeError{Op: op, Arg: arg, What: "head size", Got: []int{got}, Want: fmt.Sprintf("E=%d", want)})
	}
}

// eachHead runs the backward step of heads 0 to n, whose gradients of q, k and
// the shared w come from the same factors and are worked out together. Heads run
// at the same time, so each adds to a dw of its own; these are added up in order.
func eachHead(t *tensor.Tape, n int, w *tensor.Tensor, back func(z int, dw []float32)) {
	size := w.Len()
	parts := t.Floats(n * size)
	clear(parts)
	par.For(n, 1, func(lo, hi int) {
		for z := lo; z < hi; z++ {
			back(z, parts[z*size:][:size])
		}
	})
	if dw := t.GradOf(w); dw != nil {
		for z := range n {
			simd.Add(dw, dw, parts[z*size:][:size])
		}
	}
}

// gradOr returns the gradient of x to add to, or memory of its size that nobody
// reads if x needs none.
func gradOr(t *tensor.Tape, x *tensor.Tensor) []float32 {
	if g := t.GradOf(x); g != nil {
		return g
	}
	return t.Floats(x.Len())
}
