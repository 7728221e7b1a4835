package position

import (
	"cmp"
	"fmt"
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// ALiBi adds −slope·|p − j| to the score of a query at position p with key j: attention with
// linear biases, which needs no position embedding. Each query head has one slope. Without
// arguments, the slopes are ALiBiSlopes(H). Slopes are not trained: no gradient flows to them.
//
// Source: Press et al., "Train Short, Test Long: Attention with Linear Biases Enables
// Input Length Extrapolation", 2022, https://arxiv.org/abs/2108.12409, section 3.
func ALiBi(slopes ...float32) attn.ScoreChange { return &alibi{slopes: slopes} }

type alibi struct{ slopes []float32 }

func (r *alibi) Check(s attn.Sizes) error {
	if len(r.slopes) != 0 && len(r.slopes) != s.H {
		return &tensor.ShapeError{Arg: "bias of ALiBi", What: "number of slopes", Got: []int{len(r.slopes)}, Want: fmt.Sprintf("one for each of H=%d heads", s.H)}
	}
	for h, s := range r.slopes {
		if math.IsNaN(float64(s)) || math.IsInf(float64(s), 0) {
			return &tensor.ValueError{Arg: fmt.Sprintf("slope %d of ALiBi", h), Got: fmt.Sprint(s), Want: "a finite number"}
		}
	}
	return nil
}

// Param returns the slopes [1 H 1]. Default slopes are thus computed once per call.
func (r *alibi) Param(_ *tensor.Tape, x attn.Inputs) *tensor.Tensor {
	slopes := r.slopes
	if len(slopes) == 0 {
		slopes = ALiBiSlopes(x.H)
	}
	return tensor.New(slopes, 1, len(slopes), 1)
}

func (*alibi) Adds() bool { return true }

func (r *alibi) Apply(at attn.Row, param, scores []float32) {
	slope, d := param[0], at.Position-at.Key
	for n := range scores {
		scores[n] -= float32(slope * float32(max(d-n, n-d)))
	}
}

func (*alibi) Back(attn.Row, []float32, []float32, []float32, []float32, []float32) {}

// ALiBiSlopes returns the published slopes for a number of heads n. If n is a power of two, they
// are 2^(−8/n), 2^(−16/n), …. Otherwise they are the slopes of the next smaller power of two,
// followed by every second slope of twice that power. It panics with a *tensor.ValueError if
// heads is negative.
func ALiBiSlopes(heads int) []float32 {
	if heads < 0 {
		panic(&tensor.ValueError{Op: "position: ALiBiSlopes", Arg: "heads", Got: fmt.Sprint(heads), Want: "a number of at least 0"})
	}
	power := 1
	for 2*power <= heads {
		power *= 2
	}
	slopes := make([]float32, 0, heads)
	for i := range min(power, heads) {
		slopes = append(slopes, float32(math.Exp2(-8*float64(i+1)/float64(power))))
	}
	for i := 0; len(slopes) < heads; i += 2 {
		slopes = append(slopes, float32(math.Exp2(-4*float64(i+1)/float64(power))))
	}
	return slopes
}

// ShawBias adds scale·q_i·r_c to the score of query i with key j, where c = clip(j − p, −K, K) is
// the clipped distance from the query's position p. The trained vectors r [2K+1 E] have one row
// per distance, starting with −K; r [H 2K+1 E] has separate vectors for each head. The scale is
// 1/√E, as for the score.
//
// Gradients flow to q and r. Attend panics with a *tensor.ShapeError if r does not fit q.
//
// Source: Shaw et al., "Self-Attention with Relative Position Representations", 2018,
// https://arxiv.org/abs/1803.02155, eq. 4.
func ShawBias(r *tensor.Tensor) attn.ScoreChange { return &relative{r: r} }

// TransformerXLBias adds scale·(q_i + v)·r_c + scale·u·k_j to the score of query i with key j: the
// terms b, d and c of Transformer-XL. c = clip(j − p, −K, K) is the clipped distance from the
// query's position p. r [2K+1 E], or [H 2K+1 E], has one row per distance, starting with −K: its
// projected encoding. u and v are [H E]. The scale is 1/√E.
//
// Gradients flow to q, k, r, u and v. Attend panics with a *tensor.ShapeError if their shapes do
// not fit.
//
// Source: Dai et al., "Transformer-XL: Attentive Language Models beyond a Fixed-Length
// Context", 2019, https://arxiv.org/abs/1901.02860, section 3.3.
func TransformerXLBias(r, u, v *tensor.Tensor) []attn.ScoreChange {
	return []attn.ScoreChange{&relative{r: r, v: v}, keyBias{u}}
}

// DeBERTaBias adds scale·q_i·keys_c + scale·k_j·queries_c to the score of query i with key j: the terms from content to
// position and from position to content of disentangled attention. c = clip(j − p, −K, K) is the clipped distance from
// the query's position p. keys and queries are [2K+1 E], or [H 2K+1 E], with one row per distance, starting with −K:
// projected embeddings of the distances. A term whose vectors are nil is left out.
//
// A scale of 0 means 1/√E. DeBERTa's is 1/√(n·E) for n terms of the score, q_i·k_j included, whose scale is the same: use
// score.DotScale.
//
// Gradients flow to q, k, keys and queries. Attend panics with a *tensor.ShapeError if their shapes do not fit.
//
// Source: He et al., "DeBERTa: Decoding-enhanced BERT with Disentangled Attention", 2021,
// https://arxiv.org/abs/2006.03654, section 3.1.
func DeBERTaBias(keys, queries *tensor.Tensor, scale float32) []attn.ScoreChange {
	var terms []attn.ScoreChange
	if keys != nil {
		terms = append(terms, &relative{r: keys, scale: scale})
	}
	if queries != nil {
		terms = append(terms, &relativeToKey{relative{r: queries, scale: scale}})
	}
	return terms
}

// relative is scale·(q_i + v)·r_c, for a clipped distance c.
type relative struct {
	r, v  *tensor.Tensor
	scale float32 // 0 means 1/√E
}

func (x *relative) Check(s attn.Sizes) error {
	const arg = "vectors of relative positions"
	want, sizes := fmt.Sprintf("[2K+1 E] or [H=%d 2K+1 E]", s.H), []int{-1, -1}
	if x.r != nil && x.r.Rank() == 3 {
		sizes = []int{s.H, -1, -1}
	}
	if err := tensor.CheckShape(arg, x.r, want, sizes...); err != nil {
		return err
	}
	if x.r.Dim(-2)%2 == 0 {
		return &tensor.ShapeError{Arg: arg, Got: x.r.Shape(), Want: want}
	}
	if x.v == nil {
		return nil
	}
	e := x.r.Dim(-1)
	return tensor.CheckShape("v of relative positions", x.v, fmt.Sprintf("[H=%d E=%d]", s.H, e), s.H, e)
}

// Param returns scale·(q + v)·rᵀ [B H Lq 2K+1].
func (x *relative) Param(t *tensor.Tape, in attn.Inputs) *tensor.Tensor {
	q := in.Queries(t)
	e := q.Dim(3)
	wantHeadSize(x.r, e)
	if x.v != nil {
		q = tensor.Add(t, q, tensor.Reshape(t, x.v, 1, x.v.Dim(0), 1, e))
	}
	q = tensor.Scale(t, q, x.factor())
	return tensor.MatMulT(t, q, tensor.BroadcastTo(t, x.r, q.Dim(0), q.Dim(1), x.r.Dim(-2), e))
}

func (x *relative) factor() float32 {
	return cmp.Or(x.scale, float32(1/math.Sqrt(float64(x.r.Dim(-1)))))
}

// numbers returns the param row of a query and the index of its number for key at.Key. Each
// following key uses the next number, up to the last.
func (x *relative) numbers(at attn.Row, param []float32) (all []float32, first int) {
	n := x.r.Dim(-2)
	return param[at.Query*n:][:n], at.Key - at.Position + n/2
}

func (*relative) Adds() bool { return true }

func (x *relative) Apply(at attn.Row, param, scores []float32) {
	all, first := x.numbers(at, param)
	for j := range scores {
		scores[j] += all[min(max(first+j, 0), len(all)-1)]
	}
}

func (x *relative) Back(at attn.Row, _, dparam, _, _, grad []float32) {
	all, first := x.numbers(at, dparam)
	for j, g := range grad {
		all[min(max(first+j, 0), len(all)-1)] += g
	}
}

// relativeToKey is scale·k_j·r_c, for a clipped distance c.
type relativeToKey struct{ relative }

// Param returns scale·r·kᵀ [B H 2K+1 Lk].
func (x *relativeToKey) Param(t *tensor.Tape, in attn.Inputs) *tensor.Tensor {
	k := in.Keys(t)
	b, g, e, h, n := k.Dim(0), k.Dim(1), k.Dim(3), in.H, x.r.Dim(-2)
	wantHeadSize(x.r, e)
	r := tensor.BroadcastTo(t, tensor.Scale(t, x.r, x.factor()), b, h, n, e)
	r = tensor.Reshape(t, r, b, g, h/g*n, e) // heads that share a key
	return tensor.Reshape(t, tensor.MatMulT(t, r, k), b, h, n, k.Dim(2))
}

// numbers returns the rows and columns of a head's param, and the row for key at.Key. A following key has the next row.
func (x *relativeToKey) numbers(at attn.Row, size int) (rows, columns, first int) {
	rows = x.r.Dim(-2)
	return rows, size / rows, at.Key - at.Position + rows/2
}

func (x *relativeToKey) Apply(at attn.Row, param, scores []float32) {
	rows, columns, first := x.numbers(at, len(param))
	for j := range scores {
		scores[j] += param[min(max(first+j, 0), rows-1)*columns+at.Key+j]
	}
}

func (x *relativeToKey) Back(at attn.Row, _, dparam, _, _, grad []float32) {
	rows, columns, first := x.numbers(at, len(dparam))
	for j, g := range grad {
		dparam[min(max(first+j, 0), rows-1)*columns+at.Key+j] += g
	}
}

// keyBias is scale·u·k_j.
type keyBias struct{ u *tensor.Tensor }

func (x keyBias) Check(s attn.Sizes) error {
	return tensor.CheckShape("u of relative positions", x.u, fmt.Sprintf("[H=%d E]", s.H), s.H, -1)
}

// Param returns scale·u·kᵀ [B H Lk].
func (x keyBias) Param(t *tensor.Tape, in attn.Inputs) *tensor.Tensor {
	k := in.Keys(t)
	b, g, lk, e := k.Dim(0), k.Dim(1), k.Dim(2), k.Dim(3)
	h := x.u.Dim(0)
	wantHeadSize(x.u, e)
	u := tensor.Scale(t, tensor.Reshape(t, x.u, 1, g, h/g, e), float32(1/math.Sqrt(float64(e))))
	return tensor.Reshape(t, tensor.MatMulT(t, tensor.BroadcastTo(t, u, b, g, h/g, e), k), b, h, lk)
}

func (keyBias) Adds() bool { return true }

func (x keyBias) Apply(at attn.Row, param, scores []float32) {
	tensor.AddTo(scores, param[at.Key:][:len(scores)])
}

func (x keyBias) Back(at attn.Row, _, dparam, _, _, grad []float32) {
	d := dparam[at.Key:][:len(grad)]
	tensor.AddTo(d, grad)
}

// wantHeadSize panics unless vectors of relative positions have e elements.
func wantHeadSize(x *tensor.Tensor, e int) {
	if got := x.Dim(-1); got != e {
		panic(&tensor.ShapeError{Op: "attn: Attend", Arg: "bias of relative positions", What: "head size", Got: []int{got}, Want: fmt.Sprintf("E=%d", e)})
	}
}
