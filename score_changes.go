package attn

import (
	"math"

	"github.com/attn-go/attn/internal/flash"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// ScoreChange changes the scores of a query after their scale and before the mask, one row at a
// time. Examples are the soft-cap, ALiBi and relative positions. It needs no memory of Lq·Lk
// numbers. All methods except Check and Param are called concurrently.
type ScoreChange interface {
	// Check returns an error unless the change fits the sizes of a call. Attend panics with that
	// error. A *tensor.ShapeError may omit the operation; Attend adds it.
	Check(s Sizes) error
	// Param returns the numbers that the change reads, [B or 1, H or 1, …], or nil if it needs
	// none. If they depend on the queries or keys, Param computes them on t. The other methods
	// receive the part for their sequence and head.
	Param(t *tensor.Tape, x Inputs) *tensor.Tensor
	// Adds reports whether Apply only adds terms that do not depend on the scores. The gradient
	// of the scores then passes through unchanged.
	Adds() bool
	// Apply changes the scores of a query with the keys at.Key, at.Key+1, …. Scores of masked
	// keys are arbitrary.
	Apply(at Row, param, scores []float32)
	// Back adds the gradient of param to dparam. Unless Adds is true, Back also replaces grad,
	// the gradient of the changed scores, by the gradient of the original scores. before and
	// after are the scores before and after Apply, nil if Adds is true. dparam is nil if Param
	// needs no gradient; Back is not called if Adds is true and dparam is nil.
	Back(at Row, param, dparam, before, after, grad []float32)
}

// Row is a part of a row of scores:
//
//	Batch, Head, Query  indices of sequence, query head and query
//	Key                 the first key
//	Position            position of the query among the keys of its sequence: Query + Lk − Lq, so
//	                    that the last query is at the last key
type Row = flash.Row

// Sizes are the sizes of a call of Attend:
//
//	B, H, G, Lq, Lk     numbers of sequences, query heads, key and value heads, queries and keys
//	QueryLens, KeyLens  numbers of queries and keys of each sequence; later positions are
//	                    padding; nil means Lq and Lk
//	ThreeAxes           whether the caller's query, key and value have no head axis
//	Layer               name of the layer
//	Signed              whether weights may be negative and rows need not sum to 1, as in package
//	                    linear
//
// The methods Queries and Keys return the lengths of a sequence without padding, Offset the
// position of its first query, and Ragged whether there is padding. Shape returns the shape of
// the scores, and Broadcasts reports whether another shape broadcasts to it.
type Sizes = flash.Sizes

// Inputs are the sizes of a call and the compared vectors, [B H Lq E] and [B G Lk E], after
// projection and position.
type Inputs struct {
	Sizes
	Queries, Keys func(t *tensor.Tape) *tensor.Tensor
}

// NoParam can be embedded in a ScoreChange that fits all sizes and reads no numbers.
type NoParam struct{}

// Check returns nil.
func (NoParam) Check(Sizes) error { return nil }

// Param returns nil.
func (NoParam) Param(*tensor.Tape, Inputs) *tensor.Tensor { return nil }

// SoftCap returns the change that bounds scores smoothly to ±limit:
//
//	s becomes limit·tanh(s/limit)
//
// It panics with a *tensor.ValueError if the limit is not a positive finite number.
//
// Source: Gemma Team, "Gemma 2", 2024, https://arxiv.org/abs/2408.00118, section 2.
func SoftCap(limit float32) ScoreChange {
	wantNumber("attn: SoftCap", "limit", limit, validCap(limit), "a positive finite number")
	return softCap{limit: limit}
}

// validCap reports whether a limit and its inverse are positive finite numbers.
func validCap(limit float32) bool { return limit >= 0x1p-126 && limit <= math.MaxFloat32 }

type softCap struct {
	NoParam
	limit float32
}

func (softCap) Adds() bool { return false }

func (c softCap) Apply(_ Row, _, s []float32) {
	simd.Scale(s, 1/c.limit, s)
	simd.Tanh(s, s)
	simd.Scale(s, c.limit, s)
}

func (c softCap) Back(_ Row, _, _, _, after, grad []float32) {
	for j, y := range after {
		t := y / c.limit
		grad[j] *= 1 - float32(t*t)
	}
}

// changes returns all changes of the scores of a call, in the order soft-cap, Changes, Bias.
func (o *Options) changes(s Sizes) []ScoreChange {
	var all []ScoreChange
	if o.SoftCap != 0 {
		all = append(all, SoftCap(o.SoftCap))
	}
	all = append(all, o.Changes...)
	if o.Bias != nil {
		all = append(all, biasTensor{o.Bias, s.ThreeAxes})
	}
	return all
}

// bound returns a change together with its numbers, and the numbers as a tensor.
func bound(t *tensor.Tape, op string, c ScoreChange, x Inputs) (flash.Change, *tensor.Tensor) {
	y, param := flash.Change{Rule: c}, c.Param(t, x)
	if param == nil {
		return y, nil
	}
	shape := param.Shape()
	if len(shape) < 2 || shape[0] != 1 && shape[0] != x.B || shape[1] != 1 && shape[1] != x.H {
		badShape(op, "param of a score change", "", shape, "[B=%d or 1, H=%d or 1, …]", x.B, x.H)
	}
	y.Param, y.Size = param.Data(), 1
	for _, n := range shape[2:] {
		y.Size *= n
	}
	if shape[1] > 1 {
		y.Head = y.Size
	}
	if shape[0] > 1 {
		y.Batch = shape[1] * y.Size
	}
	return y, param
}

// biasTensor is Options.Bias as a ScoreChange.
type biasTensor struct {
	x     *tensor.Tensor
	three bool // as Sizes.ThreeAxes
}

// shape returns the shape of the bias with four axes.
func (r biasTensor) shape() [4]int {
	shape := [4]int{1, 1, 1, 1}
	own := r.x.Shape()
	if r.three && len(own) == 3 { // [B Lq Lk]
		return [4]int{own[0], 1, own[1], own[2]}
	}
	copy(shape[4-len(own):], own)
	return shape
}

func (r biasTensor) Check(s Sizes) error {
	if s.Broadcasts(r.x.Shape()) {
		return nil
	}
	_, letters := s.Shape()
	return &tensor.ShapeError{Arg: "bias", Got: r.x.Shape(), Want: "a shape that broadcasts to " + letters}
}

func (r biasTensor) Param(t *tensor.Tape, _ Inputs) *tensor.Tensor {
	shape := r.shape()
	return tensor.Reshape(t, r.x, shape[:]...)
}

// elements returns the bias of a row: n elements from key at.Key on, or a single element for all
// keys.
func (r biasTensor) elements(at Row, x []float32, n int) []float32 {
	shape := r.shape()
	if shape[2] > 1 {
		x = x[at.Query*shape[3]:]
	}
	if shape[3] == 1 {
		return x[:1]
	}
	return x[at.Key:][:n]
}

func (biasTensor) Adds() bool { return true }

func (r biasTensor) Apply(at Row, param, scores []float32) {
	x := r.elements(at, param, len(scores))
	if len(x) == len(scores) {
		simd.Add(scores, scores, x)
		return
	}
	for j := range scores {
		scores[j] += x[0]
	}
}

func (r biasTensor) Back(at Row, _, dparam, _, _, grad []float32) {
	if x := r.elements(at, dparam, len(grad)); len(x) == len(grad) {
		simd.Add(x, x, grad)
	} else {
		x[0] += simd.Sum(grad)
	}
}
