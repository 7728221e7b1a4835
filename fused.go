package attn

import (
	"github.com/attn-go/attn/internal/flash"
	"github.com/attn-go/attn/tensor"
)

// fusable is a score that compares vectors which it makes of queries and keys
// one by one. Attention with it never holds the scores of all pairs. The others
// do; their formula, and that of the fusable ones, stands in Scores.
type fusable interface {
	// queryMap and keyMap are what the score makes of queries [… Eq] and of
	// keys [… Ek].
	queryMap() vectorMap
	keyMap() vectorMap
	// form says how vectors of e elements made so are compared.
	form(e int) form
}

// vectorMap turns vectors [… E] into others one by one. Nil leaves them as they
// are.
type vectorMap func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor

func (f vectorMap) of(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	if f == nil {
		return x
	}
	return f(t, x)
}

// form is scale·qᵀk, or wᵀ·tanh(q+k) if there is a w.
type form struct {
	scale float32
	w     *tensor.Tensor
}

// scoresOf returns the scores of all pairs of a fusable score.
//
// Shapes: q [B H Lq Eq], k [B H Lk Ek], out [B H Lq Lk].
func scoresOf(t *tensor.Tape, s fusable, q, k *tensor.Tensor) *tensor.Tensor {
	q, k = s.queryMap().of(t, q), s.keyMap().of(t, k)
	f := s.form(q.Dim(-1))
	wantSize("key", k, q.Dim(-1))
	if f.w != nil {
		wantSameHeads(q, k)
		return additiveScores(t, q, k, f.w)
	}
	if f.scale != 1 { // scaling q costs less than scaling the scores
		q = tensor.Scale(t, q, f.scale)
	}
	return tensor.MatMulT(t, q, k)
}

// fused computes attention in the form f, without the scores of all pairs, to
// out. The weights are those of Output, nil if nobody asks.
func fused(t *tensor.Tape, f form, q, k, v, out heads, d dims, o *Options) (weights *tensor.Tensor) {
	if d.B == 0 || d.H == 0 || d.Lq == 0 || d.Lk == 0 {
		return noPairs(t, out, d, o, q.x, k.x, v.x, f.w, o.Bias)
	}
	a := &flash.Attention{
		B: d.B, H: d.H, G: d.G, Lq: d.Lq, Lk: d.Lk, E: q.size, EV: v.size,
		Q: q.in(q.x.Data()), K: k.in(k.x.Data()), V: v.in(v.x.Data()),
		Scale: f.scale,
	}
	if f.w != nil {
		a.Additive = f.w.Data()
	}
	if o.SoftCap != 0 {
		a.Mods = append(a.Mods, flash.SoftCap(o.SoftCap))
	}
	var bias *flash.Bias
	if o.Bias != nil {
		bias = d.bias(o.Bias)
		a.Mods = append(a.Mods, bias)
	}
	if len(o.Mask.rules) > 0 {
		a.Mask = maskRows{o.Mask, d}
	}
	if o.Dropout > 0 && t.Training() {
		a.Dropout, a.Key = o.Dropout, t.Stream()
	}
	rows := d.B * d.H * d.Lq
	st := flash.Stats{Shift: t.Floats(rows), Inverse: t.Floats(rows)}
	var asked []float32
	if o.Weights || o.Observe != nil {
		weights = t.Make(d.B, d.H, d.Lq, d.Lk)
		asked = weights.Data()
	}
	flash.Forward(a, flash.Results{Out: out.in(out.x.Data()), Weights: asked}, st)
	if !t.Needs(q.x, k.x, v.x, f.w, o.Bias) {
		return weights
	}
	// The gradients of both results go back in one pass. It runs when the
	// first of them is reached that has a gradient, and then both are complete.
	done := false
	back := func(dout []float32) {
		up := flash.Upstream{Out: out.in(out.x.Data()), DOut: out.in(dout)}
		if weights != nil {
			if g := weights.Grad(); g != nil {
				up.Weights, up.DWeights = weights.Data(), g.Data()
			}
		}
		var mods []flash.ModGrad
		if o.SoftCap != 0 {
			mods = append(mods, flash.SoftCap(o.SoftCap).Grad())
		}
		if bias != nil {
			var grad flash.ModGrad
			if dbias := t.GradOf(o.Bias); dbias != nil {
				grad = bias.Grad(dbias)
			}
			mods = append(mods, grad)
		}
		flash.Backward(a, st, up, flash.Grads{
			Q: q.in(t.GradOf(q.x)), K: k.in(t.GradOf(k.x)), V: v.in(t.GradOf(v.x)),
			Mods: mods, Additive: t.GradOf(f.w),
		})
	}
	if weights != nil {
		t.Record(weights, func([]float32) {
			if !done {
				zeros := t.Floats(out.x.Len())
				clear(zeros)
				back(zeros)
			}
			done = false // there may be another backward pass
		})
	}
	t.Record(out.x, func(dout []float32) {
		back(dout)
		done = weights != nil && weights.Grad() != nil
	})
	return weights
}

// noPairs is fused where there is no pair of a query and a key: zeros, and zero
// gradients of the operands.
func noPairs(t *tensor.Tape, out heads, d dims, o *Options, operands ...*tensor.Tensor) (weights *tensor.Tensor) {
	if o.Weights || o.Observe != nil {
		weights = t.Make(d.B, d.H, d.Lq, d.Lk)
	}
	clear(out.x.Data())
	if t.Needs(operands...) {
		t.Record(out.x, func([]float32) {
			for _, x := range operands {
				t.GradOf(x)
			}
		})
	}
	return weights
}

// bias returns how a bias that broadcasts to the scores lies in memory.
func (d dims) bias(x *tensor.Tensor) *flash.Bias {
	shape := x.Shape()
	full := []int{d.B, d.H, d.Lq, d.Lk}
	if d.flat && len(shape) == 3 { // [B Lq Lk] has no axis of heads
		shape = []int{shape[0], 1, shape[1], shape[2]}
	}
	var strides [4]int
	stride := 1
	for i := range shape {
		axis, n := len(full)-1-i, shape[len(shape)-1-i]
		if n > 1 {
			strides[axis] = stride
		}
		stride *= n
	}
	return &flash.Bias{Data: x.Data(), Batch: strides[0], Head: strides[1], Row: strides[2], Col: strides[3]}
}
