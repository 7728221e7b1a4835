package attn

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

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
	// Sinks are the learnt sinks [H], nil if the configuration has none.
	Sinks *tensor.Tensor
	// BiasK [1 1 G·E] and BiasV [1 1 G·V] are the key and the value of BiasKV, the heads
	// one behind the other, nil if the configuration has none.
	BiasK, BiasV *tensor.Tensor

	// waiting are the maps of q, k and v without elements while these wait for widths. A
	// file may give them theirs.
	waiting [3]*nn.Linear

	joint  *joint // nil if there is none
	given  [3]int // the widths of q, k and v of the configuration, Infer among them
	config MultiHeadConfig
	rng    *rand.Rand // kept for maps that are made at the first batch

	// building is locked while the first batch resolves what the configuration leaves
	// open: goroutines may share a layer from the start.
	building sync.Mutex
}

// Config returns the configuration with every default filled in. Heads is the number
// of heads, 0 where NewMultiHead was given NoHeads.
func (m *MultiHead) Config() MultiHeadConfig {
	m.building.Lock()
	defer m.building.Unlock()
	return m.config
}

// Params returns the parameters "q.weight", "q.bias", "k.weight" and so on to
// "out.bias", those of the score as "score.…", those of the norms as "q_norm.…" and
// "k_norm.…", and "sinks", "bias_k" and "bias_v". Those of q, k and v have no elements while
// the layer waits for widths; see tensor.Uninitialized.
func (m *MultiHead) Params() nn.Params {
	m.building.Lock()
	defer m.building.Unlock()
	m.adopt()
	maps := m.waiting
	if m.Q != nil {
		maps = [3]*nn.Linear{m.Q, m.K, m.V}
	}
	parts := []nn.Named{
		{Name: "q", Module: maps[0]}, {Name: "k", Module: maps[1]}, {Name: "v", Module: maps[2]}, {Name: "out", Module: m.Out},
	}
	if score, ok := m.config.Score.(nn.Module); ok {
		parts = append(parts, nn.Named{Name: "score", Module: score})
	}
	if n := m.config.QueryNorm; n != nil {
		parts = append(parts, nn.Named{Name: "q_norm", Module: n})
	}
	if n := m.config.KeyNorm; n != nil {
		parts = append(parts, nn.Named{Name: "k_norm", Module: n})
	}
	parts = append(parts, nn.Named{Module: nn.Vars{
		{Name: "sinks", Tensor: m.Sinks}, {Name: "bias_k", Tensor: m.BiasK}, {Name: "bias_v", Tensor: m.BiasV},
	}})
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
// Forward panics with a *tensor.ShapeError if shapes do not fit, and with a
// *tensor.ValueError if a tensor is nil or an option out of range. Goroutines may call
// it at the same time, each with a tape of its own.
func (m *MultiHead) Forward(t *tensor.Tape, q, k, v *tensor.Tensor, o Options) Output {
	m.wantMade()
	m.wantInputs(q, k, v, m.given)
	if slices.Contains(m.given[:], Infer) {
		m.Build(q.Dim(2), k.Dim(2), v.Dim(2))
		m.wantInputs(q, k, v, m.widths())
	}
	if q == k && k == v {
		queries, kv := m.self(t, q)
		kv.keys = m.positionKeys(t, kv.keys, o.KeyPositions)
		return m.attend(t, queries, m.withExtra(t, kv), o)
	}
	return m.attend(t, m.view(m.Q.Forward(t, q), Query, 0), m.withExtra(t, m.project(t, k, v, o.KeyPositions)), o)
}

// positionKeys normalises keys and moves them to their positions.
func (m *MultiHead) positionKeys(t *tensor.Tape, k heads, at Positions) heads {
	k = m.normed(t, m.config.KeyNorm, k)
	if p := m.config.Position; p != nil {
		k = applyPosition(t, opMultiHead, p, k, Key, at)
	}
	return k
}

// positionQueries is positionKeys for queries of a call of the given sizes.
func (m *MultiHead) positionQueries(t *tensor.Tape, q heads, s Sizes, at Positions) heads {
	q = m.normed(t, m.config.QueryNorm, q)
	if p := m.config.Position; p != nil {
		q = applyPosition(t, opMultiHead, p, q, Query, at.ends(s))
	}
	return q
}

// normed applies a norm, which may be nil, to each head or to whole projections.
func (m *MultiHead) normed(t *tensor.Tape, n nn.Norm, x heads) heads {
	switch {
	case n == nil:
		return x
	case m.config.NormProjections:
		return headLast(n.Forward(t, x.own(t)), x.layout, 0, x.size, x.count)
	}
	return x.mapped(t, n.Forward)
}

// self maps x to queries, keys and values, in one product where that is possible.
func (m *MultiHead) self(t *tensor.Tape, x *tensor.Tensor) (queries heads, kv KV) {
	var y []*tensor.Tensor
	var k, v int // the elements with which keys and values begin
	if all := m.whole(); all != nil {
		joint := all.Forward(t, x)
		y = []*tensor.Tensor{joint, joint, joint}
		k = m.config.Heads * m.config.HeadSize
		v = k + m.config.KVHeads*m.config.HeadSize
	} else {
		y = nn.Linears(t, x, m.Q, m.K, m.V)
	}
	return m.view(y[0], Query, 0), KV{keys: m.view(y[1], Key, k), values: m.view(y[2], Value, v)}
}

// view returns the heads of a projection, which begin with element at.
func (m *MultiHead) view(x *tensor.Tensor, of Projections, at int) heads {
	c := &m.config
	size, count := c.HeadSize, c.KVHeads
	switch of {
	case Query:
		count = c.Heads
	case Value:
		size = c.ValueSize
	}
	return headLast(x, c.Layout, at, size, count)
}

// Project maps keys and values: the half of Forward that does not depend on the
// queries. k and v have the shapes that Forward takes, in the layer's layout. Where the
// layer has a Position, the keys stand at 0, 1, 2, ….
func (m *MultiHead) Project(t *tensor.Tape, k, v *tensor.Tensor) KV {
	m.wantBuilt()
	m.wantKeys(k, v, Infer, m.widths())
	return m.withExtra(t, m.project(t, k, v, Positions{}))
}

func (m *MultiHead) project(t *tensor.Tape, k, v *tensor.Tensor, at Positions) KV {
	return KV{
		keys:   m.positionKeys(t, m.view(m.K.Forward(t, k), Key, 0), at),
		values: m.view(m.V.Forward(t, v), Value, 0),
	}
}

// Query attends from q to keys and values that Project has mapped: the other half of
// Forward, which says what shape q has. It panics with a *tensor.ShapeError if they are
// those of a layer with other heads or another layout.
func (m *MultiHead) Query(t *tensor.Tape, q *tensor.Tensor, kv KV, o Options) Output {
	m.wantBuilt()
	if kv.keys.x == nil {
		badShape(opMultiHead, "kv", "number of keys", []int{0}, "what Project returns")
	}
	m.wantKV(kv)
	wantInput("query", q, m.config.Layout, "Lq", kv.batches(), Infer, m.config.QueryWidth)
	return m.attend(t, m.view(m.Q.Forward(t, q), Query, 0), kv, o)
}

// attend is what follows after the projections.
func (m *MultiHead) attend(t *tensor.Tape, queries heads, kv KV, o Options) Output {
	c := &m.config
	if o.Dropout == 0 {
		o.Dropout = c.Dropout
	}
	if o.Layer == "" {
		o.Layer = c.Name
	}
	call := newCall(opMultiHead, queries, kv, &o)
	if o.Score == nil {
		o.Score = c.Score
	}
	if c.Heads == 0 {
		call.check()
		return m.noHeads(t, call)
	}
	if c.Position == nil && (o.QueryPositions.given() || o.KeyPositions.given()) {
		badValue(opMultiHead, "positions", "given", "none, as the layer has no Position")
	}
	if o.Sinks == nil {
		o.Sinks = m.Sinks
	}
	call.q = m.positionQueries(t, queries, call.Sizes, o.QueryPositions)
	var last *tensor.Tensor
	if o.Inspect != nil {
		last = float32Weights(m.Out)
	}
	out, y := call.attend(t, last)
	y.Out = m.Out.Forward(t, out.joined(t, queries.layout))
	return y
}

// noHeads is the output of a layer that has no heads.
func (m *MultiHead) noHeads(t *tensor.Tape, c *call) (y Output) {
	o := c.o
	for _, r := range o.Observers {
		r.Begin(c.Sizes)
	}
	weights := t.Make(c.B, 0, c.Lq, c.Lk)
	if o.Observe != nil {
		o.Observe(o.Layer, weights)
	}
	if o.Weights {
		y.Weights = weights
	}
	if o.LogSumExp {
		y.LogSumExp = t.Make(c.B, 0, c.Lq)
	}
	y.Out = m.Out.Forward(t, c.q.own(t))
	return y
}

const opMultiHead = "attn: MultiHead"

// wantMade panics if the layer is none that NewMultiHead has made.
func (m *MultiHead) wantMade() {
	if m == nil || m.Out == nil {
		badValue(opMultiHead, "layer", "nil or the zero MultiHead", "what NewMultiHead returns")
	}
}

// wantBuilt panics if the layer still waits for the widths of its first batch.
func (m *MultiHead) wantBuilt() {
	m.wantMade()
	m.building.Lock()
	defer m.building.Unlock()
	if c := &m.config; m.Q == nil {
		widths := []int{c.QueryWidth, c.KeyWidth, c.ValueWidth}
		badShape(opMultiHead, "layer", "input widths", widths, "Build or Forward to be called first")
	}
}

// widths returns the widths of q, k and v of a layer that is built.
func (m *MultiHead) widths() [3]int {
	return [3]int{m.config.QueryWidth, m.config.KeyWidth, m.config.ValueWidth}
}

// wantInputs panics unless q, k and v are inputs of the given widths that belong
// together.
func (m *MultiHead) wantInputs(q, k, v *tensor.Tensor, widths [3]int) {
	wantInput("query", q, m.config.Layout, "Lq", Infer, Infer, widths[0])
	batch := q.Dim(0)
	if m.config.Layout == SequenceFirst {
		batch = q.Dim(1)
	}
	m.wantKeys(k, v, batch, widths)
}

// wantKeys is wantInputs for keys and values alone, of batch sequences, or of any
// number if that is Infer.
func (m *MultiHead) wantKeys(k, v *tensor.Tensor, batch int, widths [3]int) {
	b, l := 0, 1
	if m.config.Layout == SequenceFirst {
		b, l = 1, 0
	}
	wantInput("key", k, m.config.Layout, "Lk", batch, Infer, widths[1])
	wantInput("value", v, m.config.Layout, "Lk", k.Dim(b), k.Dim(l), widths[2])
}

// wantKV panics unless keys and values are laid out as this layer's.
func (m *MultiHead) wantKV(kv KV) {
	c := &m.config
	want := [3]int{c.KVHeads, c.HeadSize, c.ValueSize}
	if got := kv.sizes(); got != want {
		badShape(opMultiHead, "kv", "heads and sizes", got[:], "[G=%d E=%d V=%d]", want[0], want[1], want[2])
	}
	if kv.extra != c.extra() {
		badValue(opMultiHead, "kv", "of a layer with other BiasKV or ZeroKV", "what Project of this layer returns")
	}
	if kv.keys.layout != c.Layout {
		badValue(opMultiHead, "kv", "of a layer of the other layout", "what Project of this layer returns")
	}
}

// wantInput panics unless x is a batch of b sequences of l vectors of width d,
// in the given order of axes. A negative size fits all; length is the letter of
// l.
func wantInput(arg string, x *tensor.Tensor, layout Layout, length string, b, l, d int) {
	tensor.Want(opMultiHead, arg, x)
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
