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
	Gate // only in layers with an OutputGate

	NoProjection   Projections = 0
	AllProjections             = Query | Key | Value | Out | Gate
)

// Layout is the order of the axes of a MultiHead's inputs and output.
type Layout uint8

const (
	// BatchFirst is [B L D].
	BatchFirst Layout = iota
	// SequenceFirst is [L B D].
	SequenceFirst
)

// Infer as an input width means that the first batch sets the width.
const Infer = -1

// MultiHeadConfig describes a MultiHead. Width and Heads are required; the defaults of the other
// fields give the layer of Vaswani et al.
type MultiHeadConfig struct {
	// Name is the name that Options.Observers and Options.Inspect receive.
	Name string
	// Width is D, the model width.
	Width int
	// Heads is H, the number of query heads, or NoHeads. Width must be divisible by Heads unless
	// HeadSize is set.
	Heads int
	// KVHeads is G, the number of key and value heads. Heads must be divisible by it. 0 means
	// Heads. Fewer than Heads is grouped-query attention (GQA), 1 is multi-query attention (MQA).
	KVHeads int
	// QueryWidth, KeyWidth and ValueWidth are the widths of the three inputs. 0 means Width;
	// Infer means that the first batch sets the width.
	QueryWidth, KeyWidth, ValueWidth int
	// HeadSize is E, the size of a head of q and k. 0 means Width/Heads.
	HeadSize int
	// ValueSize is V, the size of a head of v. 0 means HeadSize.
	ValueSize int
	// OutWidth is the width of the output. 0 means Width.
	OutWidth int
	// Bias is the set of maps that have a bias.
	Bias Projections
	// Score compares queries with keys [B H L E] within each head. All heads share its
	// parameters, which become parameters of the layer. Nil means ScaledDot.
	Score Score
	// QueryNorm, KeyNorm and ValueNorm normalise each query, key and value of a head after the
	// projection (QK-norm), for example nn.RMSNorm. All heads share their parameters, which become
	// parameters of the layer. Nil means no norm.
	QueryNorm, KeyNorm, ValueNorm nn.Norm
	// NormProjections applies the norms to whole projections, vectors of H·HeadSize, G·HeadSize
	// and G·ValueSize elements, as in OLMo 2, instead of to each head. The heads then depend on
	// each other, so Keep returns an error.
	NormProjections bool
	// Position changes queries and keys by their positions, after the norms, for example RoPE.
	// Nil means no position embedding.
	Position Position
	// Sinks gives each head a trained score for a virtual key without a value, which every query
	// attends to. The scores start at 0.
	Sinks bool
	// BiasKV adds a trained key and value, and ZeroKV a key and value of zeros. Every query of
	// every sequence attends to these null keys, whatever the masks hide. They are add_bias_kv
	// and add_zero_attn of torch.nn.MultiheadAttention. They are added after projection, KeyNorm
	// and Position. Only the soft-cap changes their scores: biases and other score changes depend
	// on key positions, which null keys do not have. Weights and observers cover the other keys
	// only, so rows sum to less than 1, as with Sinks. A layer with BiasKV or ZeroKV has no
	// Cache.
	BiasKV, ZeroKV bool
	// OutputGate multiplies the outputs of heads by gates that each query computes. The zero value means none.
	OutputGate OutputGate
	// Dropout is the probability of dropping a weight in training.
	Dropout float32
	// Format is the format of the products of attention, see Options.Format; 0 means the tape's. The maps have that of the
	// tape or, if they are packed, of their weights.
	Format tensor.Format
	// Layout is the order of the axes of inputs and output.
	Layout Layout
	// Init creates the maps, and the key and value of BiasKV as matrices with one row. Nil
	// draws matrices with nn.Xavier and sets biases to 0, as torch.nn.MultiheadAttention does.
	// nn.NewLinear draws both, as torch.nn.Linear does. If Init returns a map without a weight,
	// the caller sets the maps before using them.
	Init nn.Init
}

