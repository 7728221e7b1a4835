package models

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// A gate of 0 is a head whose columns of the last map are 0, beside attention too, and weights times values are what the
// state gives, which leaves the skip connection to add.
func TestMambaHeads(t *testing.T) {
	for dir, layers := range map[string]int{"mamba2": 2, "mamba2_biases": 2, "granite_hybrid": 2, "falcon_h1": 4, "falcon_h1_norm": 4} {
		m, err := Load("testdata/decoders/"+dir, Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(m.HeadLayers()); n != layers {
			t.Errorf("%s: %d layers with heads, want %d", dir, n, layers)
		}
		x := m.Network.(*stack).blocks[0].mixer.(mamba)
		h := tensor.Randn(rand.New(rand.NewPCG(1, 2)), 2, 5, x.width)
		gates := tensor.Shift(nil, tensor.Zeros(x.heads), 1)
		gates.Data()[1] = 0
		got := x.mix(nil, h, &Run{Gates: func(string) *tensor.Tensor { return gates }}, nil, nil)
		without := x
		without.out = &nn.Linear{Weight: x.out.Weight.Clone(), Bias: x.out.Bias}
		for row := range x.width {
			clear(without.out.Weight.Data()[row*x.inner()+x.size:][:x.size])
		}
		tensortest.Close(t, dir+": gates", got.Data(), without.mix(nil, h, &Run{}, nil, nil).Float64s(), 1e-5)

		// Inspect has what the last map reads.
		var outputs *tensor.Tensor
		y := x.mix(nil, h, &Run{Inspect: func(_ string, p attn.Parts) { outputs = p.Outputs() }}, nil, nil)
		read := tensor.Reshape(nil, tensor.Transpose(nil, outputs, 0, 2, 1, 3), 2, 5, x.inner())
		tensortest.Close(t, dir+": outputs", scaled(nil, x.out.Forward(nil, read), x.outFactor).Data(), y.Float64s(), 1e-6)

		// Without skip connection and norm, the output is the gate times weights times Δ·x.
		x.factors, x.inFactor, x.outFactor = nil, 0, 0
		x.skip, x.gain, x.out = tensor.Zeros(x.heads), nil, identity(x.inner())
		var weights *tensor.Tensor
		r := Run{Observers: []attn.Observer{observe.Weights(func(_ string, w *tensor.Tensor) { weights = w.Clone() })}}
		got = x.mix(nil, h, &r, nil, nil)
		in := nn.Linears(nil, h, x.in...)
		y, _ = x.conv.Forward(nil, in[1], nil, nil)
		split := func(x *tensor.Tensor, heads int) *tensor.Tensor { // [B heads L size]
			return tensor.Transpose(nil, tensor.Reshape(nil, x, 2, 5, heads, x.Dim(2)/heads), 0, 2, 1, 3)
		}
		step := tensor.Softplus(nil, tensor.Add(nil, in[2], tensor.BroadcastTo(nil, x.stepBias, 2, 5, x.heads)))
		values := split(tensor.Slice(nil, y, 2, 0, x.inner()), x.heads)
		values = tensor.Mul(nil, values, tensor.BroadcastTo(nil, split(step, x.heads), values.Shape()...))
		want := tensor.Mul(nil, tensor.MatMul(nil, weights, values), tensor.SiLU(nil, split(in[0], x.heads)))
		tensortest.Close(t, dir+": weights", split(got, x.heads).Data(), want.Float64s(), 1e-5)
	}
}

// identity is a map that returns its input.
func identity(n int) *nn.Linear {
	w := tensor.Zeros(n, n)
	for i := range n {
		w.Data()[i*n+i] = 1
	}
	return &nn.Linear{Weight: w}
}

// Files of a model that has lost heads write Infinity as Python does: transformers refuses the text "Infinity".
func TestInfinityIsWritten(t *testing.T) {
	m, err := Load("testdata/decoders/falcon_h1", Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string][]int{"decoder.0.mamba": {0, 1, 2}}
	compact, err := m.Compact(kept)
	if err != nil {
		t.Fatal(err)
	}
	small, err := m.Keep(kept)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := small.Save(dir); err != nil {
		t.Fatal(err)
	}
	saved, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{compact.Config, saved} {
		if !bytes.Contains(text, []byte(" Infinity\n")) || bytes.Contains(text, []byte(`"Infinity"`)) {
			t.Errorf("Infinity is not a number in %s", text)
		}
	}
	again, err := Load(dir, Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	x := Batch{IDs: [][]int{{1, 5, 7}}}
	if !slices.Equal(again.Hidden(nil, x, Run{}).Data(), small.Hidden(nil, x, Run{}).Data()) {
		t.Error("the saved model computes something else")
	}
}
