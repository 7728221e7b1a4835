package attn

import (
	"fmt"
	"math/rand/v2"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Projections is a set of the affine maps of a MultiHead.
type Projections uint8

// The maps of a MultiHead.
const (
	Query Projections = 1 << iota
	Key
	Value
	Out

	NoProjection   Projections = 0
	AllProjections             = Query | Key | Value | Out
)

// Layout is the order of axes of a MultiHead's inputs and output.
type Layout uint8

const (
	// BatchFirst is [B L D].
	BatchFirst Layout = iota
	// SequenceFirst is [L B D].
	SequenceFirst
)

// Infer, as an input width, means the width of the first batch.
const Infer = -1

// MultiHeadConfig describes a MultiHead. Width and Heads are required; the zero
// value of all else is the layer of Vaswani et al.
type MultiHeadConfig struct {
	// Name is what an Observer is told.
	Name string
	// Width is D, the width of the model.
	Width int
	// Heads is H, the number of query heads. It divides Width unless HeadSize
	// is given.
	Heads int
	// KVHeads is G, the number of key and value heads, a divisor of Heads. 0
	// means Heads.
	KVHeads int
	// QueryWidth, KeyWidth and ValueWidth are the widths of the three inputs.
	// 0 means Width; Infer means the width of the first batch.
	QueryWidth, KeyWidth, ValueWidth int
	// HeadSize is E, the size of a head of q and k. 0 means Width/Heads.
	HeadSize int
	// ValueSize is V, the size of a head of v. 0 means HeadSize.
	ValueSize int
	// OutWidth is the width of the output. 0 means Width.
	OutWidth int
	// Bias says which maps are affine and not just linear.
	Bias Projections
	// Score compares queries and keys inside a head, [B H L E] each; its
	// parameters are shared by the heads and become the layer's. Nil means
	// ScaledDot.
	Score Score
	// Dropout is the probability with which a weight is dropped in training.
	Dropout float32
	// Layout is the order of axes of inputs and output.
	Layout Layout
	// Init draws the four matrices. Nil means nn.Xavier. Biases start at 0.
	Init nn.Init
}

// validate fills in what zero means and checks the rest.
func (c *MultiHeadConfig) validate() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("attn: NewMultiHead: "+format, args...)
	}
	if c.Width <= 0 || c.Heads <= 0 {
		return fail("width %d and heads %d must be positive", c.Width, c.Heads)
	}
	if c.HeadSize == 0 {
		if c.Width%c.Heads != 0 {
			return fail("width %d is not divisible by %d heads", c.Width, c.Heads)
		}
		c.HeadSize = c.Width / c.Heads
	}
	for _, f := range []struct {
		name string
		to   *int
		zero int
	}{
		{"key/value heads", &c.KVHeads, c.Heads},
		{"head size", &c.HeadSize, c.HeadSize},
		{"value size", &c.ValueSize, c.HeadSize},
		{"output width", &c.OutWidth, c.Width},
		{"query width", &c.QueryWidth, c.Width},
		{"key width", &c.KeyWidth, c.Width},
		{"value width", &c.ValueWidth, c.Width},
	} {
		if *f.to == 0 {
			*f.to = f.zero
		}
		infer := f.to == &c.QueryWidth || f.to == &c.KeyWidth || f.to == &c.ValueWidth
		if *f.to < 0 && (!infer || *f.to != Infer) {
			return fail("%s %d is negative", f.name, *f.to)
		}
	}
	if c.Heads%c.KVHeads != 0 {
		return fail("%d heads are not divisible by %d key/value heads", c.Heads, c.KVHeads)
	}
	if !(c.Dropout >= 0 && c.Dropout < 1) {
		return fail("dropout %v is outside [0, 1)", c.Dropout)
	}
	if c.Init == nil {
		c.Init = nn.Xavier
	}
	return nil
}

