package linear

import (
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Slopes are constant decays: head g keeps e^(−Slopes[g]) of its state for each token.
//
// Source: Sun et al., "Retentive Network", 2023, https://arxiv.org/abs/2307.08621; Qin et al., "Lightning Attention-2",
// 2024, https://arxiv.org/abs/2401.04658.
type Slopes []float32

// Decays returns −Slopes.
func (s Slopes) Decays(t *tensor.Tape, _ *tensor.Tensor) *tensor.Tensor {
	x := t.Make(len(s))
	for g, slope := range s {
		x.Data()[g] = -slope
	}
	return x
}

// Keep returns the slopes of the given heads.
func (s Slopes) Keep(heads []int) Decay {
	var kept Slopes
	for _, g := range heads {
		kept = append(kept, s[g])
	}
	return kept
}

// Params returns none.
func (Slopes) Params() nn.Params { return nn.Vars{}.Params() }

// StepDecay computes decays from a step, by which each token says how much of the state it lets go:
//
//	decay = −e^A·softplus(x·Wᵀ + b)
//
// with a number A for each head, and a step for each head or for each element of its keys. It is the decay of Mamba-2 and
// Gated DeltaNet.
//
// Source: Dao and Gu, "Transformers are SSMs", 2024, https://arxiv.org/abs/2405.21060, section 7.
type StepDecay struct {
	Step *nn.Linear     // [G Width], or [G·E Width]; its bias is dt_bias
	A    *tensor.Tensor // [G], A_log
}

// NewStepDecay returns decays for the given number of heads, with a step for each of size elements; 1 means one for a
// head. Steps are initially between 0.001 and 0.1, and A between 1 and 16, as in Mamba-2.
func NewStepDecay(width, heads, size int, rng *rand.Rand) *StepDecay {
	d := &StepDecay{nn.NewLinear(width, heads*size, true, rng), tensor.Zeros(heads).Param()}
	for i := range d.Step.Bias.Data() {
		step := math.Exp(math.Log(0.001) + float64(rng.Float64()*math.Log(100)))
		d.Step.Bias.Data()[i] = float32(step + math.Log(-math.Expm1(-step))) // softplus of which is step
	}
	for g := range d.A.Data() {
		d.A.Data()[g] = float32(math.Log(1 + float64(15*rng.Float64())))
	}
	return d
}

// Decays returns the logarithms [B L G], or [B L G E] with a step for each element.
func (d *StepDecay) Decays(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	step := tensor.Softplus(t, d.Step.Forward(t, x))
	rate := tensor.Scale(t, tensor.Exp(t, d.A), -1)
	heads := d.A.Dim(0)
	if size := step.Dim(2) / heads; size > 1 {
		step = tensor.Reshape(t, step, x.Dim(0), x.Dim(1), heads, size)
		rate = tensor.Reshape(t, rate, heads, 1)
	}
	return tensor.Mul(t, step, rate)
}

// Keep returns the decays of the given heads, with copies of their parameters.
func (d *StepDecay) Keep(heads []int) Decay {
	size := d.Step.Weight.Dim(0) / d.A.Dim(0)
	return &StepDecay{d.Step.KeepOutputs(heads, size), nn.KeepBlocks(d.A, 0, heads, 1)}
}

// Params returns "step.weight", "step.bias" and "a".
func (d *StepDecay) Params() nn.Params {
	return nn.Join(nn.Named{Name: "step", Module: d.Step}, nn.Named{Module: nn.Vars{{Name: "a", Tensor: d.A}}})
}
