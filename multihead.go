package attn

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// MultiHead is the layer of multi-head attention. It attends in several subspaces at once:
//
//	head_h = gate_h·Attend(q·W_q,h, k·W_k,h, v·W_v,h)
//	out    = concat(head_1 … head_H)·W_out
//
// The configuration decides which maps have a bias. All gates are 1 unless Options.Gates is set or
// the configuration has an OutputGate.
//
// Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2.
type MultiHead struct {
	// Q, K, V and Out are the linear maps. Their weights are [out in]; heads are consecutive
	// along out. If a width is inferred, Q, K and V are nil until the first batch.
	Q, K, V, Out *nn.Linear
	// Gate maps the query inputs to the gates of OutputGate before its activation, or is nil if the
	// configuration has none.
	Gate *nn.Linear
	// Sinks [H] are the trained sinks, or nil if the configuration has none.
	Sinks *tensor.Tensor
	// BiasK [1 1 G·E] and BiasV [1 1 G·V] are the key and the value of BiasKV, with consecutive
	// heads, or nil if the configuration has none.
	BiasK, BiasV *tensor.Tensor

	// waiting are the maps of q, k and v without elements while their widths are unknown. Loading
	// a file may set their widths.
	waiting [3]*nn.Linear

	joint  *joint // may be nil
	given  [3]int // the configured widths of q, k and v, which may be Infer
	config MultiHeadConfig
	rng    *rand.Rand // for the maps that the first batch creates

	// building is locked while the first batch infers widths: goroutines may share a layer from
	// the start.
	building sync.Mutex
}

// Config returns the configuration with defaults filled in. Heads is the number of heads, and 0
// for a layer with NoHeads.
func (m *MultiHead) Config() MultiHeadConfig {
	m.building.Lock()
	defer m.building.Unlock()
	return m.config
}

// Params returns the parameters "q.weight", "q.bias", "k.weight" and so on to "out.bias"; those of
// OutputGate, "gate.weight" and "gate.bias"; the parameters of the score as "score.…" and of the
// norms as "q_norm.…", "k_norm.…" and "v_norm.…"; and "sinks", "bias_k" and "bias_v". The parameters of q, k and v have no
// elements while their widths are unknown; see tensor.Uninitialized.
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
	if m.Gate != nil {
		parts = append(parts, nn.Named{Name: "gate", Module: m.Gate})
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
	if n := m.config.ValueNorm; n != nil {
		parts = append(parts, nn.Named{Name: "v_norm", Module: n})
	}
	parts = append(parts, nn.Named{Module: nn.Vars{
		{Name: "sinks", Tensor: m.Sinks}, {Name: "bias_k", Tensor: m.BiasK}, {Name: "bias_v", Tensor: m.BiasV},
	}})
	return nn.Join(parts...)
}

// Forward computes attention of the queries q to the keys k and values v.
//
// Shapes, in layout BatchFirst:
//
//	q        [B Lq QueryWidth]
//	k        [B Lk KeyWidth]
//	v        [B Lk ValueWidth]
//	out      [B Lq OutWidth]
//	weights  [B H Lq Lk]
//
// In layout SequenceFirst the first two axes of q, k, v and out are swapped. Options.Mask and
// Options.Bias broadcast to [B H Lq Lk] in both layouts.
//
// Gradients flow to the inputs, the parameters, Options.Bias and Options.Gates.
//
// Forward panics with a *tensor.ShapeError if shapes do not fit, and with a *tensor.ValueError if
// a tensor is nil or an option is out of range. Several goroutines may call it at the same time,
// each with a separate tape.
func (m *MultiHead) Forward(t *tensor.Tape, q, k, v *tensor.Tensor, o Options) Output {
	m.wantMade()
	m.wantInputs(q, k, v, m.given)
	if slices.Contains(m.given[:], Infer) {
		m.Build(q.Dim(2), k.Dim(2), v.Dim(2))
		m.wantInputs(q, k, v, m.widths())
	}
	if q == k && k == v {
		queries, kv := m.self(t, q)
		return m.attend(t, queries, m.withExtra(t, m.placed(t, kv, o.KeyPositions, &o.Edits)), o)
	}
	kv := m.project(t, k, v, o.KeyPositions, &o.Edits)
	return m.attend(t, m.queries(t, q), m.withExtra(t, kv), o)
}

// placed edits and normalises keys and values, and moves the keys to their positions. No later part of the call edits
// them.
func (m *MultiHead) placed(t *tensor.Tape, kv KV, at Positions, e *Edits) KV {
	k := m.normed(t, m.config.KeyNorm, e.Keys.edited(t, opMultiHead, "keys", kv.keys))
	if p := m.config.Position; p != nil {
		k = applyPosition(t, opMultiHead, p, k, Key, at, true)
	}
	v := m.normed(t, m.config.ValueNorm, e.Values.edited(t, opMultiHead, "values", kv.values))
	e.Keys, e.Values = nil, nil
	return KV{keys: k, values: v}
}

