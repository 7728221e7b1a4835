package attn_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// outputGates are gates for layers whose values have 5 elements.
func outputGates() map[string]attn.OutputGate {
	step := func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.ReLU(t, tensor.Shift(t, x, 0.5)) }
	return map[string]attn.OutputGate{
		"elements":         {Activation: tensor.Sigmoid},
		"elements, a size": {Activation: tensor.Softplus, Size: 5},
		"heads":            {Activation: tensor.Softplus, Size: 1},
		"a user's":         {Activation: step, Size: 1},
	}
}

func gatedConfig(g attn.OutputGate, layout attn.Layout) attn.MultiHeadConfig {
	return attn.MultiHeadConfig{Width: 12, Heads: 6, KVHeads: 3, HeadSize: 4, ValueSize: 5, Bias: attn.AllProjections, Layout: layout, OutputGate: g}
}

func packed(l *nn.Linear) *nn.Linear {
	p := tensor.NewPacked(l.Weight.Dim(0), l.Weight.Dim(1), tensor.Float32)
	p.SetRows(0, l.Weight.Data())
	return &nn.Linear{Packed: p, Bias: l.Bias}
}

// A layer with an output gate computes the same bits in one call, from projected keys, token by token and with packed
// weights.
func TestOutputGateInEveryCall(t *testing.T) {
	for name, g := range outputGates() {
		for _, layout := range []attn.Layout{attn.BatchFirst, attn.SequenceFirst} {
			m := mustMultiHead(t, gatedConfig(g, layout))
			time := 1 - int(layout)
			x := tensor.Randn(newRand(3), 7, 7, 12)
			o := attn.Options{Mask: mask.Causal(), Gates: tensor.Randn(newRand(4), 6)}
			want := m.Forward(tensortest.Tape(tensor.Train), x, x, x, o).Out
			same := func(what string, got *tensor.Tensor) {
				t.Helper()
				tensortest.Same(t, fmt.Sprintf("%s, layout %d: %s", name, layout, what), got.Data(), want.Data())
			}
			same("inference", m.Forward(tensor.NewTape(tensor.Infer), x, x, x, o).Out)
			same("other keys", m.Forward(nil, x, x.Clone(), x, o).Out)
			same("projected keys", m.Query(nil, x, m.Project(nil, x, x), o).Out)
			for i := range 2 {
				cache := mustCache(t, m, 7, attn.CacheConfig{})
				var tokens []*tensor.Tensor
				for at := range 7 {
					tokens = append(tokens, m.Extend(nil, pick(x, time, at, at+1), cache, o).Out)
				}
				same(fmt.Sprintf("token by token, packed %d", i), tensor.Concat(nil, time, tokens...))
				same(fmt.Sprintf("packed %d", i), m.Forward(nil, x, x, x, o).Out)
				if i == 0 {
					m.Q, m.K, m.V, m.Gate, m.Out = packed(m.Q), packed(m.K), packed(m.V), packed(m.Gate), packed(m.Out)
				}
			}
		}
	}
}

func TestOutputGateGradients(t *testing.T) {
	for name, g := range outputGates() {
		if name == "a user's" { // has a corner
			continue
		}
		m := mustMultiHead(t, gatedConfig(g, attn.BatchFirst))
		q, kv := tensor.Randn(newRand(3), 2, 3, 12), tensor.Randn(newRand(4), 2, 5, 12)
		gates := tensor.Randn(newRand(5), 6)
		tensortest.GradCheck(t, name, func(tape *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
			return m.Forward(tape, in[0], in[1], in[1], attn.Options{Gates: gates, Mask: mask.Lengths(5, 2)}).Out
		}, []*tensor.Tensor{q, kv, m.Gate.Weight, m.Gate.Bias, m.V.Weight})
	}
}

// A gate of zero removes NaN and infinities forward, and the gradients that flow through it. A query that attends to
// nothing keeps its output of zero, even if its gate is NaN.
func TestOutputGateOfZero(t *testing.T) {
	for _, size := range []int{1, 5} {
		c := gatedConfig(attn.OutputGate{Activation: tensor.ReLU, Size: size}, attn.BatchFirst)
		m := mustMultiHead(t, c)
		x, dout := tensor.Randn(newRand(3), 2, 7, 12), tensor.Randn(newRand(5), 2, 7, 12)
		for i := range 2 * size { // gates of the first two heads, which share values
			m.Gate.Bias.Data()[i] = -100
		}
		o := attn.Options{QueryLens: []int{7, 4}, KeyLens: []int{7, 4}}
		clear(dout.Data()[11*12:])
		want := runLayer(m, x, x, x, dout, o)
		m.V.Bias.Data()[0] = float32(math.NaN())
		m.V.Bias.Data()[1] = float32(math.Inf(1))
		same(t, fmt.Sprintf("gates of size %d, bad values", size), runLayer(m, x, x, x, dout, o), want)
		m.V.Bias.Data()[0], m.V.Bias.Data()[1] = 0, 0
		for i := 11 * 12; i < x.Len(); i++ {
			x.Data()[i] = float32(math.NaN())
		}
		same(t, fmt.Sprintf("gates of size %d, bad padding", size), runLayer(m, x, x, x, dout, o), want)
	}
}

