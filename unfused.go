package attn

import (
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn/internal/flash"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
)

// unfused computes attention by its definition, step by step: the formula in the form
// in which one reads it, and the only way for a score that is a function of the user's.
// q, k and v are [B H L E].
func unfused(t *tensor.Tape, score Score, q, k, v *tensor.Tensor, changes []*step, d dims, o *Options) pooled {
	s := headScores(t, score, q, k, d)
	for _, c := range changes {
		s = c.applied(t, s)
	}
	rows := o.Mask.visible(d.Sizes, d.extra)
	if o.Sinks != nil {
		s, rows = withSinks(t, s, o.Sinks, rows)
	}
	weights := tensor.MaskedSoftmax(t, s, visible{rows})
	if o.Sinks != nil {
		weights = tensor.Slice(t, weights, 3, 1, d.allKeys()+1)
	}
	y := pooled{weights: weights}
	if o.LogSumExp {
		y.logSumExp = logSumExp(t, s, rows)
	}
	if f := o.row(d); f != nil {
		for r := range d.B * d.H * d.Lq {
			f(flash.Place{Batch: r / d.Lq / d.H, Head: r / d.Lq % d.H, Query: r % d.Lq}, weights.Data()[r*d.allKeys():][:d.allKeys()])
		}
	}

	// Heads that share keys and values are one tall product.
	kept := tensor.Dropout(t, weights, o.Dropout)
	kept = tensor.Reshape(t, kept, d.B, d.G, d.H/d.G*d.Lq, d.allKeys())
	y.out = headFirst(tensor.Reshape(t, tensor.Mix(t, kept, v), d.B, d.H, d.Lq, d.V))
	return y
}

// headScores returns the scores [B H Lq Lk].
func headScores(t *tensor.Tape, score Score, q, k *tensor.Tensor, d dims) *tensor.Tensor {
	k = perQuery(t, k, d.H)
	s := score.Scores(t, q, k)
	wantTensor("attn: Attend", "score's result", s)
	if want := []int{d.B, d.H, d.Lq, d.allKeys()}; !slices.Equal(s.Shape(), want) {
		panic(&tensor.ShapeError{Op: "attn: Attend", Arg: "score's result", Got: s.Shape(), Want: fmt.Sprint(want)})
	}
	return s
}

// perQuery returns keys [B G Lk E] with one head for each of h query heads. Keys of
// another shape are returned as they are.
func perQuery(t *tensor.Tape, k *tensor.Tensor, h int) *tensor.Tensor {
	if k.Rank() != 4 || k.Dim(1) == 0 || k.Dim(1) == h || h%k.Dim(1) != 0 {
		return k
	}
	b, g, lk, e := k.Dim(0), k.Dim(1), k.Dim(2), k.Dim(3)
	k = tensor.BroadcastTo(t, tensor.Reshape(t, k, b, g, 1, lk, e), b, g, h/g, lk, e)
	return tensor.Reshape(t, k, b, h, lk, e)
}

// applied returns the scores x [B H Lq Lk] changed by the step.
func (s *step) applied(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	y := t.Make(x.Shape()...)
	copy(y.Data(), x.Data())
	eachRow := func(f func(p flash.Place, lo, hi int)) {
		for r := range s.B * s.H * s.Lq {
			f(flash.Place{Batch: r / s.Lq / s.H, Head: r / s.Lq % s.H, Query: r % s.Lq}, r*s.allKeys(), (r+1)*s.allKeys())
		}
	}
	eachRow(func(p flash.Place, lo, hi int) { s.Apply(p, y.Data()[lo:hi]) })
	if t.Needs(x, s.param) {
		t.Record(y, func(dy []float32) {
			d := t.Floats(len(dy))
			copy(d, dy)
			if g := s.grad(t); g.Back != nil {
				eachRow(func(p flash.Place, lo, hi int) {
					g.Back(p, x.Data()[lo:hi], y.Data()[lo:hi], d[lo:hi])
				})
			}
			if dx := t.GradOf(x); dx != nil {
				for i, v := range d {
					if dy[i] != 0 { // else the score is hidden, and v may be NaN
						dx[i] += v
					}
				}
			}
		})
	}
	return y
}

// withSinks returns the scores with one more key, the first, to which every query attends
// with the score of its head's sink. At the end its place in the sum of a row would
// depend on the number of keys, padding included.
func withSinks(t *tensor.Tape, s, sinks *tensor.Tensor, visible tensor.Visible) (*tensor.Tensor, tensor.Visible) {
	b, h, lq := s.Dim(0), s.Dim(1), s.Dim(2)
	column := tensor.BroadcastTo(t, tensor.Reshape(t, sinks, 1, h, 1, 1), b, h, lq, 1)
	s = tensor.Concat(t, 3, column, s)
	if visible == nil {
		return s, nil
	}
	return s, sinkVisible{visible}
}

// sinkVisible is what is visible behind a first key that always is.
type sinkVisible struct{ tensor.Visible }

func (v sinkVisible) Row(r int, seen []bool) (lo, hi int, holes bool) {
	keys := seen[1:]
	lo, hi, holes = v.Visible.Row(r, keys)
	seen[0] = true
	for j := range keys[:hi] {
		keys[j] = j >= lo && (!holes || keys[j])
	}
	return 0, hi + 1, true
}

// logSumExp returns ln Σ_j exp(s_ij) over the keys that query i attends to, −Inf for none.
//
// Shapes: s [B H Lq Lk], out [B H Lq].
func logSumExp(t *tensor.Tape, s *tensor.Tensor, visible tensor.Visible) *tensor.Tensor {
	lk := s.Dim(3)
	y := t.Make(s.Dim(0), s.Dim(1), s.Dim(2))
	each := func(r int, seen []bool, f func(j int)) {
		lo, hi, holes := 0, lk, false
		if visible != nil {
			lo, hi, holes = visible.Row(r, seen)
		}
		for j := lo; j < hi; j++ {
			if !holes || seen[j] {
				f(j)
			}
		}
	}
	par.For(y.Len(), 1, func(from, to int) {
		seen := make([]bool, lk)
		for r := from; r < to; r++ {
			row := s.Data()[r*lk:][:lk]
			top, sum := math.Inf(-1), 0.0
			each(r, seen, func(j int) { top = max(top, float64(row[j])) })
			if !math.IsInf(top, -1) {
				each(r, seen, func(j int) { sum += math.Exp(float64(row[j]) - top) })
			}
			y.Data()[r] = float32(top + math.Log(sum))
			if math.IsInf(top, -1) {
				y.Data()[r] = float32(top)
			}
		}
	})
	if t.Needs(s) {
		t.Record(y, func(dy []float32) {
			ds := t.GradOf(s)
			seen := make([]bool, lk)
			for r, d := range dy {
				if total := float64(y.Data()[r]); d != 0 && !math.IsInf(total, -1) {
					each(r, seen, func(j int) {
						if w := math.Exp(float64(s.Data()[r*lk+j]) - total); w != 0 {
							ds[r*lk+j] += float32(float64(d) * w)
						}
					})
				}
			}
		})
	}
	return y
}
