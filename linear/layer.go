package linear

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// LayerConfig describes a Layer. Width and Heads are required; the other fields add what models have around linear
// attention. Gated DeltaNet, for example, has a Decay, Beta 1, the Feature Unit, a convolution of 4, an OutNorm and
// tensor.SiLU as OutGate.
type LayerConfig struct {
	// Name is the name that observers receive.
	Name string
	// Width is D, the width of the model.
	Width int
	// Heads is G, the number of heads of values, each of which has a state. Width must be divisible by it unless
	// KeySize and ValueSize are set.
	Heads int
	// KeyHeads is the number of heads of queries and of keys. Heads must be divisible by it. 0 means Heads.
	KeyHeads int
	// KeySize is E, the size of a query and a key; ValueSize is V, that of a value. 0 means Width/Heads.
	KeySize, ValueSize int
	// Decay computes the decays; nil means none.
	Decay Decay
	// Beta is the largest strength of the delta rule: that of a token is Beta·σ(x·W_beta). Usual are 1, and 2, which lets
	// a token negate what its key reads. 0 means that tokens only add.
	Beta float32
	// Feature and Normalize are those of Options.
	Feature   Feature
	Normalize bool
	// Conv is the width of a causal convolution with SiLU that queries, keys and values pass after their maps; 0 for none.
	Conv int
	// OutNorm normalises the output [V] of each head, for example nn.RMSNorm. All heads share its parameters. Nil means none.
	OutNorm nn.Norm
	// OutGate is the activation of the gate, which has a separate map and multiplies the outputs before the last map, for
	// example tensor.SiLU. Nil means no gate.
	OutGate func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor
	// Bias is whether the maps have a bias.
	Bias bool
	// Layout is the order of the axes of inputs and output.
	Layout attn.Layout
	// Init creates the maps; nil means nn.NewLinear.
	Init nn.Init
}

// Decay computes the decays of a Layer from its inputs. Programs may have their own.
type Decay interface {
	nn.Module
	// Decays returns the logarithms of the decays of tokens x [B L Width]: [B L G], [B L G E], or [G] if they are constant.
	Decays(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor
}

// Layer is linear attention with its maps: the counterpart of attn.MultiHead.
//
//	q, k, v = conv(x·W_q), conv(x·W_k), conv(x·W_v)
//	head_h  = Attend(q_h, k_h, v_h, decays, betas)
//	out     = (concat(norm(head_1) … norm(head_G)) ⊙ gate(x·W_gate))·W_out
//
// Source: Yang et al., "Gated Delta Networks", 2024, https://arxiv.org/abs/2412.06464, section 3.4.
type Layer struct {
	// Q, K and V are the maps of the inputs, [heads·size Width]; heads are consecutive.
	Q, K, V *nn.Linear
	// Conv convolves queries, keys and values, whose channels follow each other in this order; nil without Conv.
	Conv *nn.CausalConv
	// Beta [G Width] is the map of strengths, nil without the delta rule; Gate [G·V Width] that of the gate, or nil.
	Beta, Gate *nn.Linear
	Out        *nn.Linear // [Width G·V]

	config LayerConfig
}

// NewLayer returns a layer with random initial parameters, or an error if the configuration is invalid or rng is nil. With
// an Init, rng may be nil, and the weight of the convolution is then for the caller to set.
func NewLayer(c LayerConfig, rng *rand.Rand) (*Layer, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("linear: NewLayer: %w", err)
	}
	if c.Init == nil {
		if c.Init = nn.NewLinear; rng == nil {
			return nil, fmt.Errorf("linear: NewLayer: rng is nil, want a *rand.Rand")
		}
	}
	l := &Layer{config: c}
	keys, values := c.KeyHeads*c.KeySize, c.Heads*c.ValueSize
	return l, tensor.Catch(func() {
		l.Q, l.K, l.V = c.Init(c.Width, keys, c.Bias, rng), c.Init(c.Width, keys, c.Bias, rng), c.Init(c.Width, values, c.Bias, rng)
		if c.Conv > 0 {
			if l.Conv = new(nn.CausalConv); rng != nil {
				l.Conv = nn.NewCausalConv(2*keys+values, c.Conv, c.Bias, rng)
			}
			l.Conv.Activation = tensor.SiLU
		}
		if c.Beta > 0 {
			l.Beta = c.Init(c.Width, c.Heads, c.Bias, rng)
		}
		if c.OutGate != nil {
			l.Gate = c.Init(c.Width, values, c.Bias, rng)
		}
		l.Out = c.Init(values, c.Width, c.Bias, rng)
	})
}

