package models

import (
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// What a head without a softmax passes on is its signed weights times the values after the convolution, then norm and gate.
func TestSignedWeightsTimesValues(t *testing.T) {
	for _, name := range []string{"qwen3_5", "qwen3_5_settings", "olmo_hybrid"} {
		m, err := Load("testdata/decoders/"+name, Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range m.Network.(*stack).blocks {
			l, ok := b.mixer.(linearAttention)
			if !ok {
				continue
			}
			c := l.Config()
			const tokens = 9
			x := tensor.Randn(rand.New(rand.NewPCG(3, 7)), 2, tokens, c.Width)
			var weights, outputs *tensor.Tensor
			r := Run{
				Observers: []attn.Observer{observe.Weights(func(_ string, w *tensor.Tensor) { weights = w })},
				Inspect:   func(_ string, p attn.Parts) { outputs = p.Outputs() },
			}
			l.mix(nil, x, &r, nil, nil)
			all := tensor.Concat(nil, 2, l.Q.Forward(nil, x), l.K.Forward(nil, x), l.V.Forward(nil, x))
			y, _ := l.Conv.Forward(nil, all, nil, nil)
			split := func(x *tensor.Tensor) *tensor.Tensor {
				return tensor.Transpose(nil, tensor.Reshape(nil, x, 2, tokens, c.Heads, c.ValueSize), 0, 2, 1, 3)
			}
			v := split(tensor.Slice(nil, y, 2, y.Dim(2)-c.Heads*c.ValueSize, y.Dim(2)))
			want := c.OutNorm.Forward(nil, tensor.MatMul(nil, weights, v))
			want = tensor.Mul(nil, want, split(tensor.SiLU(nil, l.Gate.Forward(nil, x))))
			tensortest.Close(t, name+" "+c.Name, outputs.Data(), want.Float64s(), 1e-5)
		}
	}
}

// HeadLayers are the layers of all kinds, in order, by the names that recorders place.
func TestHeadLayers(t *testing.T) {
	for _, dir := range []string{"decoders/qwen3_5", "decoders/llama3", "seq2seq/t5"} {
		m, err := Load("testdata/"+dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		all, want := m.HeadLayers(), len(m.Attention())
		if dir == "decoders/qwen3_5" {
			want = m.Sizes().Layers
		}
		if len(all) != want {
			t.Errorf("%s: %d layers, want %d", dir, len(all), want)
		}
		for i, l := range all {
			if kind, index := heads.Place(l.Name); dir == "decoders/qwen3_5" && (kind != heads.Decoder || index != i || l.Heads != 4) {
				t.Errorf("%s: layer %d is %+v", dir, i, l)
			}
		}
	}
}
