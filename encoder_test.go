package attn_test

import (
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// One layer of an encoder, and the weights of its heads.
func ExampleEncoderLayer() {
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewEncoderLayer(attn.EncoderConfig{Width: 64, Heads: 4, Dropout: 0.1}, rng)
	if err != nil {
		log.Fatal(err)
	}
	x := tensor.Randn(rng, 2, 7, 64)
	y := layer.Forward(nil, x, attn.Options{Mask: mask.Lengths(7, 3), Weights: true})
	fmt.Println(y.Out.Shape(), y.Weights.Shape())
	// Output: [2 7 64] [2 4 7 7]
}

// Load the attention of layer 1 of an encoder that PyTorch has saved.
func ExampleMultiHead_TorchState() {
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 15, Heads: 3, Bias: attn.AllProjections}, rng)
	if err != nil {
		log.Fatal(err)
	}
	err = statedict.Load("testdata/torch/encoder_layers.safetensors", layer, statedict.LoadOptions{
		Names:  nn.TorchNames,
		Prefix: "layers.1.self_attn.",
	})
	fmt.Println(err)

	// Without biases the file has more than the layer.
	plain, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 15, Heads: 3}, rng)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(statedict.Load("testdata/torch/mha.safetensors", plain, statedict.LoadOptions{Names: nn.TorchNames}))
	// Output:
	// <nil>
	// safetensors: testdata/torch/mha.safetensors: tensors "in_proj_bias", "out_proj.bias" are not read
}

func TestEncoderLayerDefaults(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	l, err := attn.NewEncoderLayer(attn.EncoderConfig{Name: "e", Width: 6, Heads: 3, Dropout: 0.25}, rng)
	if err != nil {
		t.Fatal(err)
	}
	if c := l.Config(); c.Hidden != 24 || c.Activation == nil || l.FF.In.Weight.Dim(0) != 24 {
		t.Errorf("configuration %+v", c)
	}
	if c := l.Self.Config(); c.Name != "e" || c.Dropout != 0.25 || l.FF.Dropout != 0.25 {
		t.Errorf("configuration of the heads %+v, dropout of the network %v", c, l.FF.Dropout)
	}
	var names []string
	for name := range l.Params() {
		names = append(names, name)
	}
	if names[0] != "norm1.weight" || !slices.Contains(names, "self.q.weight") || names[len(names)-1] != "ff.out.bias" {
		t.Errorf("parameters %v", names)
	}
}

func TestEncoderLayerErrors(t *testing.T) {
	for _, c := range []struct {
		config attn.EncoderConfig
		want   string
	}{
		{attn.EncoderConfig{Width: 6, Heads: 3, Hidden: -1}, "attn: NewEncoderLayer: hidden width -1 is negative"},
		{attn.EncoderConfig{Width: 7, Heads: 3}, "attn: NewMultiHead: width 7 is not divisible by 3 heads"},
		{attn.EncoderConfig{Width: 6, Heads: 3, Dropout: 1}, "attn: NewMultiHead: dropout 1 is outside [0, 1)"},
	} {
		if _, err := attn.NewEncoderLayer(c.config, nil); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// The output of each sublayer is dropped in training only, and the
// residual connection never. A sublayer with zero output weights returns its bias, so dropout
// can only change the bias.
func TestEncoderLayerDrops(t *testing.T) {
	for _, first := range []bool{false, true} {
		for _, live := range []string{"", "attention", "network"} {
			rng := rand.New(rand.NewPCG(1, 2))
			l, err := attn.NewEncoderLayer(attn.EncoderConfig{Width: 6, Heads: 3, Dropout: 0.5, NormFirst: first}, rng)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range []*tensor.Tensor{l.Self.Out.Weight, l.Self.Out.Bias, l.FF.Out.Weight, l.FF.Out.Bias} {
				clear(p.Data())
			}
			bias := map[string]*tensor.Tensor{"attention": l.Self.Out.Bias, "network": l.FF.Out.Bias}[live]
			if bias != nil {
				copy(bias.Data(), []float32{2, 3, 5, 7, 11, 13})
			}
			x := tensor.Randn(rng, 2, 5, 6)
			plain := l.Forward(nil, x, attn.Options{}).Out.Data()
			for mode, drops := range map[tensor.Mode]bool{tensor.Eval: false, tensor.Train: live != ""} {
				got := l.Forward(tensortest.Tape(mode), x, attn.Options{}).Out.Data()
				if slices.Equal(got, plain) == drops {
					t.Errorf("norm first %v, output of %q, mode %v: changed by dropout is %v, want %v", first, live, mode, !drops, drops)
				}
			}
		}
	}
}

// TestEncoderLayerGradients compares gradients with finite differences, with all options set.
func TestEncoderLayerGradients(t *testing.T) {
	for _, first := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(1, 2))
		l, err := attn.NewEncoderLayer(attn.EncoderConfig{Width: 6, Heads: 2, Hidden: 5, NormFirst: first, Activation: tensor.GELU}, rng)
		if err != nil {
			t.Fatal(err)
		}
		x := tensor.Randn(rng, 2, 3, 6).Param()
		bias := tensor.Randn(rng, 2, 3, 3).Param()
		in := []*tensor.Tensor{x, bias}
		for name, p := range l.Params() {
			if name == "self.k.bias" { // it shifts all scores of a query equally, so its gradient is rounding noise
				continue
			}
			in = append(in, p)
		}
		name := fmt.Sprint("encoder layer, norm first ", first)
		tensortest.GradCheck(t, name, func(tape *tensor.Tape, _ []*tensor.Tensor) *tensor.Tensor {
			return l.Forward(tape, x, attn.Options{Bias: bias, Mask: mask.Causal()}).Out
		}, in)
	}
}

// An encoder layer returns all requested results of its attention.
func TestEncoderLayerReturnsLogSumExp(t *testing.T) {
	for _, first := range []bool{false, true} {
		l, err := attn.NewEncoderLayer(attn.EncoderConfig{Width: 6, Heads: 3, NormFirst: first}, newRand(1))
		if err != nil {
			t.Fatal(err)
		}
		x := tensor.Randn(newRand(2), 2, 5, 6)
		in := x
		if first {
			in = l.Norm1.Forward(nil, x)
		}
		got := l.Forward(nil, x, attn.Options{LogSumExp: true}).LogSumExp
		want := l.Self.Forward(nil, in, in, in, attn.Options{LogSumExp: true}).LogSumExp
		if got == nil {
			t.Fatalf("norm first %v: no log-sum-exp", first)
		}
		for i, w := range want.Data() {
			if got.Data()[i] != w {
				t.Fatalf("norm first %v: log-sum-exp %d is %v, want %v", first, i, got.Data()[i], w)
			}
		}
	}
}