// mostWeights is the maximum number of weights of a layer, as of an attn.MultiHead.
const mostWeights = 1 << 40

// validate fills in defaults and checks the configuration.
func (c *LayerConfig) validate() error {
	if c.Width <= 0 || c.Heads <= 0 {
		return fmt.Errorf("width %d and heads %d must be positive", c.Width, c.Heads)
	}
	if (c.KeySize == 0 || c.ValueSize == 0) && c.Width%c.Heads != 0 {
		return fmt.Errorf("width %d is not divisible by %d heads, want KeySize and ValueSize", c.Width, c.Heads)
	}
	c.KeyHeads = cmp.Or(c.KeyHeads, c.Heads)
	c.KeySize, c.ValueSize = cmp.Or(c.KeySize, c.Width/c.Heads), cmp.Or(c.ValueSize, c.Width/c.Heads)
	switch b := float64(c.Beta); {
	case c.KeyHeads < 0 || c.Heads%c.KeyHeads != 0:
		return fmt.Errorf("%d heads are not divisible by %d heads of keys", c.Heads, c.KeyHeads)
	case c.KeySize < 0 || c.ValueSize < 0 || c.Conv < 0:
		return fmt.Errorf("key size %d, value size %d or convolution %d is negative", c.KeySize, c.ValueSize, c.Conv)
	case !(b >= 0) || math.IsInf(b, 0):
		return fmt.Errorf("beta %v, want 0 or a positive finite number", c.Beta)
	case c.Layout > attn.SequenceFirst:
		return fmt.Errorf("layout %d is neither BatchFirst nor SequenceFirst", c.Layout)
	case c.Normalize && (c.Feature == nil || c.Beta > 0):
		return fmt.Errorf("normalize without a feature, or with beta, want a Feature without negative numbers, and no Beta")
	}
	keys, values := float64(c.KeyHeads)*float64(c.KeySize), float64(c.Heads)*float64(c.ValueSize)
	if n := float64(float64(c.Width)*2*keys) + float64(float64(c.Width)*3*values); n > mostWeights {
		return fmt.Errorf("%.3g weights, want at most %.3g", n, float64(mostWeights))
	}
	return nil
}

// Config returns the configuration with defaults filled in.
func (l *Layer) Config() LayerConfig { return l.config }

// Params returns the parameters "q.weight", "k.weight", "v.weight", those of "conv", "decay", "beta", "norm" and "gate" as
// far as the layer has them, and "out.weight"; with a Bias, also their biases.
func (l *Layer) Params() nn.Params {
	parts := []nn.Named{{Name: "q", Module: l.Q}, {Name: "k", Module: l.K}, {Name: "v", Module: l.V}}
	if l.Conv != nil {
		parts = append(parts, nn.Named{Name: "conv", Module: l.Conv})
	}
	if l.config.Decay != nil {
		parts = append(parts, nn.Named{Name: "decay", Module: l.config.Decay})
	}
	if l.Beta != nil {
		parts = append(parts, nn.Named{Name: "beta", Module: l.Beta})
	}
	if l.config.OutNorm != nil {
		parts = append(parts, nn.Named{Name: "norm", Module: l.config.OutNorm})
	}
	if l.Gate != nil {
		parts = append(parts, nn.Named{Name: "gate", Module: l.Gate})
	}
	return nn.Join(append(parts, nn.Named{Name: "out", Module: l.Out})...)
}

// Heads describes the heads of values.
func (l *Layer) Heads() attn.LayerHeads {
	c := &l.config
	vectors := 2 * (c.KeyHeads*c.KeySize + c.Heads) // with a decay and a strength for each head
	return attn.LayerHeads{Name: c.Name, Heads: c.Heads, KeyHeads: c.KeyHeads, Group: c.Heads / c.KeyHeads, Signed: true, Out: l.Out, Vectors: vectors}
}

