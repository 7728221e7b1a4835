package attn

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/tensor"
)

// Options says how to attend. The zero value is scaled dot-product attention
// without a mask.
type Options struct {
	// Score compares queries with keys. Nil means ScaledDot; in a MultiHead it
	// means the layer's own.
	Score Score
	// SoftCap bounds the scores smoothly: cap·tanh(score/cap). 0 means none.
	SoftCap float32
	// Bias is added to the scores. It broadcasts to [B H Lq Lk], or to
	// [B Lq Lk] where q has three axes, and may need a gradient. Nil means
	// none.
	Bias *tensor.Tensor
	// Mask says which keys a query may see. The zero value hides nothing.
	Mask Mask
	// Dropout is the probability with which each weight is dropped on a
	// training tape. 0 means none; in a MultiHead it means the layer's own.
	Dropout float32
	// Gates multiply what each head puts out, in a MultiHead before its last
	// map: [H], or [B H] for gates of each sequence. They may need a gradient.
	// A gate of 0 removes the head exactly. Nil means 1 for all.
	Gates *tensor.Tensor
	// Weights asks for Output.Weights.
	Weights bool
	// Observe, if not nil, is told of the weights, before dropout and without
	// gradient. The tensor lives as long as the tape's memory.
	Observe Observer
	// Layer is the name under which Observe is told; in a MultiHead, empty
	// means the layer's own.
	Layer string
}

// Observer is told of a layer's weights [B H Lq Lk] each time it attends.
type Observer func(layer string, weights *tensor.Tensor)

// Output is what attention returns.
type Output struct {
	Out     *tensor.Tensor
	Weights *tensor.Tensor // nil unless Options.Weights asked for them
}

// Attend returns for each query the mean of the values, weighted by the softmax
// of the scores of query and keys.
//
//	scores[i,j]  = softcap(Score(q_i, k_j)) + Bias[i,j]   unit: nats
//	weights[i,:] = softmax over the keys j that query i sees
//	out[i]       = gate·Σ_j dropout(weights[i,j])·v_j
//
// Shapes:
//
//	q        [B H Lq E]   or [B Lq E], which is one head
//	k        [B G Lk E]   or [B Lk E];  H is a multiple of G
//	v        [B G Lk V]   or [B Lk V]
//	out      [B H Lq V]   or [B Lq V]
//	weights  [B H Lq Lk]  or [B Lq Lk]
//
// Some scores compare q and k of different sizes E.
//
// Gradients flow to q, k, v, Bias, Gates and the parameters of Score, and through
// the returned weights.
//
// Attend panics with a *tensor.ShapeError if shapes or the mask's lengths do not
// fit. It does not modify its arguments.
//
// Source: Bahdanau et al., 2015, https://arxiv.org/abs/1409.0473, section 3.1;
// Vaswani et al., "Attention Is All You Need", 2017, eq. 1,
// https://arxiv.org/abs/1706.03762.
func Attend(t *tensor.Tape, q, k, v *tensor.Tensor, o Options) Output {
	const op = "attn: Attend"
	flat := q.Rank() == 3
	if flat {
		q, k, v = oneHead(t, op, "query", q), oneHead(t, op, "key", k), oneHead(t, op, "value", v)
	}
	d := checkHeads(op, q, k, v)
	d.flat = flat
	d.checkBias(op, o.Bias)
	d.checkGates(op, o.Gates)
	o.Mask.check(op, d)

	score := o.Score
	if score == nil {
		score = ScaledDot()
	}
	var out, weights *tensor.Tensor
	if s, ok := score.(fusable); ok {
		q, k = s.queryMap().of(t, q), s.keyMap().of(t, k)
		d.checkMapped(op, q, k)
		out = t.Make(d.B, d.H, d.Lq, d.V)
		weights = fused(t, s.form(q.Dim(-1)), headFirst(q), headFirst(k), headFirst(v), headFirst(out), d, &o)
	} else {
		out, weights = unfused(t, score, q, k, v, d, &o)
	}
	if o.Observe != nil {
		o.Observe(o.Layer, weights.Detach())
	}
	if !o.Weights {
		weights = nil
	}
	out = gated(t, headFirst(out), o.Gates).x
	if flat {
		out = tensor.Reshape(t, out, d.B, d.Lq, d.V)
		if weights != nil {
			weights = tensor.Reshape(t, weights, d.B, d.Lq, d.Lk)
		}
	}
	return Output{Out: out, Weights: weights}
}

// unfused computes attention by its definition, step by step, and returns out
// [B H Lq V] and the weights [B H Lq Lk].
func unfused(t *tensor.Tape, score Score, q, k, v *tensor.Tensor, d dims, o *Options) (out, weights *tensor.Tensor) {
	s := headScores(t, score, q, k, d)
	if o.SoftCap != 0 {
		s = tensor.Scale(t, tensor.Tanh(t, tensor.Scale(t, s, 1/o.SoftCap)), o.SoftCap)
	}
	if o.Bias != nil {
		bias := o.Bias
		if d.flat && bias.Rank() == 3 { // [B Lq Lk] beside scores with a head axis
			bias = tensor.Reshape(t, bias, bias.Dim(0), 1, bias.Dim(1), bias.Dim(2))
		}
		s = tensor.Add(t, s, bias)
	}
	weights = tensor.MaskedSoftmax(t, s, o.Mask.rows(d))

	// Heads that share keys and values are one tall product.
	kept := tensor.Dropout(t, weights, o.Dropout)
	kept = tensor.Reshape(t, kept, d.B, d.G, d.H/d.G*d.Lq, d.Lk)
	return tensor.Reshape(t, tensor.Mix(t, kept, v), d.B, d.H, d.Lq, d.V), weights
}

