package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

func names(m nn.Module) []string {
	var all []string
	for name := range m.Params() {
		all = append(all, name)
	}
	return all
}

// joined is a module from the result of Join.
type joined []nn.Named

func (j joined) Params() nn.Params { return nn.Join(j...) }

func TestNames(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	linear, bare := nn.NewLinear(3, 5, true, rng), nn.NewLinear(3, 5, false, rng)
	frozen := nn.Vars{{Name: "table", Tensor: tensor.Zeros(7)}, {Name: "absent"}}
	for _, c := range []struct {
		m     nn.Module
		want  []string
		count int
	}{
		{linear, []string{"weight", "bias"}, 20},
		{bare, []string{"weight"}, 15},
		{nn.NewEmbedding(11, 3, 1, rng), []string{"weight"}, 33},
		{nn.NewLayerNorm(7), []string{"weight", "bias"}, 14},
		{nn.NewRMSNorm(7), []string{"weight"}, 7},
		{nn.L2Norm{}, nil, 0},
		{nn.NewFeedForward(3, 5, 0, rng), []string{"in.weight", "in.bias", "out.weight", "out.bias"}, 38},
		{nn.NewGRU(5, 3, rng), []string{"weight_ih", "weight_hh", "bias_ih", "bias_hh"}, 45 + 27 + 18},
		{frozen, []string{"table"}, 0},
		{joined{{"a", bare}, {"absent", nil}, {"", frozen}, {"b.c", linear}}, []string{"a.weight", "table", "b.c.weight", "b.c.bias"}, 35},
		{joined(nn.Numbered("layer", []*nn.Linear{bare, linear})), []string{"layer.0.weight", "layer.1.weight", "layer.1.bias"}, 35},
		{joined{}, nil, 0},
	} {
		if got := names(c.m); !slices.Equal(got, c.want) {
			t.Errorf("%T: names %v, want %v", c.m, got, c.want)
		}
		if got := nn.Count(c.m); got != c.count {
			t.Errorf("%T: %d trainable numbers, want %d", c.m, got, c.count)
		}
		for stop := range c.want { // a loop may stop early
			seen := 0
			for range c.m.Params() {
				if seen++; seen > stop {
					break
				}
			}
		}
	}
}

func TestInit(t *testing.T) {
	const in, out = 400, 225
	rng := rand.New(rand.NewPCG(4, 2))
	linear, gru := nn.NewLinear(in, out, true, rng), nn.NewGRU(31, 100, rng)
	for _, c := range []struct {
		name  string
		p     *tensor.Tensor
		shape []int
		bound float64
	}{
		{"Linear weight", linear.Weight, []int{out, in}, 1 / math.Sqrt(in)},
		{"Linear bias", linear.Bias, []int{out}, 1 / math.Sqrt(in)},
		{"GRU weight_ih", gru.WeightIH, []int{300, 31}, 0.1},
		{"GRU weight_hh", gru.WeightHH, []int{300, 100}, 0.1},
		{"GRU bias_ih", gru.BiasIH, []int{300}, 0.1},
		{"GRU bias_hh", gru.BiasHH, []int{300}, 0.1},
		{"Xavier", nn.Xavier(rng, out, in), []int{out, in}, math.Sqrt(6.0 / (in + out))},
		{"Torch", nn.Torch(rng, out, in), []int{out, in}, 1 / math.Sqrt(in)},
	} {
		if !slices.Equal(c.p.Shape(), c.shape) || !c.p.NeedsGrad() {
			t.Errorf("%s: shape %v, a parameter: %v, want %v", c.name, c.p.Shape(), c.p.NeedsGrad(), c.shape)
		}
		// The extremes of some hundred uniform numbers are near the bounds.
		lo, hi := float64(slices.Min(c.p.Data())), float64(slices.Max(c.p.Data()))
		if limit := c.bound * (1 + 1e-6); lo < -limit || hi > limit || lo > -0.9*c.bound || hi < 0.9*c.bound {
			t.Errorf("%s: from %.4g to %.4g, want ±%.4g", c.name, lo, hi, c.bound)
		}
	}
	if nn.NewLinear(3, 5, false, rng).Bias != nil {
		t.Error("a linear map without bias has one")
	}
	square := 0.0
	e := nn.NewEmbedding(101, 67, 0.02, rng)
	for _, v := range e.Weight.Data() {
		square += float64(v) * float64(v) / float64(e.Weight.Len())
	}
	if std := math.Sqrt(square); math.Abs(std-0.02) > 0.001 || !e.Weight.NeedsGrad() {
		t.Errorf("Embedding: standard deviation %.4f, want 0.02", std)
	}
	norm := nn.NewLayerNorm(3)
	if fmt.Sprint(norm.Weight, norm.Bias, norm.Eps) != "[1 1 1] [0 0 0] 1e-05" || !norm.Weight.NeedsGrad() || !norm.Bias.NeedsGrad() {
		t.Errorf("LayerNorm starts with gain %v, shift %v and eps %v", norm.Weight, norm.Bias, norm.Eps)
	}
	rms := nn.NewRMSNorm(3)
	if fmt.Sprint(rms.Weight, rms.Eps) != "[1 1 1] 1e-06" || !rms.Weight.NeedsGrad() {
		t.Errorf("RMSNorm starts with gain %v and eps %v", rms.Weight, rms.Eps)
	}
}

