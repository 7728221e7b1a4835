package models

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// mamba mixes tokens with gated linear attention whose values and decays have a step Δ in common:
//
//	z, xBC, d = h·W_in
//	x, B, C   = conv(xBC)
//	Δ         = softplus(d + dt_bias)
//	S         ← e^(−Δ·e^A)·S + B ⊗ Δ·x,    y = SᵀC + D·x
//	out       = norm(y ⊙ SiLU(z))·W_out
//
// C are the queries, B the keys and Δ·x the values of linear.Attend.
//
// Source: Dao and Gu, "Transformers are SSMs", 2024, https://arxiv.org/abs/2405.21060; Mamba2Mixer of transformers.
type mamba struct {
	mambaSizes
	name string
	in   []*nn.Linear // of z, xBC and d
	conv *nn.CausalConv
	out  *nn.Linear

	stepBias, decay, skip *tensor.Tensor // [H]: dt_bias, A and D
	gain                  *tensor.Tensor // [inner] of the norm, nil for no norm
}

// mambaSizes are the settings of a mamba.
type mambaSizes struct {
	width, heads, size, groups, state int // groups are heads of queries and keys; state is the size of each
	tokens                            int // of the convolution
	bias, outBias, convBias           bool
	eps                               float32
	normFirst                         bool // the norm comes before the gate
	// Factors of h, of z, x, B, C and d, and of the output; 0 and nil mean 1.
	inFactor, outFactor float32
	factors             []float64
}

// inner returns the width of the values of all heads.
func (z *mambaSizes) inner() int { return z.heads * z.size }

// newMamba reads the tensors in_proj, conv1d, dt_bias, A_log, D, norm and out_proj.
func newMamba(b *Builder, name string, z mambaSizes, norm bool) mamba {
	inner, keys := z.inner(), z.groups*z.state
	m := mamba{
		mambaSizes: z, name: name,
		in: b.joined("in_proj", z.bias, z.width, inner, inner+2*keys, z.heads), out: b.joined("out_proj", z.outBias, inner, z.width)[0],
		conv:     b.CausalConv("conv1d", inner+2*keys, z.tokens, z.convBias),
		stepBias: b.Tensor("dt_bias", z.heads), decay: b.Tensor("A_log", z.heads), skip: b.Tensor("D", z.heads),
	}
	m.conv.Activation = tensor.SiLU
	if norm {
		m.gain = b.Tensor("norm.weight", inner)
	}
	return m
}

func (mamba) kind() string { return "mamba" }

func (m mamba) mix(t *tensor.Tape, h *tensor.Tensor, r *Run, kept LayerCache, lens []int) *tensor.Tensor {
	b, l, inner, keys := h.Dim(0), h.Dim(1), m.inner(), m.groups*m.state
	all := nn.Linears(t, scaled(t, h, m.inFactor), m.in...)
	gate, step := all[0], all[2]
	if f := m.factors; f != nil {
		gate, step = scaled(t, gate, float32(f[0])), scaled(t, step, float32(f[4]))
		each := tensor.Zeros(inner + 2*keys)
		for i := range each.Data() {
			part := 1 // of f: x, B or C
			if i >= inner {
				part = 2 + (i-inner)/keys
			}
			each.Data()[i] = float32(f[part])
		}
		all[1] = tensor.Mul(t, all[1], tensor.BroadcastTo(t, each, b, l, inner+2*keys))
	}
	state, first := layerState(kept)
	y, last := m.conv.Forward(t, all[1], first, ends(lens))
	split := func(lo, heads, size int) *tensor.Tensor { // [B heads L size]
		x := tensor.Slice(t, y, 2, lo, lo+heads*size)
		return tensor.Transpose(t, tensor.Reshape(t, x, b, l, heads, size), 0, 2, 1, 3)
	}
	perHead := func(x *tensor.Tensor, shape ...int) *tensor.Tensor {
		return tensor.BroadcastTo(t, tensor.Reshape(t, x, 1, m.heads, 1, 1), shape...)
	}
	x, k, q := split(0, m.heads, m.size), split(inner, m.groups, m.state), split(inner+keys, m.groups, m.state)
	step = tensor.Softplus(t, tensor.Add(t, step, tensor.BroadcastTo(t, m.stepBias, b, l, m.heads)))
	step = tensor.Reshape(t, tensor.Transpose(t, step, 0, 2, 1), b, m.heads, l, 1)
	decay := tensor.Mul(t, step, perHead(tensor.Scale(t, tensor.Exp(t, m.decay), -1), step.Shape()...))
	o := linear.Options{
		Decay: tensor.Reshape(t, decay, b, m.heads, l), Scale: 1, Lens: lens, Layer: m.name,
		Observers: r.Observers, Edits: r.edits(m.name),
	}
	edit, gates := o.Edits.Outputs, r.gates(m.name)
	o.Edits.Outputs = nil
	var parts attn.Parts
	if r.Inspect != nil {
		o.Inspect = func(_ string, p attn.Parts) { parts = p }
	}
	v := tensor.Mul(t, x, tensor.BroadcastTo(t, step, x.Shape()...))
	var read linear.Output
	if state == nil {
		read = linear.Attend(t, q, k, v, o)
	} else {
		read = state.State().Attend(t, q, k, v, o)
		state.Read(last, l, lens)
	}
	heads := tensor.Add(t, read.Out, tensor.Mul(t, x, perHead(m.skip, x.Shape()...)))
	out := tensor.Reshape(t, tensor.Transpose(t, heads, 0, 2, 1, 3), b, l, inner)
	gate = tensor.SiLU(t, gate)
	if m.normFirst {
		out = tensor.Mul(t, m.norm(t, out), gate)
	} else {
		out = m.norm(t, tensor.Mul(t, out, gate))
	}
	if gates != nil || edit != nil || r.Inspect != nil { // of what the last map reads, as in a linear.Layer
		if heads = tensor.Transpose(t, tensor.Reshape(t, out, b, l, m.heads, m.size), 0, 2, 1, 3); edit != nil {
			heads = edit(t, heads)
		}
		if r.Inspect != nil {
			all := heads
			parts.Outputs = func() *tensor.Tensor { return all }
			r.Inspect(m.name, parts)
		}
		if gates != nil {
			heads = attn.GateHeads(t, heads, gates)
		}
		out = tensor.Reshape(t, tensor.Transpose(t, heads, 0, 2, 1, 3), b, l, inner)
	}
	return scaled(t, m.out.Forward(t, out), m.outFactor)
}