// headScores returns the scores [B H Lq Lk].
func headScores(t *tensor.Tape, score Score, q, k *tensor.Tensor, d dims) *tensor.Tensor {
	if group := d.H / d.G; group > 1 {
		if _, ok := score.(rowwise); ok {
			// The queries of all heads that share a key head are just more
			// queries.
			q = tensor.Reshape(t, q, d.B, d.G, group*d.Lq, q.Dim(-1))
		} else {
			k = tensor.Reshape(t, k, d.B, d.G, 1, d.Lk, k.Dim(-1))
			k = tensor.BroadcastTo(t, k, d.B, d.G, group, d.Lk, k.Dim(-1))
			k = tensor.Reshape(t, k, d.B, d.H, d.Lk, k.Dim(-1))
		}
	}
	s := score.Scores(t, q, k)
	if want := []int{d.B, q.Dim(1), q.Dim(2), d.Lk}; !slices.Equal(s.Shape(), want) {
		panic(&tensor.ShapeError{Op: "attn: Attend", Arg: "score's result", Got: s.Shape(), Want: fmt.Sprint(want)})
	}
	return tensor.Reshape(t, s, d.B, d.H, d.Lq, d.Lk)
}

// dims are the sizes that a call of Attend has settled.
type dims struct {
	B, H, G, Lq, Lk, V int
	flat               bool // the caller's tensors have no head axis
}

// oneHead gives a tensor [B L E] a head axis of size 1.
func oneHead(t *tensor.Tape, op, arg string, x *tensor.Tensor) *tensor.Tensor {
	if x.Rank() != 3 {
		panic(&tensor.ShapeError{Op: op, Arg: arg, Got: x.Shape(), Want: "[B L E], as the query has"})
	}
	return tensor.Reshape(t, x, x.Dim(0), 1, x.Dim(1), x.Dim(2))
}

// checkHeads returns the sizes that q, k and v [B H L E] agree on, or panics.
// Whether the sizes of a query and a key fit is the score's business.
func checkHeads(op string, q, k, v *tensor.Tensor) dims {
	bad := func(arg string, x *tensor.Tensor, want string, args ...any) {
		panic(&tensor.ShapeError{Op: op, Arg: arg, Got: x.Shape(), Want: fmt.Sprintf(want, args...)})
	}
	if q.Rank() != 4 {
		bad("query", q, "[B H Lq E] or [B Lq E]")
	}
	d := dims{B: q.Dim(0), H: q.Dim(1), Lq: q.Dim(2)}
	if k.Rank() != 4 || k.Dim(0) != d.B {
		bad("key", k, "[B=%d G Lk E]", d.B)
	}
	d.G, d.Lk = k.Dim(1), k.Dim(2)
	if d.G == 0 || d.H%d.G != 0 {
		bad("key", k, "[B=%d G Lk E] with G a divisor of H=%d", d.B, d.H)
	}
	if v.Rank() != 4 || v.Dim(0) != d.B || v.Dim(1) != d.G || v.Dim(2) != d.Lk {
		bad("value", v, "[B=%d G=%d Lk=%d V]", d.B, d.G, d.Lk)
	}
	d.V = v.Dim(3)
	return d
}

// checkMapped panics unless what a score makes of queries and keys goes together:
// a score with keys of its own may have been given others than k.
func (d dims) checkMapped(op string, q, k *tensor.Tensor) {
	wantSize("key", k, q.Dim(-1))
	if k.Dim(0) != d.B || k.Dim(1) != d.G || k.Dim(2) != d.Lk {
		panic(&tensor.ShapeError{
			Op: op, Arg: "key of the score", Got: k.Shape(),
			Want: fmt.Sprintf("[B=%d G=%d Lk=%d %d]", d.B, d.G, d.Lk, k.Dim(3)),
		})
	}
}

// shape returns the shape of the scores as the caller sees it, and in letters.
func (d dims) shape() ([]int, string) {
	if d.flat {
		return []int{d.B, d.Lq, d.Lk}, fmt.Sprintf("[B=%d Lq=%d Lk=%d]", d.B, d.Lq, d.Lk)
	}
	return []int{d.B, d.H, d.Lq, d.Lk}, fmt.Sprintf("[B=%d H=%d Lq=%d Lk=%d]", d.B, d.H, d.Lq, d.Lk)
}

// broadcasts reports whether a shape broadcasts to that of the scores.
func (d dims) broadcasts(shape []int) bool {
	full, _ := d.shape()
	if len(shape) > len(full) {
		return false
	}
	for i, n := range shape {
		if n != 1 && n != full[len(full)-len(shape)+i] {
			return false
		}
	}
	return true
}

// checkBias panics unless the bias broadcasts to the scores.
func (d dims) checkBias(op string, bias *tensor.Tensor) {
	if bias != nil && !d.broadcasts(bias.Shape()) {
		_, letters := d.shape()
		panic(&tensor.ShapeError{Op: op, Arg: "bias", Got: bias.Shape(), Want: "a shape that broadcasts to " + letters})
	}
}