// Keep returns a smaller layer that has only the given heads, with copies of their parameters, as attn.MultiHead.Keep does.
// heads is in ascending order, and not empty. Up to rounding, the new layer has the same output as l with gates of 0 for all
// other heads. Heads that share keys are kept or removed together. OutNorm is shared with l.
//
// Keep returns an error if heads are not such heads, if a map stores packed weights, or if a Decay that a program defines
// has no method Keep(heads []int) Decay.
func (l *Layer) Keep(heads []int) (*Layer, error) {
	c := l.config
	groups, err := l.Heads().Groups(heads)
	if err == nil && len(heads) == 0 {
		err = fmt.Errorf("no heads of layer %q, want at least one", c.Name)
	}
	maps := []*nn.Linear{l.Q, l.K, l.V, l.Beta, l.Gate, l.Out}
	if slices.ContainsFunc(maps, func(m *nn.Linear) bool { return m != nil && m.Weight == nil }) {
		err = fmt.Errorf("layer %q has a map whose weights are packed for inference, want parameters; models.Options{Trainable: true} loads them", c.Name)
	}
	decay, ok := c.Decay.(interface{ Keep(heads []int) Decay })
	if c.Decay != nil && !ok {
		err = fmt.Errorf("layer %q has a decay of type %T, want one with a method Keep(heads []int) linear.Decay", c.Name, c.Decay)
	}
	if err != nil {
		return nil, fmt.Errorf("linear: Keep: %w", err)
	}
	if ok {
		c.Decay = decay.Keep(heads)
	}
	kept := &Layer{
		Q: l.Q.KeepOutputs(groups, c.KeySize), K: l.K.KeepOutputs(groups, c.KeySize), V: l.V.KeepOutputs(heads, c.ValueSize),
		Out: l.Out.KeepInputs(heads, c.ValueSize),
	}
	if l.Conv != nil {
		keys := c.KeyHeads * c.KeySize
		kept.Conv = l.Conv.KeepChannels(slices.Concat(
			nn.BlockElements(0, groups, c.KeySize), nn.BlockElements(keys, groups, c.KeySize), nn.BlockElements(2*keys, heads, c.ValueSize),
		))
	}
	if l.Beta != nil {
		kept.Beta = l.Beta.KeepOutputs(heads, 1)
	}
	if l.Gate != nil {
		kept.Gate = l.Gate.KeepOutputs(heads, c.ValueSize)
	}
	c.Heads, c.KeyHeads = len(heads), len(groups)
	kept.config = c
	return kept, nil
}

const opLayer = "linear: Layer"

// Forward computes the outputs of tokens.
//
// Shapes: x and Output.Out [B L Width], or [L B Width] in layout SequenceFirst; Output.State [B G E V]. Options.Gates are [G] or [B G], and multiply what Out reads of
// a head: they follow OutNorm and OutGate, as Parts.Outputs do.
//
// Options.Decay, Beta, Feature, Normalize and State must be zero: the layer has its own, and Extend continues a sequence.
// Gradients flow to x, the parameters and Options.Gates.
//
// Forward panics with a *tensor.ShapeError if shapes do not fit, and with a *tensor.ValueError if x is nil or an option is
// out of range. Several goroutines may call it at the same time, each with a separate tape.
func (l *Layer) Forward(t *tensor.Tape, x *tensor.Tensor, o Options) Output {
	y, _ := l.forward(t, x, o, nil)
	return y
}