// positionQueries normalises the queries of a call and moves them to their positions.
func (m *MultiHead) positionQueries(t *tensor.Tape, q heads, s Sizes, at Positions) heads {
	q = m.normed(t, m.config.QueryNorm, q)
	if p := m.config.Position; p != nil {
		q = applyPosition(t, opMultiHead, p, q, Query, at.ends(s), true)
	}
	return q
}

// normed applies the norm n, which may be nil, to each head or to whole projections.
func (m *MultiHead) normed(t *tensor.Tape, n nn.Norm, x heads) heads {
	switch {
	case n == nil:
		return x
	case m.config.NormProjections:
		return headLast(n.Forward(t, x.own(t)), x.layout, 0, x.size, x.count)
	}
	return x.mapped(t, n.Forward)
}

// queries are projected queries.
type queries struct {
	heads heads
	gates *tensor.Tensor // of OutputGate before its activation, or nil
}

// queries maps q to queries.
func (m *MultiHead) queries(t *tensor.Tape, q *tensor.Tensor) queries {
	if m.Gate == nil {
		return queries{heads: m.view(m.Q.Forward(t, q), Query, 0)}
	}
	y := nn.Linears(t, q, m.Q, m.Gate)
	return queries{m.view(y[0], Query, 0), y[1]}
}

// self maps x to queries, keys and values, with one matrix product if possible, without norms and positions.
func (m *MultiHead) self(t *tensor.Tape, x *tensor.Tensor) (q queries, kv KV) {
	var y []*tensor.Tensor
	var k, v int // the first elements of keys and values
	if all := m.whole(); all != nil {
		joint := all.Forward(t, x)
		y = []*tensor.Tensor{joint, joint, joint}
		k = m.config.Heads * m.config.HeadSize
		v = k + m.config.KVHeads*m.config.HeadSize
		if m.Gate != nil {
			q.gates = m.Gate.Forward(t, x)
		}
	} else if m.Gate != nil {
		y = nn.Linears(t, x, m.Q, m.K, m.V, m.Gate)
		q.gates = y[3]
	} else {
		y = nn.Linears(t, x, m.Q, m.K, m.V)
	}
	q.heads = m.view(y[0], Query, 0)
	return q, KV{keys: m.view(y[1], Key, k), values: m.view(y[2], Value, v)}
}

// view returns the heads of a projection that begins at element at.
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

// Project maps keys and values: the part of Forward that does not depend on the queries. k and v
// have the same shapes as in Forward, in the layer's layout. If the layer has a Position, the
// keys are at positions 0, 1, 2, ….
func (m *MultiHead) Project(t *tensor.Tape, k, v *tensor.Tensor) KV {
	m.wantBuilt()
	m.wantKeys(k, v, Infer, m.widths())
	return m.withExtra(t, m.project(t, k, v, Positions{}, new(Edits)))
}

func (m *MultiHead) project(t *tensor.Tape, k, v *tensor.Tensor, at Positions, e *Edits) KV {
	return m.placed(t, KV{keys: m.view(m.K.Forward(t, k), Key, 0), values: m.view(m.V.Forward(t, v), Value, 0)}, at, e)
}

// Query computes attention of the queries q to keys and values from Project: the remaining part
// of Forward, where the shape of q is documented. kv may also be from Cache.KV: the queries are then
// at the last positions of the cache, as in Extend. Query panics with a *tensor.ShapeError if kv is
// from a layer with different heads or another layout.
func (m *MultiHead) Query(t *tensor.Tape, q *tensor.Tensor, kv KV, o Options) Output {
	m.wantBuilt()
	switch {
	case kv.cache != nil:
		wantNoRecord(opMultiHead, t)
		m.wantCache(kv.cache)
	case kv.keys.x == nil:
		badShape(opMultiHead, "kv", "number of keys", []int{0}, "a KV from Project")
	default:
		m.wantKV(kv)
	}
	wantInput("query", q, m.config.Layout, "Lq", kv.batches(), Infer, m.config.QueryWidth)
	return m.attend(t, m.queries(t, q), kv, o)
}

