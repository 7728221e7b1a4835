package attn

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/tensor"
)

// Options are the options of attention. The zero value is scaled dot-product attention without a
// mask.
type Options struct {
	// Score compares queries with keys. Nil means ScaledDot; in a MultiHead, nil means the
	// layer's score.
	Score Score
	// SoftCap bounds the scores smoothly: cap·tanh(score/cap). It must be positive and finite; 0
	// means no bound.
	SoftCap float32
	// Bias is added to the scores. Its shape broadcasts to [B H Lq Lk], or to [B Lq Lk] if q has
	// three axes. It may require a gradient. Nil means no bias.
	Bias *tensor.Tensor
	// Changes modify the scores after the soft-cap and before the bias, in slice order. Examples are
	// ALiBi, T5Bias and ShawBias.
	Changes []ScoreChange
	// Sinks [H] has for each head the score of a virtual key without a value. Every query attends
	// to that key, so its weights for the real keys sum to less than 1. Sinks may require a
	// gradient. Nil means no sinks; in a MultiHead, nil means the layer's sinks.
	Sinks *tensor.Tensor
	// Mask selects the keys that each query attends to. The zero value hides no key.
	Mask Mask
	// Dropout is the probability of dropping a weight on a training tape; it is less than 1. 0
	// means no dropout; in a MultiHead, 0 means the layer's dropout.
	Dropout float32
	// Format is the format of the products of queries with keys, and of weights with values. With tensor.BFloat16,
	// their factors are rounded to bfloat16, in the backward pass too. All else is computed in float32: sums, the
	// softmax, and scores that are not dot products. On an AMD processor with AVX512-BF16 it is up to 1.6 times as fast;
	// elsewhere the factors are rounded and multiplied as floats, which takes longer than Float32: 1.2 to 1.4 times on an
	// Intel Xeon. 0 means the layer's format in a MultiHead that has one, and otherwise the tape's.
	Format tensor.Format
	// Gates multiply the output of each head of a MultiHead before the output projection. The
	// shape is [H], or [B H] for separate gates per sequence. Gates may require a gradient. A
	// gate of 0 removes the head exactly. Nil means 1 for every head.
	Gates *tensor.Tensor
	// Edits replace values inside the call. The zero value replaces none.
	Edits Edits
	// Weights requests Output.Weights.
	Weights bool
	// LogSumExp requests Output.LogSumExp.
	LogSumExp bool
	// Observers are called with the weights of each query while they are computed. Statistics of
	// the weights therefore need no memory for all weights.
	Observers []Observer
	// QueryLens and KeyLens are the numbers of queries and keys of each sequence. The positions
	// after them are padding: no query attends to padded keys, and padded queries get zeros. The
	// last query of a sequence is aligned with its last key. mask.Lengths, in contrast, only
	// hides keys and moves no query. Nil means that there is no padding.
	QueryLens, KeyLens []int
	// QueryPositions and KeyPositions are the positions that the Position of a MultiHead uses. By
	// default, keys are at 0, 1, 2, … and the last query is at the position of the last key.
	QueryPositions, KeyPositions Positions
	// Inspect, if not nil, is called with the queries, the keys and the norms of the values.
	Inspect Inspector
	// Layer is the name that Observers and Inspect receive. In a MultiHead, the empty string means
	// the layer's name.
	Layer string
}

// Output is the result of attention.
type Output struct {
	Out     *tensor.Tensor // [B H Lq V] from Attend, in the layer's layout from MultiHead
	Weights *tensor.Tensor // [B H Lq Lk]; nil unless Options.Weights is set
	// LogSumExp [B H Lq] is ln Σ_j exp(score[i,j]) over the keys that query i attends to, including the
	// sink, and −Inf if there are none. It is +Inf if a score is; the query's weights are then NaN. Nil unless
	// Options.LogSumExp is set.
	LogSumExp *tensor.Tensor
}

// Attend returns, for each query, the mean of the values weighted by the softmax of the scores
// between the query and the keys.
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
// Some scores accept a q and a k with different sizes E.
//
// Gradients flow to q, k, v, Bias, Sinks, Gates and the parameters of Score and Changes,
// and through the returned weights and log-sum-exp.
//
// Attend panics with a *tensor.ShapeError if shapes or lengths do not fit, and with a
// *tensor.ValueError if a tensor is nil or an option is out of range, for every score and in
// training and inference. It does not modify its arguments.
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

// wantHeads returns q, k and v with a head axis; flat reports that they came without one. It
// panics unless their sizes agree.
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

// refusePositions panics because positions were given to a function that does not use them.
func refusePositions(op string) {
	badValue(op, "positions", "given", "none: ApplyPosition moves queries and keys before Attend")
}

// score returns Options.Score, or ScaledDot if it is nil.
func (o *Options) score() Score {
	if o.Score == nil {
		return formScore{Scale: 1, PerRoot: true}
	}
	return o.Score
}

// check panics unless the options fit the sizes. Every call uses it, in training and in
// inference.
func (c *call) check() {
	op, o := c.op, &c.o
	wantNumber(op, "dropout", o.Dropout, validDropout(o.Dropout), "a probability in [0, 1)")
	if p := o.Format; p != 0 && !validFormat(p) {
		badValue(op, "format", p.String(), wantFormat)
	}
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

// panicAs panics with an error that the caller's code has returned, and names the operation.
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
	panic(&tensor.ValueError{Op: op, Arg: arg, Got: fmt.Sprintf("invalid for this call (%v)", err), Want: "one whose Check returns nil"})
}

// badShape panics with a *tensor.ShapeError about a property of an argument; an empty property
// means the shape.
func badShape(op, arg, property string, got []int, want string, args ...any) {
	panic(&tensor.ShapeError{Op: op, Arg: arg, What: property, Got: got, Want: fmt.Sprintf(want, args...)})
}

// badValue panics with a *tensor.ValueError.
func badValue(op, arg, got, want string) {
	panic(&tensor.ValueError{Op: op, Arg: arg, Got: got, Want: want})
}

func validDropout(p float32) bool { return p >= 0 && p < 1 }

// validFormat reports whether attention can be computed in the given format.
func validFormat(p tensor.Format) bool { return p == tensor.Float32 || p == tensor.BFloat16 }

const wantFormat = "float32 or bfloat16"

// wantNumber panics with a *tensor.ValueError unless x is in range.
func wantNumber(op, arg string, x float32, ok bool, want string) {
	if !ok {
		badValue(op, arg, fmt.Sprint(x), want)
	}
}

// withHeadAxis adds a head axis of size 1 to a tensor [B L E].
func withHeadAxis(t *tensor.Tape, op, arg string, x *tensor.Tensor) *tensor.Tensor {
	if x.Rank() != 3 {
		badShape(op, arg, "", x.Shape(), "[B L E], three axes as in the query")
	}
	return tensor.Reshape(t, x, x.Dim(0), 1, x.Dim(1), x.Dim(2))
}

// checkHeads panics unless q, k and v are [B H L E] and their sizes agree. The score checks the
// vector sizes of q and k.
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
