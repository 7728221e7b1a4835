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
	// Heads is H, the number of query heads, or NoHeads. It divides Width unless
	// HeadSize is given.
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
	if c.Width <= 0 || c.Heads <= 0 && c.Heads != NoHeads {
		return fail("width %d and heads %d must be positive", c.Width, c.Heads)
	}
	c.Heads = max(c.Heads, 0)
	if c.Heads == 0 && c.KVHeads > 0 {
		return fail("%d key/value heads, but no heads", c.KVHeads)
	}
	if c.Heads == 0 && c.HeadSize == 0 {
		c.HeadSize = c.Width // there is none, and its size is no matter
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
	if c.Heads > 0 && c.Heads%c.KVHeads != 0 {
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
//	head_h = gate_h·Attend(q·W_q,h, k·W_k,h, v·W_v,h)
//	out    = concat(head_1 … head_H)·W_out
//
// with a bias on each map where the configuration says so, and gates of 1 unless
// Options.Gates has others.
//
// Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2.
type MultiHead struct {
	// Q, K, V and Out are the maps; their weights are [out in], the heads one
	// behind the other along out. They are nil until the first batch where a
	// width is inferred.
	Q, K, V, Out *nn.Linear

	joint  *joint // nil if there is none
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
	m.joint = join(m.Q, m.K, m.V)
}

// joint is the maps of q, k and v as one map, of which they are parts.
type joint struct {
	all     *nn.Linear
	q, k, v nn.Linear
}

// join moves the parameters of maps of equal inputs into one, or returns nil if
// they differ in that or in having a bias, or are none of ours to move.
func join(q, k, v *nn.Linear) *joint {
	maps := []*nn.Linear{q, k, v}
	rows := 0
	for _, l := range maps {
		if l.Weight == nil || !l.Weight.NeedsGrad() {
			return nil
		}
		if l.Weight.Dim(1) != q.Weight.Dim(1) || (l.Bias == nil) != (q.Bias == nil) {
			return nil
		}
		rows += l.Weight.Dim(0)
	}
	j := &joint{all: &nn.Linear{Weight: tensor.Zeros(rows, q.Weight.Dim(1)).Param()}}
	if q.Bias != nil {
		j.all.Bias = tensor.Zeros(rows).Param()
	}
	at := 0
	for _, l := range maps {
		end := at + l.Weight.Dim(0)
		part := j.all.Weight.Rows(at, end)
		copy(part.Data(), l.Weight.Data())
		l.Weight = part
		if l.Bias != nil {
			part := j.all.Bias.Rows(at, end)
			copy(part.Data(), l.Bias.Data())
			l.Bias = part
		}
		at = end
	}
	j.q, j.k, j.v = *q, *k, *v
	return j
}

// whole returns the maps of q, k and v as one, or nil if they are not, or are not
// any more: the fields may be set to other maps.
func (m *MultiHead) whole() *nn.Linear {
	if j := m.joint; j != nil && *m.Q == j.q && *m.K == j.k && *m.V == j.v {
		return j.all
	}
	return nil
}

func (m *MultiHead) linear(in, out int, which Projections) *nn.Linear {
	l := &nn.Linear{Weight: m.config.Init(m.rng, out, in)}
	if m.config.Bias&which != 0 {
		l.Bias = tensor.Zeros(out).Param()
	}
	return l
}

// Config returns the configuration with every default filled in. Heads is the number
// of heads, 0 where NewMultiHead was given NoHeads.
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
// Gradients flow to the inputs, the parameters, Options.Bias and Options.Gates.
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
	if all := m.whole(); all != nil && q == k && k == v {
		queries, kv := m.parts(all.Forward(t, q), c.Layout)
		return m.attend(t, queries, kv, o)
	}
	queries := headLast(m.Q.Forward(t, q), c.Layout, 0, c.HeadSize, c.Heads)
	return m.attend(t, queries, m.project(t, k, v, c.Layout), o)
}

// parts returns queries, keys and values that have been mapped as one.
func (m *MultiHead) parts(x *tensor.Tensor, layout Layout) (queries heads, kv KV) {
	c := &m.config
	at := c.Heads * c.HeadSize
	queries = headLast(x, layout, 0, c.HeadSize, c.Heads)
	kv.keys = headLast(x, layout, at, c.HeadSize, c.KVHeads)
	kv.values = headLast(x, layout, at+c.KVHeads*c.HeadSize, c.ValueSize, c.KVHeads)
	return queries, kv
}

// KV holds keys and values that have been mapped, so that they can be asked more
// than once. The zero value holds none.
type KV struct{ keys, values heads }

// Len returns the number of keys, in each sequence.
func (kv KV) Len() int { return kv.keys.length() }

// Project maps keys and values: the half of Forward that does not depend on the
// queries. k and v are [B Lk …] in either layout.
func (m *MultiHead) Project(t *tensor.Tape, k, v *tensor.Tensor) KV {
	c := &m.config
	m.wantBuilt()
	wantInput("key", k, BatchFirst, "Lk", Infer, Infer, c.KeyWidth)
	wantInput("value", v, BatchFirst, "Lk", k.Dim(0), k.Dim(1), c.ValueWidth)
	return m.project(t, k, v, BatchFirst)
}

func (m *MultiHead) project(t *tensor.Tape, k, v *tensor.Tensor, layout Layout) KV {
	c := &m.config
	return KV{
		keys:   headLast(m.K.Forward(t, k), layout, 0, c.HeadSize, c.KVHeads),
		values: headLast(m.V.Forward(t, v), layout, 0, c.ValueSize, c.KVHeads),
	}
}

// Append returns the keys and values of kv followed by those of next: a cache
// grows by a step.
func (kv KV) Append(t *tensor.Tape, next KV) KV {
	if kv.keys.x == nil {
		return next
	}
	along := func(a, b heads) heads {
		return headLast(tensor.Concat(t, 1, a.own(t), b.own(t)), BatchFirst, 0, a.size, a.count)
	}
	return KV{along(kv.keys, next.keys), along(kv.values, next.values)}
}

// Select returns the keys and values of the given sequences of the batch, in
// the given order.
func (kv KV) Select(t *tensor.Tape, sequences []int) KV {
	if kv.keys.x == nil {
		return kv
	}
	chosen := func(h heads) heads {
		return headLast(tensor.Gather(t, h.own(t), sequences), BatchFirst, 0, h.size, h.count)
	}
	return KV{chosen(kv.keys), chosen(kv.values)}
}

// Query attends from q [B Lq QueryWidth] to keys and values that Project has
// mapped: the other half of Forward.
func (m *MultiHead) Query(t *tensor.Tape, q *tensor.Tensor, kv KV, o Options) Output {
	c := &m.config
	m.wantBuilt()
	if kv.keys.x == nil {
		panic(&tensor.ShapeError{Op: opMultiHead, Arg: "kv", What: "number of keys", Got: []int{0}, Want: "what Project returns"})
	}
	wantInput("query", q, BatchFirst, "Lq", kv.keys.x.Dim(0), Infer, c.QueryWidth)
	return m.attend(t, headLast(m.Q.Forward(t, q), BatchFirst, 0, c.HeadSize, c.Heads), kv, o)
}

// Extend attends from x [B L Width] to the keys and values of kv, followed by
// those of x itself, and returns them as well: a step of a decoder. Where kv is
// empty it is Forward.
func (m *MultiHead) Extend(t *tensor.Tape, x *tensor.Tensor, kv KV, o Options) (Output, KV) {
	c := &m.config
	m.wantBuilt()
	all := m.whole()
	if all == nil {
		kv = kv.Append(t, m.Project(t, x, x))
		return m.Query(t, x, kv, o), kv
	}
	wantInput("query", x, BatchFirst, "L", Infer, Infer, c.QueryWidth)
	queries, next := m.parts(all.Forward(t, x), BatchFirst)
	kv = kv.Append(t, next)
	return m.attend(t, queries, kv, o), kv
}

// attend is what follows after the projections.
func (m *MultiHead) attend(t *tensor.Tape, queries heads, kv KV, o Options) Output {
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
	d := dims{B: queries.batches(), H: c.Heads, G: c.KVHeads, Lq: queries.length(), Lk: kv.Len(), V: c.ValueSize}
	d.checkBias(opMultiHead, o.Bias)
	d.checkGates(opMultiHead, o.Gates)
	o.Mask.check(opMultiHead, d)
	if c.Heads == 0 {
		return m.without(t, queries, kv, o)
	}
	s, ok := o.Score.(fusable)
	if _, own := s.(onKeys); own || !ok {
		// The score wants to see all heads as [B H L E].
		out := Attend(t, queries.split(t), kv.keys.split(t), kv.values.split(t), o)
		out.Out = m.Out.Forward(t, joinHeads(t, out.Out, queries.layout))
		return out
	}
	q, k := queries.mapped(t, s.queryMap()), kv.keys.mapped(t, s.keyMap())
	wantHeadSize(opMultiHead, "key", k.size, q.size)
	out := headLast(t.Make(queries.x.Dim(0), queries.x.Dim(1), c.Heads*c.ValueSize), queries.layout, 0, c.ValueSize, c.Heads)
	weights := fused(t, s.form(q.size), q, k, kv.values, out, d, &o)
	if o.Observe != nil {
		o.Observe(o.Layer, weights.Detach())
	}
	if !o.Weights {
		weights = nil
	}
	return Output{Out: m.Out.Forward(t, gated(t, out, o.Gates).x), Weights: weights}
}

// without is attend for a layer that has no heads.
func (m *MultiHead) without(t *tensor.Tape, queries heads, kv KV, o Options) Output {
	var out Output
	if o.Weights || o.Observe != nil {
		out.Weights = t.Make(queries.batches(), 0, queries.length(), kv.Len())
	}
	if o.Observe != nil {
		o.Observe(o.Layer, out.Weights)
	}
	if !o.Weights {
		out.Weights = nil
	}
	out.Out = m.Out.Forward(t, queries.own(t))
	return out
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