// attend is the part of Forward after the input projections.
func (m *MultiHead) attend(t *tensor.Tape, q queries, kv KV, o Options) Output {
	c := &m.config
	if o.Dropout == 0 {
		o.Dropout = c.Dropout
	}
	if o.Format == 0 {
		o.Format = c.Format
	}
	if o.Layer == "" {
		o.Layer = c.Name
	}
	call := newCall(opMultiHead, q.heads, kv, &o)
	if call.o.Score == nil {
		call.o.Score = c.Score
	}
	if c.Heads == 0 {
		call.check()
		return m.noHeads(t, call)
	}
	if c.Position == nil && (o.QueryPositions.given() || o.KeyPositions.given()) {
		badValue(opMultiHead, "positions", "given", "none: the layer has no Position")
	}
	if o.Sinks == nil {
		call.o.Sinks = m.Sinks
	}
	raw := o.Edits.Queries.edited(t, opMultiHead, "queries", q.heads)
	call.o.Edits.Queries = nil
	call.q = m.positionQueries(t, raw, call.Sizes, o.QueryPositions)
	if q.gates != nil {
		call.gates = c.OutputGate.of(t, q.gates, c.Layout, c.Heads)
	}
	var last *tensor.Tensor
	if o.Inspect != nil {
		last = float32Weights(m.Out)
	}
	out, y := call.attend(t, last)
	y.Out = m.Out.Forward(t, out.joined(t, c.Layout))
	return y
}

// noHeads computes the output of a layer without heads.
func (m *MultiHead) noHeads(t *tensor.Tape, c *call) (y Output) {
	o := c.o
	o.begin(c.Sizes)
	o.end()
	if o.Weights {
		y.Weights = t.Make(c.B, 0, c.Lq, c.Lk)
	}
	if o.LogSumExp {
		y.LogSumExp = t.Make(c.B, 0, c.Lq)
	}
	y.Out = m.Out.Forward(t, c.q.own(t))
	return y
}

const opMultiHead = "attn: MultiHead"

// wantMade panics unless NewMultiHead has made the layer.
func (m *MultiHead) wantMade() {
	if m == nil || m.Out == nil {
		badValue(opMultiHead, "layer", "nil or the zero MultiHead", "a layer from NewMultiHead")
	}
}

// wantBuilt panics if the widths of the layer are still unknown.
func (m *MultiHead) wantBuilt() {
	m.wantMade()
	m.building.Lock()
	defer m.building.Unlock()
	if c := &m.config; m.Q == nil {
		widths := []int{c.QueryWidth, c.KeyWidth, c.ValueWidth}
		badShape(opMultiHead, "layer", "input widths", widths, "Build or Forward to be called first")
	}
}

// widths returns the widths of q, k and v after Build.
func (m *MultiHead) widths() [3]int {
	return [3]int{m.config.QueryWidth, m.config.KeyWidth, m.config.ValueWidth}
}

// wantInputs panics unless q, k and v have the given widths and their batches and lengths agree.
func (m *MultiHead) wantInputs(q, k, v *tensor.Tensor, widths [3]int) {
	wantInput("query", q, m.config.Layout, "Lq", Infer, Infer, widths[0])
	batch := q.Dim(0)
	if m.config.Layout == SequenceFirst {
		batch = q.Dim(1)
	}
	m.wantKeys(k, v, batch, widths)
}

// wantKeys is wantInputs for keys and values only. batch is their number of sequences, or Infer
// for any number.
func (m *MultiHead) wantKeys(k, v *tensor.Tensor, batch int, widths [3]int) {
	b, l := 0, 1
	if m.config.Layout == SequenceFirst {
		b, l = 1, 0
	}
	wantInput("key", k, m.config.Layout, "Lk", batch, Infer, widths[1])
	wantInput("value", v, m.config.Layout, "Lk", k.Dim(b), k.Dim(l), widths[2])
}

// wantKV panics unless the heads and the layout of kv match the layer.
func (m *MultiHead) wantKV(kv KV) {
	c := &m.config
	want := [3]int{c.KVHeads, c.HeadSize, c.ValueSize}
	if got := kv.sizes(); got != want {
		badShape(opMultiHead, "kv", "heads and sizes", got[:], "[G=%d E=%d V=%d]", want[0], want[1], want[2])
	}
	if kv.extra != c.extra() {
		badValue(opMultiHead, "kv", "from a layer with different BiasKV or ZeroKV", "one from Project of this layer")
	}
	if kv.keys.layout != c.Layout {
		badValue(opMultiHead, "kv", "from a layer with another Layout", "one from Project of this layer")
	}
}

// wantInput panics unless x is a batch of b sequences of l vectors of width d in the given
// layout. A negative size matches any size. length is the letter of l in the message.
func wantInput(arg string, x *tensor.Tensor, layout Layout, length string, b, l, d int) {
	tensor.Want(opMultiHead, arg, x)
	letters, want := [3]string{"B", length, "D"}, [3]int{b, l, d}
	if layout == SequenceFirst {
		letters[0], letters[1] = letters[1], letters[0]
		want[0], want[1] = want[1], want[0]
	}
	if tensor.CheckShape(arg, x, "", want[:]...) == nil {
		return
	}
	for a, n := range want {
		if n >= 0 {
			letters[a] += fmt.Sprint("=", n)
		}
	}
	panic(&tensor.ShapeError{Op: opMultiHead, Arg: arg, Got: x.Shape(), Want: fmt.Sprint(letters)})
}