// MultiHead attends in several subspaces at once:
//
//	head_h = Attend(q·W_q,h, k·W_k,h, v·W_v,h)
//	out    = concat(head_1 … head_H)·W_out
//
// with a bias on each map where the configuration says so.
//
// Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2.
type MultiHead struct {
	// Q, K, V and Out are the maps; their weights are [out in], the heads one
	// behind the other along out. They are nil until the first batch where a
	// width is inferred.
	Q, K, V, Out *nn.Linear

	config MultiHeadConfig
	rng    *rand.Rand // kept for maps that are made at the first batch
}

// NewMultiHead returns a layer with freshly drawn parameters. It returns an
// error if the configuration contradicts itself.
func NewMultiHead(c MultiHeadConfig, rng *rand.Rand) (*MultiHead, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	m := &MultiHead{config: c, rng: rng}
	m.Out = m.linear(c.Heads*c.ValueSize, c.OutWidth, Out)
	if c.QueryWidth != Infer && c.KeyWidth != Infer && c.ValueWidth != Infer {
		m.Build(c.QueryWidth, c.KeyWidth, c.ValueWidth)
	}
	return m, nil
}

// Build makes the maps of q, k and v, unless they exist, with the given widths
// of inputs where the configuration says Infer. Forward calls it at the first
// batch; whoever wants the parameters of such a layer earlier calls it first.
func (m *MultiHead) Build(queryWidth, keyWidth, valueWidth int) {
	if m.Q != nil {
		return
	}
	c := &m.config
	settle := func(width *int, seen int) {
		if *width == Infer {
			*width = seen
		}
	}
	settle(&c.QueryWidth, queryWidth)
	settle(&c.KeyWidth, keyWidth)
	settle(&c.ValueWidth, valueWidth)
	m.Q = m.linear(c.QueryWidth, c.Heads*c.HeadSize, Query)
	m.K = m.linear(c.KeyWidth, c.KVHeads*c.HeadSize, Key)
	m.V = m.linear(c.ValueWidth, c.KVHeads*c.ValueSize, Value)
}

func (m *MultiHead) linear(in, out int, which Projections) *nn.Linear {
	l := &nn.Linear{Weight: m.config.Init(m.rng, out, in)}
	if m.config.Bias&which != 0 {
		l.Bias = tensor.Zeros(out).Param()
	}
	return l
}

// Config returns the configuration with every default filled in.
func (m *MultiHead) Config() MultiHeadConfig { return m.config }

// Params returns the parameters "q.weight", "q.bias", "k.weight" and so on to
// "out.bias", and those of the score as "score.…".
func (m *MultiHead) Params() nn.Params {
	var parts []nn.Named
	if m.Q != nil {
		parts = append(parts, nn.Named{Name: "q", Module: m.Q}, nn.Named{Name: "k", Module: m.K}, nn.Named{Name: "v", Module: m.V})
	}
	parts = append(parts, nn.Named{Name: "out", Module: m.Out})
	if score, ok := m.config.Score.(nn.Module); ok {
		parts = append(parts, nn.Named{Name: "score", Module: score})
	}
	return nn.Join(parts...)
}

// Forward attends from q to k and v.
//
// Shapes, in layout BatchFirst:
//
//	q        [B Lq QueryWidth]
//	k        [B Lk KeyWidth]
//	v        [B Lk ValueWidth]
//	out      [B Lq OutWidth]
//	weights  [B H Lq Lk]
//
// In layout SequenceFirst the first two axes of q, k, v and out change places.
// Options.Mask and Options.Bias broadcast to [B H Lq Lk] in both.
//
// Gradients flow to the inputs, the parameters and Options.Bias.
//
// Forward panics with a *tensor.ShapeError if shapes do not fit.
func (m *MultiHead) Forward(t *tensor.Tape, q, k, v *tensor.Tensor, o Options) Output {
	c := &m.config
	b, l := 0, 1
	if c.Layout == SequenceFirst {
		b, l = 1, 0
	}
	wantInput("query", q, c.Layout, "Lq", Infer, Infer, c.QueryWidth)
	wantInput("key", k, c.Layout, "Lk", q.Dim(b), Infer, c.KeyWidth)
	wantInput("value", v, c.Layout, "Lk", q.Dim(b), k.Dim(l), c.ValueWidth)
	m.Build(q.Dim(2), k.Dim(2), v.Dim(2))
	return m.query(t, q, KV{K: m.K.Forward(t, k), V: m.V.Forward(t, v)}, c.Layout, o)
}

