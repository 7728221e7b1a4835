package attn

import (
	"math"

	"github.com/attn-go/attn/internal/flash"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// ScoreChange changes the scores of a query after their scale and before the mask, a row at a
// time: soft-cap, ALiBi, relative positions, or your own. It costs no memory of Lq·Lk. Its
// methods but Check and Param are called concurrently.
type ScoreChange interface {
	// Check returns an error unless the change fits the sizes of a call. Attend panics with
	// it; a *tensor.ShapeError need not name the operation.
	Check(s Sizes) error
	// Param returns the numbers that the change reads, [B or 1, H or 1, …], made on t if
	// they depend on the queries or keys; nil if there are none. The methods below get the
	// part for their sequence and head.
	Param(t *tensor.Tape, x Inputs) *tensor.Tensor
	// Adds reports whether Apply only adds terms, which do not depend on the scores. The
	// gradient of the scores then passes unchanged.
	Adds() bool
	// Apply changes the scores of a query with the keys at.Key, at.Key+1, …. Some of them
	// may be hidden by the mask, and contain anything.
	Apply(at Row, param, scores []float32)
	// Back adds to dparam the gradient of param, and, unless the change only adds, turns
	// grad, the gradient of the changed scores, into that of the scores before. before and
	// after are what Apply was given and made of it, nil if the change only adds. dparam is
	// nil if Param needs no gradient; a change that only adds is then not called.
	Back(at Row, param, dparam, before, after, grad []float32)
}

// Row is a part of a row of scores:
//
//	Batch, Head, Query  of sequence, query head and query
//	Key                 the first key
//	Position            where the query is among the keys of its sequence, of which the last
//	                    query is at the last key: Query + Lk − Lq
type Row = flash.Row

// Sizes are those of a call of Attend:
//
//	B, H, G, Lq, Lk     sequences, query heads, key and value heads, queries, keys
//	QueryLens, KeyLens  queries and keys of each sequence, where they differ: what follows
//	                    is padding; nil means Lq and Lk
//	ThreeAxes           whether the caller's query, key and value have no axis of heads
//
// Its methods Queries and Keys return the numbers of a sequence without padding, Offset the
// position of its first query, and Ragged whether there is padding; Shape returns the shape of
// the scores, and Broadcasts reports whether another one broadcasts to it.
type Sizes = flash.Sizes

// Inputs gives a ScoreChange the sizes of a call and the vectors that are compared,
// [B H Lq E] and [B G Lk E], after projection and position.
type Inputs struct {
	Sizes
	Queries, Keys func(t *tensor.Tape) *tensor.Tensor
}

// NoParam is for embedding in a ScoreChange that fits all sizes and reads no numbers.
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

// changes returns what changes the scores of a call, in this order: soft-cap, changes, bias.
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

// bound returns a change with its numbers, and these.
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

// shape returns that of the array as one of four axes.
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

// elements returns those of a row: n from key at.Key on, or the one of all keys.
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
