package attn

import (
	"fmt"
	"math/rand/v2"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// EncoderConfig describes an EncoderLayer. Width and Heads are required; the zero
// value of all else is the layer of Vaswani et al.
type EncoderConfig struct {
	// Name is what Options.Observe and Options.Inspect receive.
	Name string
	// Width is D, the width of the model.
	Width int
	// Heads is H, a divisor of Width.
	Heads int
	// Hidden is the width within the feed-forward network. 0 means 4·Width.
	Hidden int
	// Dropout is the probability with which, in training, weights of attention,
	// activations of the feed-forward network and outputs of both are dropped.
	Dropout float32
	// NormFirst normalises in front of each sublayer instead of behind the sum.
	NormFirst bool
	// Activation is that of the feed-forward network. Nil means tensor.ReLU.
	Activation func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor
}

// EncoderLayer is self-attention and a feed-forward network, each with a residual
// connection and a normalisation:
//
//	x ← Norm1(x + dropout(Self(x, x, x)))
//	x ← Norm2(x + dropout(FF(x)))
//
// or, with NormFirst,
//
//	x ← x + dropout(Self(h, h, h)),  h = Norm1(x)
//	x ← x + dropout(FF(Norm2(x)))
//
// It is what PyTorch calls TransformerEncoderLayer.
//
// Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.1; with
// NormFirst Xiong et al., "On Layer Normalization in the Transformer
// Architecture", 2020, https://arxiv.org/abs/2002.04745.
type EncoderLayer struct {
	Self         *MultiHead
	FF           *nn.FeedForward
	Norm1, Norm2 *nn.LayerNorm

	config EncoderConfig
}

// NewEncoderLayer returns a layer with freshly drawn parameters; all maps have a
// bias. It returns an error if the configuration contradicts itself.
func NewEncoderLayer(c EncoderConfig, rng *rand.Rand) (*EncoderLayer, error) {
	if c.Hidden < 0 {
		return nil, fmt.Errorf("attn: NewEncoderLayer: hidden width %d is negative", c.Hidden)
	}
	self, err := NewMultiHead(MultiHeadConfig{
		Name: c.Name, Width: c.Width, Heads: c.Heads, Bias: AllProjections, Dropout: c.Dropout,
	}, rng)
	if err != nil {
		return nil, err
	}
	if c.Hidden == 0 {
		c.Hidden = 4 * c.Width
	}
	if c.Activation == nil {
		c.Activation = tensor.ReLU
	}
	ff := nn.NewFeedForward(c.Width, c.Hidden, c.Dropout, rng)
	ff.Activation = c.Activation
	return &EncoderLayer{
		Self: self, FF: ff, Norm1: nn.NewLayerNorm(c.Width), Norm2: nn.NewLayerNorm(c.Width), config: c,
	}, nil
}

// Config returns the configuration with every default filled in.
func (l *EncoderLayer) Config() EncoderConfig { return l.config }

// Params returns the parameters of "norm1", "self", "norm2" and "ff".
func (l *EncoderLayer) Params() nn.Params {
	return nn.Join(nn.Named{Name: "norm1", Module: l.Norm1}, nn.Named{Name: "self", Module: l.Self},
		nn.Named{Name: "norm2", Module: l.Norm2}, nn.Named{Name: "ff", Module: l.FF})
}

// TorchState returns the table of torch.nn.TransformerEncoderLayer. Its
// configuration, among it norm_first and activation, is not in a file.
func (l *EncoderLayer) TorchState() (nn.StateDict, error) {
	return nn.JoinTorch(
		nn.Named{Name: "self_attn", Module: l.Self},
		nn.Named{Name: "linear1", Module: l.FF.In},
		nn.Named{Name: "linear2", Module: l.FF.Out},
		nn.Named{Name: "norm1", Module: l.Norm1},
		nn.Named{Name: "norm2", Module: l.Norm2},
	)
}

// Forward applies the layer to a batch of sequences. Options are those of the
// attention; without a dropout of their own the layer's holds.
//
// Shapes:
//
//	x        [B L Width]
//	out      [B L Width]
//	weights  [B H L L]
//	log-sum-exp  [B H L]
//
// Gradients flow to x, the parameters, Options.Bias and Options.Gates.
//
// Forward panics as Attend does.
func (l *EncoderLayer) Forward(t *tensor.Tape, x *tensor.Tensor, o Options) Output {
	p := l.config.Dropout
	if l.config.NormFirst {
		h := l.Norm1.Forward(t, x)
		y := l.Self.Forward(t, h, h, h, o)
		x = tensor.AddDropout(t, x, y.Out, p)
		x = tensor.AddDropout(t, x, l.FF.Forward(t, l.Norm2.Forward(t, x)), p)
		y.Out = x
		return y
	}
	y := l.Self.Forward(t, x, x, x, o)
	x = l.Norm1.Forward(t, tensor.AddDropout(t, x, y.Out, p))
	y.Out = l.Norm2.Forward(t, tensor.AddDropout(t, x, l.FF.Forward(t, x), p))
	return y
}
