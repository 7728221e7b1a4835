package attn

import (
	"fmt"
	"math/rand/v2"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// EncoderConfig describes an EncoderLayer. Width and Heads are required; the defaults of the
// other fields give the layer of Vaswani et al.
type EncoderConfig struct {
	// Name is the name that Options.Observers and Options.Inspect receive.
	Name string
	// Width is D, the model width.
	Width int
	// Heads is H, a divisor of Width.
	Heads int
	// Hidden is the hidden width of the feed-forward network. 0 means 4·Width.
	Hidden int
	// Dropout is the probability of dropping, in training, attention weights, activations of the
	// feed-forward network and outputs of both sublayers.
	Dropout float32
	// NormFirst normalises the input of each sublayer (pre-norm) instead of the residual sum
	// (post-norm).
	NormFirst bool
	// Activation is the activation function of the feed-forward network. Nil means tensor.ReLU.
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
// PyTorch calls this layer TransformerEncoderLayer.
//
// Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.1. NormFirst: Xiong et
// al., "On Layer Normalization in the Transformer Architecture", 2020,
// https://arxiv.org/abs/2002.04745.
type EncoderLayer struct {
	Self         *MultiHead
	FF           *nn.FeedForward
	Norm1, Norm2 *nn.LayerNorm

	config EncoderConfig
}

// NewEncoderLayer returns a layer with random initial parameters; all linear maps have a bias. It
// returns an error if the configuration is invalid.
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

// Config returns the configuration with defaults filled in.
func (l *EncoderLayer) Config() EncoderConfig { return l.config }

// Params returns the parameters of "norm1", "self", "norm2" and "ff".
func (l *EncoderLayer) Params() nn.Params {
	return nn.Join(nn.Named{Name: "norm1", Module: l.Norm1}, nn.Named{Name: "self", Module: l.Self},
		nn.Named{Name: "norm2", Module: l.Norm2}, nn.Named{Name: "ff", Module: l.FF})
}

// TorchState returns the state dict mapping of torch.nn.TransformerEncoderLayer. A PyTorch file
// does not contain the layer's configuration, such as norm_first and activation.
func (l *EncoderLayer) TorchState() (nn.StateDict, error) {
	return nn.JoinTorch(
		nn.Named{Name: "self_attn", Module: l.Self},
		nn.Named{Name: "linear1", Module: l.FF.In},
		nn.Named{Name: "linear2", Module: l.FF.Out},
		nn.Named{Name: "norm1", Module: l.Norm1},
		nn.Named{Name: "norm2", Module: l.Norm2},
	)
}

// Forward applies the layer to a batch of sequences. The options apply to the attention; if they
// have no dropout, the layer's dropout is used.
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
// Forward panics under the same conditions as Attend.
func (l *EncoderLayer) Forward(t *tensor.Tape, x *tensor.Tensor, o Options) Output {
	p := l.config.Dropout
	if l.config.NormFirst {
		h := l.Norm1.Forward(t, x)
		y := l.Self.Forward(t, h, h, h, o)
		x, h = nn.AddNorm(t, l.Norm2, x, y.Out, p)
		y.Out = tensor.AddDropout(t, x, l.FF.Forward(t, h), p)
		return y
	}
	y := l.Self.Forward(t, x, x, x, o)
	_, x = nn.AddNorm(t, l.Norm1, x, y.Out, p)
	_, y.Out = nn.AddNorm(t, l.Norm2, x, l.FF.Forward(t, x), p)
	return y
}