func TestOutputGateParameters(t *testing.T) {
	m := mustMultiHead(t, gatedConfig(attn.OutputGate{Activation: tensor.Sigmoid}, attn.BatchFirst))
	shapes := map[string][]int{}
	for name, p := range m.Params() {
		shapes[name] = p.Shape()
	}
	if !slices.Equal(shapes["gate.weight"], []int{30, 12}) || !slices.Equal(shapes["gate.bias"], []int{30}) || len(shapes) != 10 {
		t.Errorf("parameters %v", shapes)
	}
	if size := m.Config().OutputGate.Size; size != 5 {
		t.Errorf("size %d, want the value size 5", size)
	}
	plain := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, OutputGate: attn.OutputGate{Activation: tensor.Sigmoid}})
	_, err := plain.TorchState()
	wantError(t, err, `attn: TorchState: torch.nn.MultiheadAttention does not support an output gate`)
	plain.Gate = packed(plain.Gate)
	_, err = plain.Keep([]int{1})
	wantError(t, err, `attn: Keep: layer "" has a projection whose weights are packed for inference, want parameters; models.Options{Trainable: true} loads them`)
	none := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: attn.NoHeads, Bias: attn.Out, OutputGate: attn.OutputGate{Activation: tensor.Sigmoid}})
	x := tensor.Randn(newRand(3), 2, 7, 12)
	tensortest.Same(t, "no heads", none.Forward(nil, x, x, x, attn.Options{}).Out.Data(), slices.Repeat(none.Out.Bias.Data(), 14))
}

// An inspector receives what the output map reads.
func TestOutputGateInspected(t *testing.T) {
	m := mustMultiHead(t, gatedConfig(attn.OutputGate{Activation: tensor.Sigmoid}, attn.BatchFirst))
	x := tensor.Randn(newRand(3), 2, 7, 12)
	var outputs *tensor.Tensor
	y := m.Forward(nil, x, x, x, attn.Options{Inspect: func(_ string, p attn.Parts) { outputs = p.Outputs() }})
	joined := tensor.Reshape(nil, tensor.Transpose(nil, outputs, 0, 2, 1, 3), 2, 7, 30)
	tensortest.Same(t, "out", m.Out.Forward(nil, joined).Data(), y.Out.Data())
}

func TestOutputGateErrors(t *testing.T) {
	for want, c := range map[string]attn.MultiHeadConfig{
		`output gate of size 1 without an activation, want a function such as tensor\.Sigmoid`: {OutputGate: attn.OutputGate{Size: 1}},
		`output gate of size 3, want 1 or the value size 4`:                                    {OutputGate: attn.OutputGate{Activation: tensor.Sigmoid, Size: 3}},
		`output gate of size -1, want 1 or the value size 4`:                                   {OutputGate: attn.OutputGate{Activation: tensor.Sigmoid, Size: -1}},
		`output gate of queries of width Infer, want a positive width`:                         {QueryWidth: attn.Infer, OutputGate: attn.OutputGate{Activation: tensor.Sigmoid}},
	} {
		c.Width, c.Heads = 12, 3
		_, err := attn.NewMultiHead(c, newRand(1))
		wantError(t, err, `attn: NewMultiHead: `+want)
	}
	x := tensor.Randn(newRand(3), 2, 7, 12)
	for want, f := range map[string]func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor{
		`is nil, want a tensor`:                 func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor { return nil },
		`has shape \[1 7 12\], want \[2 7 12\]`: func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Slice(t, x, 0, 0, 1) },
	} {
		m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, OutputGate: attn.OutputGate{Activation: f}})
		wantError(t, tensor.Catch(func() { m.Forward(nil, x, x, x, attn.Options{}) }), `attn: MultiHead: result of the output gate's activation `+want)
	}
}