// forward is Forward, which continues s if it is not nil. It then returns the inputs of the convolution to keep.
func (l *Layer) forward(t *tensor.Tape, x *tensor.Tensor, o Options, s *LayerState) (y Output, last *tensor.Tensor) {
	c := &l.config
	tensor.Want(opLayer, "x", x)
	axes := "B L"
	if c.Layout == attn.SequenceFirst {
		axes = "L B"
	}
	if x.Rank() != 3 || x.Dim(2) != c.Width {
		badShape(opLayer, "x", x, "[%s Width=%d]", axes, c.Width)
	}
	if o.Decay != nil || o.Beta != nil || o.Feature != nil || o.Normalize || o.State != nil {
		badValue(opLayer, "decay, beta, feature, normalize or state", "given", "none: they are the layer's")
	}
	if c.Layout == attn.SequenceFirst {
		x = tensor.Transpose(t, x, 1, 0, 2)
	}
	x = o.withoutPadding(t, x)
	gates, inspect, edit := o.Gates, o.Inspect, o.Edits.Outputs
	o.Edits.Outputs = nil
	var parts attn.Parts
	if o.Gates = nil; inspect != nil {
		o.Inspect = func(_ string, p attn.Parts) { parts = p }
	}
	q, k, v, last := l.project(t, x, &o, s)
	o.Feature, o.Normalize, o.Layer = c.Feature, c.Normalize, cmp.Or(o.Layer, c.Name)
	if c.Decay != nil {
		o.Decay = c.Decay.Decays(t, x)
		switch o.Decay.Rank() {
		case 3:
			o.Decay = tensor.Transpose(t, o.Decay, 0, 2, 1)
		case 4:
			o.Decay = tensor.Transpose(t, o.Decay, 0, 2, 1, 3)
		}
	}
	if l.Beta != nil {
		o.Beta = tensor.Transpose(t, tensor.Sigmoid(t, l.Beta.Forward(t, x)), 0, 2, 1)
		if c.Beta != 1 {
			o.Beta = tensor.Scale(t, o.Beta, c.Beta)
		}
	}
	if s != nil {
		y = s.heads.Attend(t, q, k, v, o)
	} else {
		y = Attend(t, q, k, v, o)
	}
	heads := y.Out
	if c.OutNorm != nil {
		heads = c.OutNorm.Forward(t, heads)
	}
	out := o.withoutPadding(t, joinHeads(t, heads))
	if l.Gate != nil {
		out = tensor.Mul(t, out, c.OutGate(t, l.Gate.Forward(t, x)))
	}
	if edit != nil {
		out = joinHeads(t, edited(t, opLayer, edit, splitHeads(t, out, c.Heads)))
	}
	if inspect != nil {
		all := out
		parts.Outputs = func() *tensor.Tensor { return splitHeads(nil, all, c.Heads) }
		inspect(o.Layer, parts)
	}
	if gates != nil {
		out = joinHeads(t, attn.GateHeads(t, splitHeads(t, out, c.Heads), gates))
	}
	if y.Out = l.Out.Forward(t, out); c.Layout == attn.SequenceFirst {
		y.Out = tensor.Transpose(t, y.Out, 1, 0, 2)
	}
	return y, last
}

// splitHeads returns heads side by side [B L H·E] as [B H L E].
func splitHeads(t *tensor.Tape, x *tensor.Tensor, heads int) *tensor.Tensor {
	return tensor.Transpose(t, tensor.Reshape(t, x, x.Dim(0), x.Dim(1), heads, x.Dim(2)/heads), 0, 2, 1, 3)
}

// joinHeads is the inverse of splitHeads.
func joinHeads(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.Reshape(t, tensor.Transpose(t, x, 0, 2, 1, 3), x.Dim(0), x.Dim(2), x.Dim(1)*x.Dim(3))
}

// project returns the heads of queries, keys and values, and the last inputs of the convolution.
func (l *Layer) project(t *tensor.Tape, x *tensor.Tensor, o *Options, s *LayerState) (q, k, v, last *tensor.Tensor) {
	c := &l.config
	keys, values := c.KeyHeads*c.KeySize, c.Heads*c.ValueSize
	all := nn.Linears(t, x, l.Q, l.K, l.V)
	if l.Conv != nil {
		ends := o.Documents
		if o.Lens != nil && ends == nil {
			for _, n := range o.Lens {
				ends = append(ends, []int{n})
			}
		}
		var first, y *tensor.Tensor
		if s != nil {
			first = s.inputs
		}
		y, last = l.Conv.Forward(t, tensor.Concat(t, 2, all...), first, ends)
		at := 0
		for i, n := range []int{keys, keys, values} {
			all[i] = tensor.Slice(t, y, 2, at, at+n)
			at += n
		}
	}
	return splitHeads(t, all[0], c.KeyHeads), splitHeads(t, all[1], c.KeyHeads), splitHeads(t, all[2], c.Heads), last
}

// LayerState is what the tokens of some sequences have left in a Layer: its State and the last inputs of its
// convolution.
type LayerState struct {
	heads  *State
	inputs *tensor.Tensor // [B Conv−1 C]; nil without a convolution
}

// NewState returns the state before the first token of batch sequences.
func (l *Layer) NewState(batch int) (*LayerState, error) {
	c := &l.config
	size := c.KeySize
	if c.Feature != nil { // which may change the size
		if err := tensor.Catch(func() { size = c.Feature(nil, tensor.Zeros(1, 1, 1, c.KeySize)).Dim(3) }); err != nil {
			return nil, err
		}
	}
	heads, err := NewState(StateConfig{
		Batch: batch, Heads: c.Heads, KeySize: size, ValueSize: c.ValueSize, Normalize: c.Normalize, Exp: relative(c.Feature, c.Normalize),
	})
	if err != nil {
		return nil, err
	}
	return NewLayerState(batch, l.Conv, heads), nil
}

