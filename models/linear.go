package models

import (
	"math/rand/v2"
	"strconv"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// linearKind is the name of linear attention in layer_types.
const linearKind = "linear_attention"

// LinearMaps are the names of the tensors of a layer of linear attention; ".weight" is appended. QKV and Conv are one
// tensor of queries, keys and values, or three.
type LinearMaps struct {
	QKV, Conv       []string
	Beta, Gate, Out string
}

// LinearAttention returns a layer of linear attention whose maps have no bias. Decay and OutNorm in c are also read from
// b, by their own names. A map that c does not need has no name.
func (b *Builder) LinearAttention(c linear.LayerConfig, maps LinearMaps) *linear.Layer {
	c.Init = func(int, int, bool, *rand.Rand) *nn.Linear { return new(nn.Linear) } // for the layers of this model's plan
	l, err := linear.NewLayer(c, nil)
	if err != nil {
		b.Fail("%w", err)
		return new(linear.Layer)
	}
	c = l.Config()
	keys, values := c.KeyHeads*c.KeySize, c.Heads*c.ValueSize
	sizes := []int{keys, keys, values}
	var qkv []*nn.Linear
	for name, outs := range eachNamed(maps.QKV, sizes) {
		qkv = append(qkv, b.joined(name, false, c.Width, outs...)...)
	}
	l.Q, l.K, l.V = qkv[0], qkv[1], qkv[2]
	if l.Conv != nil {
		l.Conv.Weight = b.convWeight("conv1d", maps.Conv, c.Conv, sizes)
	}
	if l.Beta != nil {
		l.Beta = b.Matrix(maps.Beta, c.Width, c.Heads)
	}
	if l.Gate != nil {
		l.Gate = b.Matrix(maps.Gate, c.Width, values)
	}
	l.Out = b.Matrix(maps.Out, values, c.Width)
	return l
}

// eachNamed yields the names of tensors with the sizes of what each has: one name for all, or one for each.
func eachNamed(names []string, sizes []int) func(yield func(name string, sizes []int) bool) {
	return func(yield func(string, []int) bool) {
		n := len(sizes) / len(names)
		for i, name := range names {
			if !yield(name, sizes[i*n:][:n]) {
				return
			}
		}
	}
}

// convWeight returns the weight [n 1 C] of a convolution of channels of the given sizes, which the file has as [C 1 n], or
// nil in the first call of a Family.New.
func (b *Builder) convWeight(param string, names []string, n int, sizes []int) *tensor.Tensor {
	fits := true
	for name, of := range eachNamed(names, sizes) {
		fits = b.want(name+".weight", sum(of), 1, n) && fits
	}
	if !fits || b.plan {
		return nil
	}
	w := tensor.Zeros(n, 1, sum(sizes)).Param()
	b.params = append(b.params, nn.Var{Name: b.prefix + param + ".weight", Tensor: w})
	at := 0
	for name, of := range eachNamed(names, sizes) {
		e := nn.Entry{Name: b.prefix + name + ".weight", Parts: []*tensor.Tensor{w}, Transposed: true}
		if len(names) > 1 {
			e.Columns = [2]int{at, at + sum(of)}
		}
		b.dict, at = append(b.dict, e), at+sum(of)
	}
	return w
}

// gatedDelta returns the settings of layers of Gated DeltaNet; the defaults are those of usual.
//
// Source: Yang et al., "Gated Delta Networks", 2024, https://arxiv.org/abs/2412.06464.
func (s *Settings) gatedDelta(usual linear.LayerConfig) linear.LayerConfig {
	c := usual
	c.Heads, c.KeyHeads = s.SizeOr("linear_num_value_heads", c.Heads), s.SizeOr("linear_num_key_heads", c.KeyHeads)
	if c.Heads%c.KeyHeads != 0 {
		s.Fail("linear_num_value_heads", "is %d, want a multiple of linear_num_key_heads, which is %d", c.Heads, c.KeyHeads)
		c.KeyHeads = c.Heads
	}
	c.KeySize, c.ValueSize = s.stateSize("linear_key_head_dim", c.KeySize), s.stateSize("linear_value_head_dim", c.ValueSize)
	c.Conv, c.Feature, c.OutGate = s.SizeOr("linear_conv_kernel_dim", 4), linear.Unit, tensor.SiLU
	return c
}

// stateSize returns a size of heads with a state, which is a matrix of two such sizes and is in no file.
func (s *Settings) stateSize(key string, usual int) int {
	const largest = 1 << 12
	n := s.SizeOr(key, usual)
	if n > largest {
		s.Fail(key, "makes heads of size %d, want at most %d", n, largest)
		return 1
	}
	return n
}

// stepDecay returns the decays of Gated DeltaNet, from the map of the given name, "dt_bias" and "A_log".
func (b *Builder) stepDecay(name string, c linear.LayerConfig) *linear.StepDecay {
	step := b.Matrix(name, c.Width, c.Heads)
	step.Bias = b.Tensor("dt_bias", c.Heads)
	return &linear.StepDecay{Step: step, A: b.Tensor("A_log", c.Heads)}
}

// hybridTypes returns which layers have linear attention, according to layer_types or, if that is absent, to usual.
func (s *Settings) hybridTypes(layers int, usual func(block int) bool) func(block int) bool {
	types := s.layerTypes(layers, nil, linearKind, "full_attention")
	if types == nil {
		return usual
	}
	return func(i int) bool { return types[i] == linearKind }
}

// linearBlocks gives some blocks linear attention in place of a softmax. layer makes it from the tensors of a block.
func (m *rotaryDecoder) linearBlocks(is func(block int) bool, layer func(b *Builder, c linear.LayerConfig) *linear.Layer, c linear.LayerConfig) {
	m.mixer = func(m *rotaryDecoder, b *Builder, i int) mixer {
		if !is(i) {
			return nil
		}
		c := c
		c.Name = decoderName(i)
		c.Heads, c.KeyHeads = b.keptStates(strconv.Itoa(i), c.Name, c.Heads, c.KeyHeads)
		l := layer(b.At("linear_attn"), c)
		if l.Conv != nil {
			l.Conv.Activation = m.activation
		}
		return linearAttention{l}
	}
}

// HeadLayers describes the layers whose heads have weights, with and without a softmax, from the first to the last.
func (m *Model) HeadLayers() (all []attn.LayerHeads) {
	for _, l := range headLayers(m.Network) {
		all = append(all, l.Heads())
	}
	return all
}