// KV holds keys and values that have been mapped, so that they can be asked more
// than once: k [B Lk G·E] and v [B Lk G·V], the heads side by side.
type KV struct{ K, V *tensor.Tensor }

// Project maps keys and values: the half of Forward that does not depend on the
// queries. k and v are [B Lk …] in either layout.
func (m *MultiHead) Project(t *tensor.Tape, k, v *tensor.Tensor) KV {
	c := &m.config
	m.wantBuilt()
	wantInput("key", k, BatchFirst, "Lk", Infer, Infer, c.KeyWidth)
	wantInput("value", v, BatchFirst, "Lk", k.Dim(0), k.Dim(1), c.ValueWidth)
	return KV{K: m.K.Forward(t, k), V: m.V.Forward(t, v)}
}

// Append returns the keys and values of kv followed by those of next: a cache
// grows by a step.
func (kv KV) Append(t *tensor.Tape, next KV) KV {
	if kv.K == nil {
		return next
	}
	return KV{K: tensor.Concat(t, 1, kv.K, next.K), V: tensor.Concat(t, 1, kv.V, next.V)}
}

// Select returns the keys and values of the given sequences of the batch, in
// the given order.
func (kv KV) Select(t *tensor.Tape, sequences []int) KV {
	if kv.K == nil {
		return kv
	}
	return KV{K: tensor.Gather(t, kv.K, sequences), V: tensor.Gather(t, kv.V, sequences)}
}

// Query attends from q [B Lq QueryWidth] to keys and values that Project has
// mapped: the other half of Forward.
func (m *MultiHead) Query(t *tensor.Tape, q *tensor.Tensor, kv KV, o Options) Output {
	c := &m.config
	m.wantBuilt()
	if kv.K == nil {
		panic(&tensor.ShapeError{Op: opMultiHead, Arg: "kv", What: "number of keys", Got: []int{0}, Want: "what Project returns"})
	}
	wantInput("query", q, BatchFirst, "Lq", kv.K.Dim(0), Infer, c.QueryWidth)
	return m.query(t, q, kv, BatchFirst, o)
}

// query is Query in the given layout, which is also that of kv.
func (m *MultiHead) query(t *tensor.Tape, q *tensor.Tensor, kv KV, layout Layout, o Options) Output {
	c := &m.config
	if o.Score == nil {
		o.Score = c.Score
	}
	if o.Score == nil {
		o.Score = ScaledDot()
	}
	if o.Dropout == 0 {
		o.Dropout = c.Dropout
	}
	if o.Layer == "" {
		o.Layer = c.Name
	}
	s, ok := o.Score.(fusable)
	if _, own := s.(onKeys); own || !ok {
		return m.splitAndAttend(t, m.Q.Forward(t, q), kv, layout, o)
	}
	b, l := 0, 1
	if layout == SequenceFirst {
		b, l = 1, 0
	}
	d := dims{B: q.Dim(b), H: c.Heads, G: c.KVHeads, Lq: q.Dim(l), Lk: kv.K.Dim(l), V: c.ValueSize}
	d.checkBias(opMultiHead, o.Bias)
	o.Mask.check(opMultiHead, d)
	queries, e := mapHeads(t, m.Q.Forward(t, q), c.HeadSize, s.mapQueries)
	mapped, ek := mapHeads(t, kv.K, c.HeadSize, s.mapKeys)
	if e != ek {
		panic(&tensor.ShapeError{Op: opMultiHead, Arg: "key", What: "head size", Got: []int{ek}, Want: fmt.Sprintf("E=%d", e)})
	}
	out := t.Make(q.Dim(0), q.Dim(1), c.Heads*c.ValueSize)
	weights := fused(t, s.form(e), headLast(queries, layout, 0, e), headLast(mapped, layout, 0, e),
		headLast(kv.V, layout, 0, c.ValueSize), headLast(out, layout, 0, c.ValueSize), d, &o)
	if o.Observe != nil {
		o.Observe(o.Layer, weights.Detach())
	}
	if !o.Weights {
		weights = nil
	}
	return Output{Out: m.Out.Forward(t, out), Weights: weights}
}

