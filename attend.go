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
	// SoftCap bounds the scores smoothly: cap·tanh(score/cap). 0 means none; else
	// it is positive and finite.
	SoftCap float32
	// Bias is added to the scores. It broadcasts to [B H Lq Lk], or to
	// [B Lq Lk] where q has three axes, and may need a gradient. Nil means
	// none.
	Bias *tensor.Tensor
	// Changes change the scores after the soft-cap and before the bias, one after the other:
	// ALiBi, T5Bias, ShawBias and others.
	Changes []ScoreChange
	// Sinks are scores [H] of a key without a value, one for each head, to which every
	// query attends: weights then sum to less than 1. They may need a gradient. Nil
	// means none; in a MultiHead it means the layer's own.
	Sinks *tensor.Tensor
	// Mask says which keys a query may attend to. The zero value hides nothing.
	Mask Mask
	// Dropout is the probability with which each weight is dropped on a
	// training tape, less than 1. 0 means none; in a MultiHead it means the
	// layer's own.
	Dropout float32
	// Gates multiply what each head puts out, in a MultiHead before its last
	// map: [H], or [B H] for gates of each sequence. They may need a gradient.
	// A gate of 0 removes the head exactly. Nil means 1 for all.
	Gates *tensor.Tensor
	// Weights asks for Output.Weights.
	Weights bool
	// LogSumExp asks for Output.LogSumExp.
	LogSumExp bool
	// Observers are called with the weights of each query while they are computed, so that
	// statistics of them need no memory for all weights.
	Observers []Observer
	// QueryLens and KeyLens are how many queries and keys each sequence has, where they
	// differ: what follows is padding, to which nothing attends and which gets zeros. The
	// last query of a sequence stands at its last key, unlike under mask.Lengths, which hides
	// keys and moves no query. Nil means that all are there.
	QueryLens, KeyLens []int
	// QueryPositions and KeyPositions are where queries and keys stand for the Position
	// of a MultiHead. The zero values put keys at 0, 1, 2, … and the last query at the
	// last key.
	QueryPositions, KeyPositions Positions
	// Observe, if not nil, is called with the weights, before dropout and without
	// gradient. The tensor lives as long as the tape's memory.
	Observe WeightsFunc
	// Inspect, if not nil, is called with queries, keys and norms of values.
	Inspect Inspector
	// Layer is the name that Observe and Inspect receive; in a MultiHead, empty
	// means the layer's own.
	Layer string
}

// WeightsFunc is called with a layer's weights [B H Lq Lk] each time it attends.
type WeightsFunc func(layer string, weights *tensor.Tensor)

// Output is what attention returns.
type Output struct {
	Out     *tensor.Tensor
	Weights *tensor.Tensor // nil unless Options.Weights asked for them
	// LogSumExp is ln Σ_j exp(score[i,j]) over the keys that query i attends to, and the
	// sink: −Inf if there are none. Nil unless Options.LogSumExp asked for it.
	LogSumExp *tensor.Tensor
}

// Attend returns for each query the mean of the values, weighted by the softmax
// of the scores of query and keys.
//
//	scores[i,j]  = changes(softcap(Score(q_i, k_j))) + Bias[i,j]   unit: nats
//	weights[i,:] = softmax over the keys j that query i attends to
//	out[i]       = gate·Σ_j dropout(weights[i,j])·v_j
//
// Shapes:
//
//	q        [B H Lq E]   or [B Lq E], which is one head
//	k        [B G Lk E]   or [B Lk E];  H is a multiple of G
//	v        [B G Lk V]   or [B Lk V]
//	out      [B H Lq V]   or [B Lq V]
//	weights  [B H Lq Lk]  or [B Lq Lk]
//	log-sum-exp  [B H Lq] or [B Lq]
//
// Some scores compare q and k of different sizes E.
//
// Gradients flow to q, k, v, Bias, Sinks, Gates and the parameters of Score and Changes,
// and through the returned weights and log-sum-exp.
//
// Attend panics with a *tensor.ShapeError if shapes or the mask's lengths do not
// fit, and with a *tensor.ValueError if a tensor is nil or an option out of range,
// whatever the score and whether or not the tape trains. It does not modify its
// arguments.
//
// Source: Bahdanau et al., 2015, https://arxiv.org/abs/1409.0473, section 3.1;
// Vaswani et al., "Attention Is All You Need", 2017, eq. 1,
// https://arxiv.org/abs/1706.03762.
func Attend(t *tensor.Tape, q, k, v *tensor.Tensor, o Options) Output {
	const op = "attn: Attend"
	q, k, v, flat := wantHeads(t, op, q, k, v, &o)
	c := newCall(op, headFirst(q), KV{keys: headFirst(k), values: headFirst(v)}, &o)
	c.ThreeAxes = flat
	out, y := c.attend(t, nil)
	if y.Out = out.x; flat {
		y.Out = tensor.Reshape(t, y.Out, c.B, c.Lq, c.EV)
		if y.Weights != nil {
			y.Weights = tensor.Reshape(t, y.Weights, c.B, c.Lq, c.Lk)
		}
		if y.LogSumExp != nil {
			y.LogSumExp = tensor.Reshape(t, y.LogSumExp, c.B, c.Lq)
		}
	}
	return y
}

