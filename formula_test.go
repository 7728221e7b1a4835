package attn_test

import (
	"math"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// This file contains the formula of attention, one operation on tensors after the other, as a
// paper writes it. It stores every intermediate result; its gradients are those of the
// operations. The tests compare it with Attend, which computes the same in tiles.

// formula is Attend by its definition:
//
//	scores  = changes(score(q, k)) + bias       [B H Lq Lk]
//	weights = softmax(scores, −∞ where hidden)  [B H Lq Lk]
//	out     = dropout(weights)·v                [B H Lq V]
func formula(t *tensor.Tape, q, k, v *tensor.Tensor, o attn.Options) attn.Output {
	b, h, lq, lk := q.Dim(0), q.Dim(1), q.Dim(2), k.Dim(2)
	s := formulaScores(t, q, k, o)
	if o.Sinks != nil { // a key without a value, in front of the others
		s = tensor.Concat(t, 3, tensor.BroadcastTo(t, tensor.Reshape(t, o.Sinks, 1, h, 1, 1), b, h, lq, 1), s)
	}
	weights := tensor.Softmax(t, s)
	if o.Sinks != nil {
		weights = tensor.Slice(t, weights, 3, 1, lk+1)
	}
	y := attn.Output{}
	if o.Weights {
		y.Weights = weights
	}
	if o.LogSumExp {
		y.LogSumExp = tensor.LogSumExp(t, s)
	}
	for _, observer := range o.Observers {
		observer.Begin(sizesOfCall(q, k, o))
		eachRow(sizesOfCall(q, k, o), func(at attn.Row, lo, hi int) { observer.Row(at, weights.Data()[lo:hi]) })
	}
	y.Out = tensor.Mix(t, tensor.Dropout(t, weights, o.Dropout), perHead(t, v, h))
	if o.Gates != nil {
		shape := []int{1, h, 1, 1}
		if o.Gates.Rank() == 2 {
			shape[0] = b
		}
		y.Out = tensor.Mul(t, y.Out, tensor.BroadcastTo(t, tensor.Reshape(t, o.Gates, shape...), y.Out.Shape()...))
	}
	return y
}

// formulaScores returns the input of the softmax, with −∞ for hidden keys.
func formulaScores(t *tensor.Tape, q, k *tensor.Tensor, o attn.Options) *tensor.Tensor {
	return hidden(t, formulaChanges(t, q, k, o), o.Mask.Array(sizesOfCall(q, k, o)))
}

// formulaChanges returns scores after all changes except the mask.
func formulaChanges(t *tensor.Tape, q, k *tensor.Tensor, o attn.Options) *tensor.Tensor {
	s := formulaScore(t, o.Score, q, perHead(t, k, q.Dim(1)))
	if c := o.SoftCap; c != 0 {
		s = tensor.Scale(t, tensor.Tanh(t, tensor.Scale(t, s, 1/c)), c)
	}
	for _, c := range o.Changes {
		s = changed(t, c, s, q, k, o)
	}
	if o.Bias != nil {
		s = tensor.Add(t, s, o.Bias)
	}
	return s
}

// formulaScore returns the scores of all pairs of q [B H Lq Eq] and k [B H Lk Ek].
func formulaScore(t *tensor.Tape, scored attn.Score, q, k *tensor.Tensor) *tensor.Tensor {
	if scored == nil {
		scored = score.ScaledDot()
	}
	f := scored.Form()
	if f.Queries != nil {
		q = f.Queries(t, q)
	}
	switch {
	case f.MappedKeys != nil:
		k = perHead(t, f.MappedKeys, q.Dim(1))
	case f.Keys != nil:
		k = f.Keys(t, k)
	}
	// Each pair: [B H Lq 1 E] with [B H 1 Lk E].
	b, h, lq, lk := q.Dim(0), q.Dim(1), q.Dim(2), k.Dim(2)
	pairs := func() (*tensor.Tensor, *tensor.Tensor) {
		return tensor.Reshape(t, q, b, h, lq, 1, q.Dim(3)), tensor.Reshape(t, k, b, h, 1, lk, k.Dim(3))
	}
	l1, isL1 := scored.(*score.L1) // its form calls the code under test
	switch {
	case isL1: // −‖(q − k)∘w‖₁, where |x| = relu(x) + relu(−x)
		q, k := pairs()
		d := tensor.Sub(t, q, k)
		if l1.W != nil {
			d = tensor.Mul(t, d, l1.W)
		}
		return tensor.Scale(t, tensor.SumAxis(t, tensor.Add(t, tensor.ReLU(t, d), tensor.ReLU(t, tensor.Scale(t, d, -1))), 4), -1)
	case f.Given != nil:
		return f.Given(t, q, k)
	case f.Additive != nil: // wᵀ·tanh(q + k)
		q, k := pairs()
		return tensor.SumAxis(t, tensor.Mul(t, tensor.Tanh(t, tensor.Add(t, q, k)), f.Additive), 4)
	case f.Gaussian != nil: // −½‖(q − k)∘w‖²
		q, k := pairs()
		return tensor.Scale(t, tensor.SumAxis(t, tensor.Square(t, tensor.Mul(t, tensor.Sub(t, q, k), f.Gaussian)), 4), -0.5)
	}
	scale := float64(f.Scale)
	if f.PerRoot {
		scale /= math.Sqrt(float64(q.Dim(3)))
	}
	return tensor.Scale(t, tensor.MatMulT(t, q, k), float32(scale))
}

// perHead repeats the heads of keys or values [B G Lk E] for h query heads.
func perHead(t *tensor.Tape, x *tensor.Tensor, h int) *tensor.Tensor {
	b, g, l, e := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	return tensor.Reshape(t, tensor.BroadcastTo(t, tensor.Reshape(t, x, b, g, 1, l, e), b, g, h/g, l, e), b, h, l, e)
}

// hidden returns scores with −∞ where a query does not attend to a key.
func hidden(t *tensor.Tape, s *tensor.Tensor, attended []bool) *tensor.Tensor {
	y := t.Make(s.Shape()...)
	for i, x := range s.Data() {
		if y.Data()[i] = x; !attended[i] {
			y.Data()[i] = float32(math.Inf(-1))
		}
	}
	if t.Needs(s) {
		t.Record(y, func(dy []float32) {
			ds := t.GradOf(s)
			for i, d := range dy {
				if attended[i] {
					ds[i] += d
				}
			}
		})
	}
	return y
}

// sizesOfCall returns the sizes of a call of Attend.
func sizesOfCall(q, k *tensor.Tensor, o attn.Options) attn.Sizes {
	return attn.Sizes{
		B: q.Dim(0), H: q.Dim(1), G: k.Dim(1), Lq: q.Dim(2), Lk: k.Dim(2), QueryLens: o.QueryLens, KeyLens: o.KeyLens,
	}
}

// eachRow calls f for each row of scores, with its elements lo to hi.
func eachRow(s attn.Sizes, f func(at attn.Row, lo, hi int)) {
	for r := range s.B * s.H * s.Lq {
		at := attn.Row{Batch: r / s.Lq / s.H, Head: r / s.Lq % s.H, Query: r % s.Lq}
		at.Position = at.Query + s.Keys(at.Batch) - s.Queries(at.Batch)
		f(at, r*s.Lk, (r+1)*s.Lk)
	}
}

// changed returns the scores x changed by c, one row at a time.
func changed(t *tensor.Tape, c attn.ScoreChange, x, q, k *tensor.Tensor, o attn.Options) *tensor.Tensor {
	s := sizesOfCall(q, k, o)
	vectors := func(x *tensor.Tensor) func(*tensor.Tape) *tensor.Tensor {
		return func(*tensor.Tape) *tensor.Tensor { return x }
	}
	param := c.Param(t, attn.Inputs{Sizes: s, Queries: vectors(q), Keys: vectors(k)})
	part := func(at attn.Row, data []float32) []float32 { // of a sequence and a head, or shared by all
		if data == nil {
			return nil
		}
		n := param.Len() / param.Dim(0) / param.Dim(1)
		return data[(min(at.Batch, param.Dim(0)-1)*param.Dim(1)+min(at.Head, param.Dim(1)-1))*n:][:n]
	}
	var data []float32
	if param != nil {
		data = param.Data()
	}
	y := t.Make(x.Shape()...)
	copy(y.Data(), x.Data())
	eachRow(s, func(at attn.Row, lo, hi int) { c.Apply(at, part(at, data), y.Data()[lo:hi]) })
	if t.Needs(x, param) {
		t.Record(y, func(dy []float32) {
			dx, dparam := t.GradOf(x), t.GradOf(param)
			eachRow(s, func(at attn.Row, lo, hi int) {
				d := append([]float32(nil), dy[lo:hi]...)
				if !c.Adds() || dparam != nil {
					c.Back(at, part(at, data), part(at, dparam), x.Data()[lo:hi], y.Data()[lo:hi], d)
				}
				for j, v := range d {
					if dx != nil && dy[lo+j] != 0 { // otherwise the score is hidden, and v may be NaN
						dx[lo+j] += v
					}
				}
			})
		})
	}
	return y
}

// Attend equals its formula, for every mask and every score.
func TestFormula(t *testing.T) {
	eachHiding(t, func(t *testing.T, mask attn.Mask, c scoreCase) {
		x := newCall(c, usual).bias(usual.b, 1, usual.lq, usual.lk).mask(mask)
		x.o.SoftCap = 4
		near(t, c.name, x.runBy(attn.Attend), x.runBy(formula))
	})
}
