package attn

import (
	"fmt"
	"math"

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