// wantHeads returns q, k and v with an axis of heads, and whether they had none. It panics
// unless they agree on their sizes.
func wantHeads(t *tensor.Tape, op string, q, k, v *tensor.Tensor, o *Options) (_, _, _ *tensor.Tensor, flat bool) {
	tensor.Want(op, "query", q)
	tensor.Want(op, "key", k)
	tensor.Want(op, "value", v)
	if flat = q.Rank() == 3; flat {
		q, k, v = withHeadAxis(t, op, "query", q), withHeadAxis(t, op, "key", k), withHeadAxis(t, op, "value", v)
	}
	checkHeads(op, q, k, v)
	if o.QueryPositions.given() || o.KeyPositions.given() {
		refusePositions(op)
	}
	return q, k, v, flat
}

// refusePositions panics: positions were given that nothing would use.
func refusePositions(op string) {
	badValue(op, "positions", "given", "none: ApplyPosition moves queries and keys before Attend")
}

// score returns the score, ScaledDot if none is given.
func (o *Options) score() Score {
	if o.Score == nil {
		return formScore{Scale: 1, PerRoot: true}
	}
	return o.Score
}

// check panics unless the options fit the sizes: the one check of all callers, in training and in
// inference.
func (c *call) check() {
	op, o := c.op, c.o
	wantNumber(op, "dropout", o.Dropout, validDropout(o.Dropout), "a probability in [0, 1)")
	wantNumber(op, "soft-cap", o.SoftCap, o.SoftCap == 0 || validCap(o.SoftCap), "a positive finite number, or 0 for none")
	for _, change := range o.changes(c.Sizes) {
		if change == nil {
			badValue(op, "score change", "nil", "a ScoreChange")
		}
		panicAs(op, "score change", change.Check(c.Sizes))
	}
	if o.Sinks != nil {
		panicAs(op, "sinks", tensor.CheckShape("sinks", o.Sinks, fmt.Sprintf("[H=%d]", c.H), c.H))
	}
	if slices.Contains(o.Observers, nil) {
		badValue(op, "observer", "nil", "an Observer")
	}
	panicAs(op, "query lengths", checkCounts("number of queries", c.QueryLens, "Lq", c.B, c.Lq))
	panicAs(op, "key lengths", checkCounts("number of keys", c.KeyLens, "Lk", c.B, c.Lk))
	checkGates(op, o.Gates, c.Sizes)
	o.Mask.check(op, c.Sizes)
}

// panicAs panics with an error that a value of the caller's has returned, under the name of
// the operation.
func panicAs(op, arg string, err error) {
	switch e := err.(type) {
	case nil:
		return
	case *tensor.ShapeError:
		named := *e
		named.Op = op
		panic(&named)
	case *tensor.ValueError:
		named := *e
		named.Op = op
		panic(&named)
	}
	panic(&tensor.ValueError{Op: op, Arg: arg, Got: "refused: " + err.Error(), Want: "one that fits the call"})
}

// badShape panics with a *tensor.ShapeError about a property of an argument, its shape if that is
// empty.
func badShape(op, arg, property string, got []int, want string, args ...any) {
	panic(&tensor.ShapeError{Op: op, Arg: arg, What: property, Got: got, Want: fmt.Sprintf(want, args...)})
}

// badValue panics with a *tensor.ValueError.
func badValue(op, arg, got, want string) {
	panic(&tensor.ValueError{Op: op, Arg: arg, Got: got, Want: want})
}

func validDropout(p float32) bool { return p >= 0 && p < 1 }

// wantNumber panics with a *tensor.ValueError unless x is in range.
func wantNumber(op, arg string, x float32, ok bool, want string) {
	if !ok {
		badValue(op, arg, fmt.Sprint(x), want)
	}
}

// withHeadAxis gives a tensor [B L E] a head axis of size 1.
func withHeadAxis(t *tensor.Tape, op, arg string, x *tensor.Tensor) *tensor.Tensor {
	if x.Rank() != 3 {
		badShape(op, arg, "", x.Shape(), "[B L E], as the query has")
	}
	return tensor.Reshape(t, x, x.Dim(0), 1, x.Dim(1), x.Dim(2))
}

// checkHeads panics unless q, k and v are [B H L E] and agree on their sizes. Whether the sizes
// of a query and a key fit is the score's business.
func checkHeads(op string, q, k, v *tensor.Tensor) {
	if q.Rank() != 4 {
		badShape(op, "query", "", q.Shape(), "[B H Lq E] or [B Lq E]")
	}
	b, h := q.Dim(0), q.Dim(1)
	if k.Rank() != 4 || k.Dim(0) != b {
		badShape(op, "key", "", k.Shape(), "[B=%d G Lk E]", b)
	}
	g, lk := k.Dim(1), k.Dim(2)
	if g == 0 || h%g != 0 {
		badShape(op, "key", "", k.Shape(), "[B=%d G Lk E] with G a divisor of H=%d", b, h)
	}
	if v.Rank() != 4 || v.Dim(0) != b || v.Dim(1) != g || v.Dim(2) != lk {
		badShape(op, "value", "", v.Shape(), "[B=%d G=%d Lk=%d V]", b, g, lk)
	}
}