func TestLayersCallTheirOperations(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 3))
	x := tensor.Randn(rng, 2, 3, 5)
	linear := nn.NewLinear(5, 7, true, rng)
	tensortest.Same(t, "Linear", linear.Forward(nil, x).Data(), tensor.Linear(nil, x, linear.Weight, linear.Bias).Data())
	norm := &nn.LayerNorm{Weight: tensor.Randn(rng, 5), Bias: tensor.Randn(rng, 5), Eps: 0.1}
	tensortest.Same(t, "LayerNorm", norm.Forward(nil, x).Data(), tensor.LayerNorm(nil, x, norm.Weight, norm.Bias, 0.1).Data())
	rms := &nn.RMSNorm{Weight: tensor.Randn(rng, 5), Eps: 0.1}
	tensortest.Same(t, "RMSNorm", rms.Forward(nil, x).Data(), tensor.RMSNorm(nil, x, rms.Weight, 0.1).Data())
	tensortest.Same(t, "L2Norm", nn.L2Norm{Eps: 3}.Forward(nil, x).Data(), tensor.Normalize(nil, x, 3).Data())

	e := nn.NewEmbedding(11, 5, 1, rng)
	ids := []int{4, 0, 4, 10, 2, 0}
	y := e.Forward(nil, ids, 2, 3)
	if !slices.Equal(y.Shape(), []int{2, 3, 5}) {
		t.Errorf("Embedding: shape %v, want [2 3 5]", y.Shape())
	}
	for i, id := range ids {
		tensortest.Same(t, fmt.Sprintf("Embedding %d", i), y.Data()[i*5:][:5], e.Weight.Data()[id*5:][:5])
	}
}

func TestLayerGradients(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	ids := []int{4, 0, 4, 6, 2, 0}
	embedding := nn.NewEmbedding(7, 5, 1, rng)
	norm := &nn.LayerNorm{Weight: tensor.Randn(rng, 5), Bias: tensor.Randn(rng, 5), Eps: 0.1}
	rms := &nn.RMSNorm{Weight: tensor.Randn(rng, 5), Eps: 0.1}
	smooth := nn.NewFeedForward(5, 11, 0.3, rng)
	smooth.Activation = tensor.GELU
	// The gradient check must avoid the corner of the ReLU, so large biases keep some units always on and the others
	// always off.
	plain := nn.NewFeedForward(5, 11, 0, rng)
	for i := range plain.In.Bias.Data() {
		plain.In.Bias.Data()[i] = []float32{5, 5, -5}[i%3]
	}
	for _, c := range []struct {
		name string
		m    nn.Module
		f    func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor
	}{
		{"Embedding", embedding, func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
			return tensor.Mul(t, x, embedding.Forward(t, ids, 2, 3))
		}},
		{"LayerNorm", norm, norm.Forward},
		{"RMSNorm", rms, rms.Forward},
		{"L2Norm", nn.L2Norm{}, nn.L2Norm{}.Forward},
		{"FeedForward with GELU and dropout", smooth, smooth.Forward},
		{"FeedForward", plain, plain.Forward},
	} {
		in := []*tensor.Tensor{tensor.Randn(rng, 2, 3, 5)}
		for _, p := range c.m.Params() {
			in = append(in, p)
		}
		tensortest.GradCheck(t, c.name, func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor { return c.f(t, in[0]) }, in)
	}
}

func TestFeedForward(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	f := nn.NewFeedForward(5, 101, 0.5, rng)
	x := tensor.Randn(rng, 3, 5)
	h := tensor.ReLU(nil, tensor.Linear(nil, x, f.In.Weight, f.In.Bias))
	tensortest.Same(t, "without dropout", f.Forward(nil, x).Data(), tensor.Linear(nil, h, f.Out.Weight, f.Out.Bias).Data())

	// Dropout acts on the hidden layer, after the activation.
	tape := tensor.NewTape(tensor.Train)
	tape.Seed(0, 0)
	got := f.Forward(tape, x)
	tape.Seed(0, 0)
	h = tensor.Dropout(tape, h, 0.5)
	tensortest.Same(t, "with dropout", got.Data(), tensor.Linear(nil, h, f.Out.Weight, f.Out.Bias).Data())
}

func TestEmbeddingErrors(t *testing.T) {
	e := nn.NewEmbedding(7, 3, 1, rand.New(rand.NewPCG(1, 2)))
	for want, f := range map[string]func(){
		"nn: Embedding: ids has id 7, want 0 to 6":        func() { e.Forward(nil, []int{7}, 1, 1) },
		"nn: Embedding: ids has id -1, want 0 to 6":       func() { e.Forward(nil, []int{-1}, 1, 1) },
		"nn: Embedding: ids has 1 values, want B·L=1·2":   func() { e.Forward(nil, []int{1}, 1, 2) },
		"nn: Embedding: ids has 1 values, want B·L=-1·-1": func() { e.Forward(nil, []int{1}, -1, -1) },
	} {
		if err := tensor.Catch(f); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