// validate fills in defaults and checks the configuration.
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
		c.HeadSize = c.Width // any size will do
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
	if err := c.OutputGate.validate(c); err != nil {
		return err
	}
	if !validDropout(c.Dropout) {
		return fail("dropout %v is outside [0, 1)", c.Dropout)
	}
	if p := c.Format; p != 0 && !validFormat(p) {
		return fail("format %v, want %s", p, wantFormat)
	}
	if other := c.Bias &^ AllProjections; other != 0 {
		return fail("bias %d has unknown bits, want a combination of Query, Key, Value, Out and Gate", c.Bias)
	}
	if c.Layout > SequenceFirst {
		return fail("layout %d is neither BatchFirst nor SequenceFirst", c.Layout)
	}
	if n := c.weights(); n > mostWeights {
		return fail("%.3g weights, want at most %.3g", n, float64(mostWeights))
	}
	return nil
}

// mostWeights is the maximum number of weights of a layer (4 TiB in float32). Larger numbers
// would overflow.
const mostWeights = min(1<<40, math.MaxInt/4)

// weights returns the number of elements of the matrices, except matrices of unknown width.
// It may exceed the range of int.
func (c *MultiHeadConfig) weights() float64 {
	product := func(heads, size, width int) float64 {
		return float64(float64(heads) * float64(size) * float64(max(width, 0)))
	}
	return product(c.Heads, c.HeadSize, c.QueryWidth) + product(c.KVHeads, c.HeadSize, c.KeyWidth) +
		product(c.KVHeads, c.ValueSize, c.ValueWidth) + product(c.Heads, c.ValueSize, c.OutWidth) +
		product(c.Heads, c.OutputGate.Size, c.QueryWidth)
}

// NewMultiHead returns a layer with random initial parameters. It returns an error if the
// configuration is invalid, or if rng is nil and Init is nil or uses it.
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
		if c.OutputGate.Activation != nil {
			m.Gate = m.linear(c.QueryWidth, c.Heads*c.OutputGate.Size, Gate)
		}
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

// xavier returns a map with a matrix drawn by nn.Xavier and a bias of 0.
func xavier(in, out int, bias bool, rng *rand.Rand) *nn.Linear {
	return &nn.Linear{Weight: nn.Xavier(rng, out, in), Bias: nn.ZeroLinear(0, out, bias, nil).Bias}
}

// input describes the map of one input.
type input struct {
	width *int // in the configuration
	out   int
	which Projections
}

// inputs describes the maps of q, k and v.
func (m *MultiHead) inputs() [3]input {
	c := &m.config
	return [3]input{
		{&c.QueryWidth, c.Heads * c.HeadSize, Query},
		{&c.KeyWidth, c.KVHeads * c.HeadSize, Key},
		{&c.ValueWidth, c.KVHeads * c.ValueSize, Value},
	}
}

// Build creates the maps of q, k and v, unless they exist; the arguments replace the widths that
// are Infer. Forward calls Build with the first batch; call it earlier to access the parameters
// before. Build panics with a *tensor.ShapeError if an inferred width is not positive, or if the
// layer would have too many weights.
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

// adopt uses the waiting maps if a loaded file has set their widths.
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

// use sets the maps of q, k and v and their widths.
func (m *MultiHead) use(widths [3]int, maps [3]*nn.Linear) {
	for i, f := range m.inputs() {
		*f.width = widths[i]
	}
	m.Q, m.K, m.V = maps[0], maps[1], maps[2]
	m.joint = join(m.Q, m.K, m.V)
	m.waiting = [3]*nn.Linear{}
}

// joint is the maps of q, k and v combined into one map.
type joint struct {
	all     *nn.Linear
	q, k, v nn.Linear
}

// join moves the parameters of the maps into one map. It returns nil if their inputs or the
// presence of a bias differ, or if a map has no trainable weight.
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

// whole returns the combined map of q, k and v. It returns nil if there is none, or if the caller
// has since replaced one of the fields.
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

// drawVector returns a random vector of n elements as [1 1 n].
func (m *MultiHead) drawVector(n int) *tensor.Tensor {
	if x := m.linear(n, 1, NoProjection).Weight; x != nil {
		return like(x, x.Data(), 1, 1, n)
	}
	return nil
}