// mapHeads applies what a score does to single vectors to the heads of x, three
// axes of which the last is heads of size elements side by side, and returns
// the new size.
func mapHeads(t *tensor.Tape, x *tensor.Tensor, size int, f func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor) (*tensor.Tensor, int) {
	h := x.Dim(2) / size
	split := tensor.Reshape(t, x, x.Dim(0), x.Dim(1), h, size)
	y := f(t, split)
	if y == split {
		return x, size
	}
	return tensor.Reshape(t, y, x.Dim(0), x.Dim(1), h*y.Dim(3)), y.Dim(3)
}

// splitAndAttend attends with a score that wants to see the heads [B H L E].
func (m *MultiHead) splitAndAttend(t *tensor.Tape, q *tensor.Tensor, kv KV, layout Layout, o Options) Output {
	c := &m.config
	out := Attend(t, splitHeads(t, q, c.Heads, layout), splitHeads(t, kv.K, c.KVHeads, layout), splitHeads(t, kv.V, c.KVHeads, layout), o)
	out.Out = m.Out.Forward(t, joinHeads(t, out.Out, layout))
	return out
}

// splitHeads turns [B L H·E], or [L B H·E], into [B H L E].
func splitHeads(t *tensor.Tape, x *tensor.Tensor, heads int, layout Layout) *tensor.Tensor {
	x4 := tensor.Reshape(t, x, x.Dim(0), x.Dim(1), heads, x.Dim(2)/heads)
	if layout == SequenceFirst {
		return tensor.Transpose(t, x4, 1, 2, 0, 3)
	}
	return tensor.Transpose(t, x4, 0, 2, 1, 3)
}

// joinHeads turns [B H L V] into [B L H·V], or [L B H·V].
func joinHeads(t *tensor.Tape, x *tensor.Tensor, layout Layout) *tensor.Tensor {
	b, h, l, v := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	if layout == SequenceFirst {
		return tensor.Reshape(t, tensor.Transpose(t, x, 2, 0, 1, 3), l, b, h*v)
	}
	return tensor.Reshape(t, tensor.Transpose(t, x, 0, 2, 1, 3), b, l, h*v)
}

const opMultiHead = "attn: MultiHead"

// wantBuilt panics if the layer still waits for the widths of its first batch.
func (m *MultiHead) wantBuilt() {
	if c := &m.config; m.Q == nil {
		panic(&tensor.ShapeError{
			Op: opMultiHead, Arg: "layer", What: "input widths", Got: []int{c.QueryWidth, c.KeyWidth, c.ValueWidth},
			Want: "Build or Forward to be called first",
		})
	}
}

// wantInput panics unless x is a batch of b sequences of l vectors of width d,
// in the given order of axes. A negative size fits all; length is the letter of
// l.
func wantInput(arg string, x *tensor.Tensor, layout Layout, length string, b, l, d int) {
	letters, want := [3]string{"B", length, "D"}, [3]int{b, l, d}
	if layout == SequenceFirst {
		letters[0], letters[1] = letters[1], letters[0]
		want[0], want[1] = want[1], want[0]
	}
	fits := x.Rank() == len(want)
	for a := 0; fits && a < len(want); a++ {
		fits = want[a] < 0 || x.Dim(a) == want[a]
	}
	if fits {
		return
	}
	for a, n := range want {
		if n >= 0 {
			letters[a] += fmt.Sprint("=", n)
		}
	}
	panic(&tensor.ShapeError{Op: opMultiHead, Arg: arg, Got: x.Shape(), Want: fmt.Sprint(letters)})
}
