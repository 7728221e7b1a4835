package attn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

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

// Infer as an input width means the width of the first batch.
const Infer = -1

// MultiHeadConfig describes a MultiHead. Width and Heads are required; the zero
// value of all else is the layer of Vaswani et al.
type MultiHeadConfig struct {
	// Name is what Options.Observe and Options.Inspect receive.
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
	// QueryNorm and KeyNorm normalise each query and key of a head after the
	// projection, as nn.RMSNorm does (QK-norm); their parameters are shared by the
	// heads and become the layer's. Nil means none.
	QueryNorm, KeyNorm nn.Norm
	// NormProjections lets QueryNorm and KeyNorm normalise whole projections, vectors of
	// H·HeadSize and G·HeadSize elements, as OLMo 2 does, and not each head. Such heads depend
	// on each other: Keep refuses the layer.
	NormProjections bool
	// Position changes queries and keys by their positions after that, as RoPE does.
	// Nil means none.
	Position Position
	// Sinks gives each head a learnt score of a key without a value, to which every
	// query attends. They start at 0.
	Sinks bool
	// BiasKV gives the layer a learnt key and value, and ZeroKV a key and value of zeros,
	// to which every query of every sequence attends besides, whatever masks hide: the
	// add_bias_kv and add_zero_attn of torch.nn.MultiheadAttention, also known as null
	// keys. They are added after projection, KeyNorm and Position. Only the soft-cap
	// changes their scores: biases and other modifications go by the places of keys, which
	// they have not. Weights and observers are of the other keys, so that rows sum to less
	// than 1, as with Sinks. A layer with one of them has no Cache.
	BiasKV, ZeroKV bool
	// Dropout is the probability with which a weight is dropped in training.
	Dropout float32
	// Layout is the order of axes of inputs and output.
	Layout Layout
	// Init makes the four maps, and the key and value of BiasKV, as matrices of one row. Nil
	// draws matrices by nn.Xavier, and biases start at 0, as in
	// torch.nn.MultiheadAttention; nn.NewLinear draws both, as torch.nn.Linear does. If a
	// map has no weight, the caller sets the maps before using them.
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
	if c.Position != nil && c.Heads > 0 {
		if err := tensor.Catch(func() { panicAs("attn: NewMultiHead", "position", c.Position.Check(c.HeadSize)) }); err != nil {
			return err
		}
	}
	if !validDropout(c.Dropout) {
		return fail("dropout %v is outside [0, 1)", c.Dropout)
	}
	if other := c.Bias &^ AllProjections; other != 0 {
		return fail("bias %d names maps besides Query, Key, Value and Out", c.Bias)
	}
	if c.Layout > SequenceFirst {
		return fail("layout %d is neither BatchFirst nor SequenceFirst", c.Layout)
	}
	if n := c.weights(); n > mostWeights {
		return fail("%.3g weights, want at most %.3g", n, float64(mostWeights))
	}
	return nil
}

// mostWeights is what a layer cannot exceed, 4 TiB: larger numbers overflow.
const mostWeights = min(1<<40, math.MaxInt/4)

// weights returns the number of elements of the four matrices, without those whose
// width is not known. It may be larger than an int.
func (c *MultiHeadConfig) weights() float64 {
	product := func(heads, size, width int) float64 {
		return float64(float64(heads) * float64(size) * float64(max(width, 0)))
	}
	return product(c.Heads, c.HeadSize, c.QueryWidth) + product(c.KVHeads, c.HeadSize, c.KeyWidth) +
		product(c.KVHeads, c.ValueSize, c.ValueWidth) + product(c.Heads, c.ValueSize, c.OutWidth)
}

// NewMultiHead returns a layer with freshly drawn parameters. It returns an
// error if the configuration contradicts itself, or if there is no rng to draw with
// and no Init that does without.
func NewMultiHead(c MultiHeadConfig, rng *rand.Rand) (*MultiHead, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Init == nil {
		if c.Init = xavier; rng == nil {
			return nil, fmt.Errorf("attn: NewMultiHead: rng is nil, want a *rand.Rand")
		}
	}
	m := &MultiHead{config: c, rng: rng, given: [3]int{c.QueryWidth, c.KeyWidth, c.ValueWidth}}
	if err := tensor.Catch(func() {
		m.Out = m.linear(c.Heads*c.ValueSize, c.OutWidth, Out)
		if c.Sinks {
			m.Sinks = tensor.Zeros(c.Heads).Param()
		}
		if c.BiasKV {
			m.BiasK, m.BiasV = m.drawVector(c.KVHeads*c.HeadSize), m.drawVector(c.KVHeads*c.ValueSize)
		}
		if !slices.Contains(m.given[:], Infer) {
			m.Build(c.QueryWidth, c.KeyWidth, c.ValueWidth)
			return
		}
		for i, f := range m.inputs() {
			m.waiting[i] = &nn.Linear{Weight: tensor.Uninitialized(f.out, *f.width)}
			if c.Bias&f.which != 0 {
				m.waiting[i].Bias = tensor.Uninitialized(f.out)
			}
		}
	}); err != nil {
		return nil, err
	}
	return m, nil
}