// NewLayerState returns the state before the first token of batch sequences for a layer that a program defines: that of a
// convolution and of the heads behind it. Either may be nil. The program continues both, and then calls Read.
func NewLayerState(batch int, conv *nn.CausalConv, heads *State) *LayerState {
	s := &LayerState{heads: heads}
	if heads == nil {
		s.heads = &State{config: StateConfig{Batch: batch}, seqs: make([]sequence, batch)} // which counts tokens
	}
	if conv != nil {
		s.inputs = tensor.Zeros(batch, conv.Weight.Dim(0)-1, conv.Weight.Dim(2))
	}
	return s
}

// Inputs returns the last inputs of the convolution [B Conv−1 C], from which it continues; nil without one.
func (s *LayerState) Inputs() *tensor.Tensor { return s.inputs }

// Read keeps what a convolution returned as its last inputs after the next tokens of each sequence: l, or lens, if they are
// not nil.
func (s *LayerState) Read(inputs *tensor.Tensor, l int, lens []int) {
	copy(s.inputs.Data(), inputs.Data())
	if s.heads.config.Heads > 0 { // which have counted them
		return
	}
	for b := range s.heads.seqs {
		if lens != nil {
			l = lens[b]
		}
		s.heads.seqs[b].n += l
	}
}

// Extend continues sequences with tokens x, of the shape of Forward: a step of a decoder, or a part of its prompt. It is Forward
// otherwise; Options.Lens are the numbers of tokens that are not padding, and Options.Documents must be nil. It panics
// with a *tensor.ValueError if the tape records.
func (l *Layer) Extend(t *tensor.Tape, x *tensor.Tensor, s *LayerState, o Options) Output {
	if s == nil {
		badValue(opLayer, "state", "nil", "one from NewState")
	}
	y, last := l.forward(t, x, o, s)
	if last != nil {
		s.Read(last, 0, nil)
	}
	return y
}

// State returns the states of the heads, none if the layer has no heads.
func (s *LayerState) State() *State { return s.heads }

// Lens returns the number of tokens of each sequence.
func (s *LayerState) Lens() []int { return s.heads.Lens() }

// Bytes returns the memory that the state takes. What is shared with forks counts in each.
func (s *LayerState) Bytes() int {
	if s.inputs == nil {
		return s.heads.Bytes()
	}
	return s.heads.Bytes() + 4*s.inputs.Len()
}

// Truncate makes each sequence as short as lens; see State.Truncate. With a convolution, it takes back all tokens of all
// sequences or none, and otherwise panics with a *tensor.ValueError.
func (s *LayerState) Truncate(lens ...int) {
	all := !slices.ContainsFunc(lens, func(n int) bool { return n != 0 })
	if had := s.Lens(); s.inputs != nil && !all {
		for b, n := range had {
			if got := lens[min(b, len(lens)-1)]; got != n {
				badValue("linear: Truncate", "lengths", fmt.Sprint(lens), fmt.Sprintf("0, or %v, which the sequences have: a convolution keeps no earlier inputs", had))
			}
		}
	}
	s.heads.Truncate(lens...)
	if all && s.inputs != nil {
		s.inputs = tensor.Zeros(s.inputs.Shape()...)
	}
}

// Select returns a fork that consists of the given sequences, in the given order; see State.Select.
func (s *LayerState) Select(sequences []int) *LayerState {
	f := &LayerState{heads: s.heads.Select(sequences)}
	if s.inputs != nil {
		f.inputs = tensor.Gather(nil, s.inputs, sequences)
	}
	return f
}

// Join returns a fork that consists of the sequences of s followed by those of the others; see State.Join.
func (s *LayerState) Join(others ...*LayerState) *LayerState {
	var heads []*State
	inputs := []*tensor.Tensor{s.inputs}
	for _, o := range others {
		heads, inputs = append(heads, o.heads), append(inputs, o.inputs)
	}
	f := &LayerState{heads: s.heads.Join(heads...)}
	if s.inputs != nil {
		f.inputs = tensor.Concat(nil, 0, inputs...)
	}
	return f
}
