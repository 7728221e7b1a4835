package models

import (
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// falconH1Family is Falcon-H1: in each block, attention and Mamba-2 read the same input, and their outputs are added.
// Many parts have a factor, which in training sets how fast they learn.
//
// Source: Falcon-LLM Team, "Falcon-H1", 2025, https://arxiv.org/abs/2507.22448; FalconH1Model of transformers.
var falconH1Family = Family{
	Type: "falcon_h1", Name: "Falcon-H1", New: newFalconH1, Pruning: HeadCounts,
	Harmless: []string{"num_logits_to_keep", "attn_layer_indices", "mamba_use_mlp", "mlp_expansion_factor"},
}

func newFalconH1(b *Builder) Network {
	s := b.Config
	m := llamaLike(b, Sizes{KVHeads: 8})
	eps := s.Eps("rms_norm_eps", 1e-5)
	m.norm = s.rmsNorm(1e-5)
	m.norms = blockNorms{self: "input_layernorm", ff: "pre_ff_layernorm"}
	m.normNames[2], m.bias = "final_layernorm", s.attentionBias(false)
	in := s.factor("attention_in_multiplier", 1)
	if m.bias != 0 && in != 1 {
		s.Fail("attention_in_multiplier", "is %v beside attention_bias, want 1", in)
	}
	m.score = score.DotScale(float32(s.factor("key_multiplier", 1) * in * in / math.Sqrt(float64(m.HeadSize))))
	m.scale, m.shrink = float32(s.factor("embedding_multiplier", 1)), float32(s.factor("lm_head_multiplier", 1))
	ff := s.factors("mlp_multipliers", 2)
	linear := s.biased("mlp_bias", false)
	m.feedForward = func(m *rotaryDecoder, b *Builder, i int) Layer {
		gate := func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
			return m.activation(t, scaled(t, x, float32(ff[0])))
		}
		down := func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return scaled(t, x, float32(ff[1])) }
		maps := newGated(b.At("feed_forward"), linear, "gate_proj", "up_proj", "down_proj", m.Width, m.Hidden, gate)
		return inTurn{maps, Activation(down)}
	}

	z := s.mambaOf(m.Width, eps)
	z.outBias, z.normFirst = s.Bool("projectors_bias", false), s.Bool("mamba_norm_before_gate", true)
	z.inFactor, z.outFactor = float32(s.factor("ssm_in_multiplier", 1)), float32(s.factor("ssm_out_multiplier", 1))
	z.factors = s.factors("ssm_multipliers", 5)
	norm, out := s.Bool("mamba_rms_norm", false), float32(in*s.factor("attention_out_multiplier", 1))
	m.beside = func(p *block, b *Builder, i int) {
		name, z := fmt.Sprintf("decoder.%d.mamba", i), z
		z.keep(b, name)
		p.mixer, p.selfFactor = newMamba(b.At("mamba"), name, z, norm), out
	}
	return m.build(b.Within("model"), b)
}

// factor is multiplier for one of many in a row, whose product must be in the range of float32.
func (s *Settings) factor(key string, usual float64) float64 {
	x := s.multiplier(key, usual)
	if !(x >= 1e-4 && x <= 1e4) {
		s.Fail(key, "is %v, want 0.0001 to 10000", x)
		return usual
	}
	return x
}

// factors returns a list of n factors, which are 1 if the key is absent.
func (s *Settings) factors(key string, n int) []float64 {
	list := s.Floats(key)
	if list == nil {
		return slices.Repeat([]float64{1}, n)
	}
	if len(list) != n || slices.ContainsFunc(list, func(x float64) bool { return !(math.Abs(x) <= 1e4) }) {
		s.Fail(key, "is %v, want %d numbers of at most 10000", list, n)
		return slices.Repeat([]float64{1}, n)
	}
	return list
}