// xavier makes a map whose matrix is drawn by nn.Xavier, with a bias of 0.
func xavier(in, out int, bias bool, rng *rand.Rand) *nn.Linear {
	return &nn.Linear{Weight: nn.Xavier(rng, out, in), Bias: nn.ZeroLinear(0, out, bias, nil).Bias}
}

// input says what maps one of the inputs.
type input struct {
	width *int // in the configuration
	out   int
	which Projections
}

// inputs returns those of q, k and v.
func (m *MultiHead) inputs() [3]input {
	c := &m.config
	return [3]input{
		{&c.QueryWidth, c.Heads * c.HeadSize, Query},
		{&c.KeyWidth, c.KVHeads * c.HeadSize, Key},
		{&c.ValueWidth, c.KVHeads * c.ValueSize, Value},
	}
}

// Build makes the maps of q, k and v, unless they exist, with the given widths
// of inputs where the configuration says Infer. Forward calls it at the first
// batch; a caller that wants the parameters of such a layer earlier calls it first. It panics
// with a *tensor.ShapeError if a width that it resolves is not positive, or if there
// would be more weights than memory could hold.
func (m *MultiHead) Build(queryWidth, keyWidth, valueWidth int) {
	m.building.Lock()
	defer m.building.Unlock()
	if m.adopt(); m.Q != nil {
		return
	}
	widths := [3]int{queryWidth, keyWidth, valueWidth}
	for i, f := range m.inputs() {
		if widths[i] = max(widths[i], 0); *f.width != Infer {
			widths[i] = *f.width
		}
	}
	c := m.config
	c.QueryWidth, c.KeyWidth, c.ValueWidth = widths[0], widths[1], widths[2]
	if slices.Min(widths[:]) == 0 || c.weights() > mostWeights {
		got := []int{queryWidth, keyWidth, valueWidth}
		badShape("attn: Build", "layer", "input widths", got, "positive numbers that make at most %.3g weights", float64(mostWeights))
	}
	var maps [3]*nn.Linear
	for i, f := range m.inputs() {
		maps[i] = m.linear(widths[i], f.out, f.which)
	}
	m.use(widths, maps)
}

// adopt uses the maps that have waited for their widths if a file has given them theirs.
func (m *MultiHead) adopt() {
	var widths [3]int
	for i, l := range m.waiting {
		if l == nil || !l.Weight.Initialized() || l.Bias != nil && !l.Bias.Initialized() {
			return
		}
		widths[i] = l.Weight.Dim(1)
	}
	m.use(widths, m.waiting)
}

// use sets the maps of q, k and v, and their widths.
func (m *MultiHead) use(widths [3]int, maps [3]*nn.Linear) {
	for i, f := range m.inputs() {
		*f.width = widths[i]
	}
	m.Q, m.K, m.V = maps[0], maps[1], maps[2]
	m.joint = join(m.Q, m.K, m.V)
	m.waiting = [3]*nn.Linear{}
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
	biased := m.config.Bias&which != 0
	l := m.config.Init(in, out, biased, m.rng)
	if l == nil {
		badValue("attn: NewMultiHead", "result of Init", "nil", "a *nn.Linear")
	}
	if w := l.Weight; w != nil && !slices.Equal(w.Shape(), []int{out, in}) {
		badShape("attn: NewMultiHead", "result of Init", "", w.Shape(), "%v", []int{out, in})
	}
	if b := l.Bias; b != nil && (!biased || !slices.Equal(b.Shape(), []int{out})) {
		badShape("attn: NewMultiHead", "bias of Init", "", b.Shape(), "[%d], and none where Bias has none", out)
	}
	return l
}

// drawVector draws a vector of n elements, as [1 1 n].
func (m *MultiHead) drawVector(n int) *tensor.Tensor {
	if x := m.linear(n, 1, NoProjection).Weight; x != nil {
		return like(x, x.Data(), 1, 1, n)
	}
	return nil
}