// Heads describes the heads of values; those of a group share queries and keys, which one group keeps whichever heads remain.
func (m mamba) Heads() attn.LayerHeads {
	group := m.heads / m.groups
	if m.groups == 1 {
		group = 1
	}
	return attn.LayerHeads{
		Name: m.name, Heads: m.heads, KeyHeads: m.groups, Group: group, Signed: true, Out: m.out, Vectors: 2*m.groups*m.state + m.heads,
	}
}

// keep reads which heads of the layer of the given name remain.
func (z *mambaSizes) keep(b *Builder, name string) {
	if z.groups > 1 {
		z.heads, z.groups = b.keptStates(name, name, z.heads, z.groups)
		return
	}
	z.heads, _ = b.keptStates(name, name, z.heads, z.heads)
}

func (m mamba) keep(heads []int) (cuttable, error) {
	groups, err := m.Heads().Groups(heads)
	switch {
	case err != nil:
		return nil, err
	case len(heads) == 0:
		return nil, fmt.Errorf("no heads of layer %q, want at least one", m.name)
	case m.groups > 1:
	case m.gain != nil:
		return nil, fmt.Errorf("layer %q has a norm over all heads together, want a norm of each group of heads", m.name)
	default:
		groups = []int{0}
	}
	less, inner, keys := m, m.inner(), m.groups*m.state
	less.heads, less.groups = len(heads), len(groups)
	channels := slices.Concat(
		nn.BlockElements(0, heads, m.size), nn.BlockElements(inner, groups, m.state), nn.BlockElements(inner+keys, groups, m.state),
	)
	less.in = []*nn.Linear{m.in[0].KeepOutputs(heads, m.size), m.in[1].KeepOutputs(channels, 1), m.in[2].KeepOutputs(heads, 1)}
	less.conv, less.out = m.conv.KeepChannels(channels), m.out.KeepInputs(heads, m.size)
	less.stepBias, less.decay = nn.KeepBlocks(m.stepBias, 0, heads, 1), nn.KeepBlocks(m.decay, 0, heads, 1)
	less.skip, less.gain = nn.KeepBlocks(m.skip, 0, heads, 1), nn.KeepBlocks(m.gain, 0, heads, m.size)
	return less, nil
}

func (m mamba) counts(heads int) map[string]int {
	groups := max(1, m.groups*heads/m.heads)
	return map[string]int{"mamba_n_heads": heads, "mamba_n_groups": groups, "mamba_d_head": m.size, "mamba_d_ssm": heads * m.size}
}

// Params returns the parameters of all parts.
func (m mamba) Params() nn.Params {
	return nn.Join(
		nn.Named{Name: "z", Module: m.in[0]}, nn.Named{Name: "xbc", Module: m.in[1]}, nn.Named{Name: "d", Module: m.in[2]},
		nn.Named{Name: "conv", Module: m.conv}, nn.Named{Name: "out", Module: m.out}, nn.Named{Module: nn.Vars{
			{Name: "dt_bias", Tensor: m.stepBias}, {Name: "a_log", Tensor: m.decay}, {Name: "skip", Tensor: m.skip}, {Name: "gain", Tensor: m.gain},
		}},
	)
}

