package attn

import (
	"github.com/attn-go/attn/internal/flash"
	"github.com/attn-go/attn/tensor"
)

// Scores returns the scores of all pairs of queries and keys, as the softmax of Attend
// takes them:
//
//	scores[i,j] = changes(softcap(Score(q_i, k_j))) + Bias[i,j]   unit: nats
//
// and −Inf where the Mask hides key j from query i. A stage before that is Scores with
// fewer options: the Score alone gives what it returns for each pair, and the Score with
// SoftCap what comes before the bias. Options that act after the softmax change nothing
// here, nor do Sinks, whose scores are themselves.
//
// Attend itself makes no such array. This function is for inspection and tests.
//
// Shapes: as for Attend; out [B H Lq Lk], or [B Lq Lk] where q has three axes.
//
// Gradients flow to q, k, Bias and the parameters of Score and Changes.
//
// Scores panics as Attend does.
func Scores(t *tensor.Tape, q, k *tensor.Tensor, o Options) *tensor.Tensor {
	const op = "attn: Scores"
	q, k, _, d := settle(t, op, q, k, k, &o)
	o.check(op, d)
	d.V, o.Sinks = 0, nil
	x, kv := headFirst(q), KV{keys: headFirst(k)}
	c := newCall(t, op, inputs(d, x, func(*tensor.Tape) *tensor.Tensor { return k }), d, &o)
	f := o.score().Form()
	x, kv = x.mapped(t, f.Queries), kv.mapped(t, f)
	d.checkMapped(op, f, x, kv)
	c.compare(t, f, x, kv, d)
	s := t.Make(d.B, d.H, d.Lq, d.Lk)
	flash.Scores(&c.Attention, s.Data())
	if t.Needs(c.operands()...) {
		t.Record(s, func(ds []float32) {
			flash.Backward(&c.Attention, flash.Stats{}, flash.Upstream{DScores: ds}, c.grads(t))
		})
	}
	if d.ThreeAxes {
		s = tensor.Reshape(t, s, d.B, d.Lq, d.Lk)
	}
	return s
}

// MaskedSoftmax returns the softmax of scores over the keys to which a query attends: the
// weights of Attend, for scores that have been computed already.
//
//	weights[i,j] = exp(scores[i,j]) / Σ exp(scores[i,j'])   over the keys j' that query i attends to
//
// The weights of other keys are 0, whatever the scores are there, and so are those of a query
// that attends to no key.
//
// Shapes: scores and the result [B H Lq Lk], or [B Lq Lk], which is one head.
//
// Gradients flow to the scores.
//
// It panics with a *tensor.ShapeError if the mask does not fit the scores.
func MaskedSoftmax(t *tensor.Tape, scores *tensor.Tensor, m Mask) *tensor.Tensor {
	const op = "attn: MaskedSoftmax"
	tensor.Want(op, "scores", scores)
	x := scores
	if x.Rank() == 3 {
		x = oneHead(t, op, "scores", x)
	}
	if x.Rank() != 4 {
		panic(&tensor.ShapeError{Op: op, Arg: "scores", Got: x.Shape(), Want: "[B H Lq Lk] or [B Lq Lk]"})
	}
	d := dims{Sizes: Sizes{B: x.Dim(0), H: x.Dim(1), G: x.Dim(1), Lq: x.Dim(2), Lk: x.Dim(3), ThreeAxes: scores.Rank() == 3}}
	o := Options{Mask: m, Weights: true}
	o.check(op, d)
	given := Form{Given: func(*tensor.Tape, *tensor.Tensor, *tensor.Tensor) *tensor.Tensor { return x }}
	q, k := tensor.Zeros(d.B, d.H, d.Lq, 0), tensor.Zeros(d.B, d.H, d.Lk, 0)
	c := newCall(t, op, Inputs{}, d, &o)
	c.compare(t, given, headFirst(q), KV{keys: headFirst(k)}, d)
	return tensor.Reshape(t, c.run(t, d, &o).weights, scores.Shape()...)
}