// norm is an RMSNorm of each group.
func (m *mamba) norm(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	if m.gain == nil {
		return x
	}
	ones := tensor.Shift(nil, tensor.Zeros(m.inner()/m.groups), 1)
	y := tensor.RMSNorm(t, tensor.Reshape(t, x, x.Dim(0), x.Dim(1), m.groups, m.inner()/m.groups), ones, m.eps)
	return tensor.Mul(t, tensor.Reshape(t, y, x.Shape()...), tensor.BroadcastTo(t, m.gain, x.Shape()...))
}

func (m mamba) newCache(batch int, _ attn.CacheConfig) (LayerCache, error) {
	heads, err := linear.NewState(linear.StateConfig{Batch: batch, Heads: m.heads, KeySize: m.state, ValueSize: m.size})
	if err != nil {
		return nil, err
	}
	return CacheOf[*linear.LayerState]{linear.NewLayerState(batch, m.conv, heads)}, nil
}

// scaled multiplies x by a factor, of which 0 means 1.
func scaled(t *tensor.Tape, x *tensor.Tensor, factor float32) *tensor.Tensor {
	if factor == 0 || factor == 1 {
		return x
	}
	return tensor.Scale(t, x, factor)
}

// mambaOf reads the settings of a hybrid, whose keys begin with mamba_.
func (s *Settings) mambaOf(width int, eps float32) mambaSizes {
	z := mambaSizes{
		width: width, heads: s.SizeOr("mamba_n_heads", 128), groups: s.SizeOr("mamba_n_groups", 1), state: s.SizeOr("mamba_d_state", 256),
		tokens: s.SizeOr("mamba_d_conv", 4), bias: s.Bool("mamba_proj_bias", false), convBias: s.Bool("mamba_conv_bias", true), eps: eps,
	}
	inner := s.SizeOr("mamba_expand", 2) * width
	s.mambaCommon()
	s.Ignore("mamba_chunk_size")
	z.size = s.perHead("mamba_d_head", "mamba_n_heads, and mamba_d_ssm or mamba_expand times hidden_size", s.SizeOr("mamba_d_ssm", inner), z.heads)
	return z
}

// mambaCommon rejects settings of a Mamba-2 layer that change how it computes.
func (s *Settings) mambaCommon() {
	s.Only("hidden_act", "silu", "swish")
	s.Only("time_step_limit", []any{0, infinite}, []any{0, map[string]any{"__float__": infinite}})
	s.Ignore("time_step_min", "time_step_max", "time_step_floor", "time_step_rank", "chunk_size")
}

// perHead returns a size of heads that together have the size inner. "auto" is what follows from it, that is from the
// settings that from names.
func (s *Settings) perHead(key, from string, inner, heads int) int {
	size := inner / heads
	if s.Has(key) && string(s.values[key]) != `"auto"` {
		size = s.SizeOr(key, max(1, size))
	}
	s.Ignore(key)
	if size < 1 || size*heads != inner {
		s.Fail(key, "makes %d heads of size %d, want heads that are %d wide together (%s)", heads, size, inner, from)
		return 1
	}
	return size
}

// mamba2Family is Mamba-2: blocks of such layers alone.
var mamba2Family = Family{
	Type: "mamba2", Name: "Mamba-2", New: newMamba2,
	Harmless: []string{"residual_in_fp32", "norm_before_gate"},
}

func newMamba2(b *Builder) Network {
	s := b.Config
	oneWay(s)
	z := Sizes{
		Causal: true, Layers: b.Count("num_hidden_layers"), Heads: s.SizeOr("num_heads", 128), Width: s.Size("hidden_size"),
		Vocabulary: s.SizeOr("vocab_size", 32768),
	}
	z = z.oneToOne()
	eps := s.Eps("layer_norm_epsilon", 1e-5)
	m := mambaSizes{
		width: z.Width, heads: z.Heads, groups: s.SizeOr("n_groups", 8), state: s.SizeOr("state_size", 128), tokens: s.SizeOr("conv_kernel", 4),
		bias: s.Bool("use_bias", false), convBias: s.Bool("use_conv_bias", true), eps: eps,
	}
	m.outBias = m.bias
	m.size = s.perHead("head_dim", "num_heads, and expand times hidden_size", s.SizeOr("expand", 2)*z.Width, z.Heads)
	z.HeadSize = m.size
	s.mambaCommon()
	s.Only("rms_norm", true)
	s.Only("rescale_prenorm_residual", false) // transformers also rescales weights that it has read
	base := b.Within("backbone")
	d := &stack{sizes: z}
	d.words, d.logits = base.Words("embeddings", z.Vocabulary, z.Width)
	for i := range z.Layers {
		at := base.At(fmt.Sprintf("layers.%d", i))
		d.blocks = append(d.blocks, &block{selfNorm: at.RMSNorm("norm", z.Width, eps), mixer: newMamba(at.At("mixer"), decoderName(i), m, true)})
	}
	d.norm = base.RMSNorm("norm_f", z.Width, eps)
	d.makeLogits(b, "lm_head", s.Bool("tie_word_embeddings", false), base.Name("embeddings.weight"))
	return d
}
