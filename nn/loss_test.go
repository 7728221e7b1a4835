package nn_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

func TestCrossEntropyGolden(t *testing.T) {
	g := tensortest.Open(t, goldenDir+"ops.safetensors")
	for _, c := range []struct {
		name      string
		ignore    int
		smoothing float32
	}{
		{"cross_entropy", -1, 0},
		{"cross_entropy_smooth", 0, float32(g.Number("cross_entropy_smooth.smoothing"))},
	} {
		tape := tensortest.Tape(tensor.Train)
		logits := g.Tensor(c.name + ".in0").Param()
		loss := nn.CrossEntropy(tape, logits, g.Ints(c.name+".in1"), c.ignore, c.smoothing)
		g.Check(c.name+".want", loss)
		tape.Backward(loss, tensor.New(g.Tensor(c.name+".dout").Data()))
		g.CheckGrad(c.name+".grad0", logits)
	}
}

func TestCrossEntropyGradients(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	for _, targets := range [][]int{{3, 0, 6, 6, 1, 2}, {3, -1, -1, 6, 1, -1}} {
		for _, smoothing := range []float32{0, 0.1, 0.9} {
			name := fmt.Sprintf("targets %v, smoothing %v", targets, smoothing)
			tensortest.GradCheck(t, name, func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
				return nn.CrossEntropy(t, in[0], targets, -1, smoothing)
			}, []*tensor.Tensor{tensor.Randn(rng, 2, 3, 7)})
		}
	}
	tensortest.GradCheck(t, "MSE", func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
		return nn.MSE(t, in[0], in[1])
	}, []*tensor.Tensor{tensor.Randn(rng, 5, 7), tensor.Randn(rng, 5, 7)})
}

// Ignored targets give the same result as leaving their rows out.
func TestCrossEntropyIgnores(t *testing.T) {
	const classes, pad = 7, 2
	rng := rand.New(rand.NewPCG(1, 7))
	logits := tensor.Randn(rng, 3, classes)
	run := func(logits *tensor.Tensor, targets []int) (loss, grad *tensor.Tensor) {
		tape := tensortest.Tape(tensor.Train)
		logits = logits.Clone().Param()
		loss = nn.CrossEntropy(tape, logits, targets, pad, 0.1)
		tape.Backward(loss, nil)
		return loss, logits.Grad()
	}
	want, wantGrad := run(logits, []int{3, 0, 6})
	// The same rows, followed by rows of NaN.
	padded := tensor.Concat(nil, 0, logits, tensor.Full(float32(math.NaN()), 2, classes))
	got, gotGrad := run(padded, []int{3, 0, 6, pad, pad})
	tensortest.Same(t, "loss", got.Data(), want.Data())
	tensortest.Same(t, "gradient", gotGrad.Data(), append(wantGrad.Data(), make([]float32, 2*classes)...))

	nothing, noGrad := run(padded, []int{pad, pad, pad, pad, pad})
	tensortest.Same(t, "loss of nothing", nothing.Data(), []float32{0})
	if noGrad != nil {
		t.Errorf("gradient of nothing is %v, want none", noGrad)
	}
}

// A vocabulary larger than one thread's share, compared with the formula in float64.
func TestCrossEntropyOfManyClasses(t *testing.T) {
	const rows, classes, smoothing = 3, 5003, 0.1
	rng := rand.New(rand.NewPCG(1, 9))
	logits := tensor.Randn(rng, rows, classes).Param()
	targets := []int{0, -1, 5002}
	tape := tensortest.Tape(tensor.Train)
	loss := nn.CrossEntropy(tape, logits, targets, -1, smoothing)
	tape.Backward(loss, nil)

	want, grad := 0.0, make([]float64, rows*classes)
	for r, target := range targets {
		if target < 0 {
			continue
		}
		row, g := logits.Data()[r*classes:][:classes], grad[r*classes:][:classes]
		var sum, mean float64
		for _, v := range row {
			sum += math.Exp(float64(v))
			mean += float64(v) / classes
		}
		want += (math.Log(sum) - (1-smoothing)*float64(row[target]) - smoothing*mean) / 2
		for c, v := range row {
			g[c] = (math.Exp(float64(v))/sum - smoothing/classes) / 2
		}
		g[target] -= (1 - smoothing) / 2
	}
	tensortest.Close(t, "loss", loss.Data(), []float64{want}, 1e-6)
	for i, g := range logits.Grad().Data() { // of the order of 1e-4, too small for Close
		if math.Abs(float64(g)-grad[i]) > 1e-9+1e-5*math.Abs(grad[i]) {
			t.Fatalf("gradient %d is %v, want %v", i, g, grad[i])
		}
	}
}

func TestCrossEntropyOfExtremes(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		name   string
		logits []float32
		want   float64
	}{
		{"a class that is ruled out", []float32{0, 0, -inf}, math.Ln2},
		{"sure and right", []float32{1e4, 0, -1e4}, 0},
		{"sure and wrong", []float32{0, 1e4, -1e4}, 1e4},
	} {
		logits := tensor.New(c.logits, 1, 3).Param()
		tape := tensortest.Tape(tensor.Train)
		loss := nn.CrossEntropy(tape, logits, []int{0}, -1, 0)
		tensortest.Close(t, c.name, loss.Data(), []float64{c.want}, 0)
		tape.Backward(loss, nil)
		for i, d := range logits.Grad().Data() {
			if !(d >= -1 && d <= 1) {
				t.Errorf("%s: gradient %d is %v", c.name, i, d)
			}
		}
	}
}

func TestBadShapes(t *testing.T) {
	z := tensor.Zeros
	g := nn.NewGRU(5, 3, rand.New(rand.NewPCG(1, 1)))
	gru := func(x, h0 *tensor.Tensor, lens ...int) func() {
		return func() { g.Forward(nil, x, h0, lens, nn.Forward) }
	}
	for _, c := range []struct {
		f    func()
		want string
	}{
		{func() { nn.CrossEntropy(nil, z(2, 3, 5), []int{1, 2}, -1, 0) }, "nn: CrossEntropy: targets has 2 values, want one for each vector of logits [2 3 5]"},
		{func() { nn.CrossEntropy(nil, z(2, 5), []int{1, 5}, -1, 0) }, "nn: CrossEntropy: targets has class 5, want 0 to 4"},
		{func() { nn.CrossEntropy(nil, z(2, 5), []int{-2, 1}, -1, 0) }, "nn: CrossEntropy: targets has class -2, want 0 to 4"},
		{func() { nn.CrossEntropy(nil, z(), []int{0}, -1, 0) }, "nn: CrossEntropy: logits has shape [], want [… C]"},
		{func() { nn.MSE(nil, z(2, 5), z(2, 3)) }, "tensor: Sub: b has shape [2 3], want a shape that broadcasts with [2 5]"},
		{gru(z(2, 5), nil), "nn: GRU: x has shape [2 5], want [B L D=5]"},
		{gru(z(2, 7, 3), nil), "nn: GRU: x has shape [2 7 3], want [B L D=5]"},
		{gru(z(2, 7, 5), z(1, 3)), "nn: GRU: h0 has shape [1 3], want [B=2 H=3]"},
		{gru(z(2, 7, 5), z(2, 5)), "nn: GRU: h0 has shape [2 5], want [B=2 H=3]"},
		{gru(z(2, 7, 5), z(1, 2, 3)), "nn: GRU: h0 has shape [1 2 3], want [B=2 H=3]"},
		{gru(z(2, 7, 5), nil, 7), "nn: GRU: lens has 1 lengths, want B=2"},
		{gru(z(2, 7, 5), nil, 7, 8), "nn: GRU: lens has lengths [7 8], want 0 to L=7"},
		{gru(z(2, 7, 5), nil, -1, 7), "nn: GRU: lens has lengths [-1 7], want 0 to L=7"},
		{func() { nn.NewLayerNorm(3).Forward(nil, z(2, 5)) }, "tensor: LayerNorm: gain has shape [3], want [5]"},
		{func() { nn.NewLinear(3, 5, true, rand.New(rand.NewPCG(1, 1))).Forward(nil, z(2, 5)) }, "tensor: Linear: w has shape [5 3], want [Out In=5]"},
		{func() {
			nn.NewEmbedding(3, 5, 1, rand.New(rand.NewPCG(1, 1))).Forward(nil, []int{0, 3}, 1, 2)
		}, "nn: Embedding: ids has id 3, want 0 to 2"},
		{func() {
			nn.NewEmbedding(3, 5, 1, rand.New(rand.NewPCG(1, 1))).Forward(nil, []int{0, 1, 2}, 2, 2)
		}, "nn: Embedding: ids has 3 values, want B·L=2·2"},
	} {
		err := tensor.Catch(c.f)
		var shape *tensor.ShapeError
		if !errors.As(err, &shape) || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

func TestBadValues(t *testing.T) {
	z, rng := tensor.Zeros, rand.New(rand.NewPCG(1, 1))
	smoothed := func(s float32) func() {
		return func() { nn.CrossEntropy(nil, z(2, 5), []int{1, 2}, -1, s) }
	}
	nan := float32(math.NaN())
	const noRand = "tensor: Uniform: rng is nil, want a *rand.Rand"
	for _, c := range []struct {
		f    func()
		want string
	}{
		{smoothed(2), "nn: CrossEntropy: smoothing is 2, want a number in [0, 1)"},
		{smoothed(1), "nn: CrossEntropy: smoothing is 1, want a number in [0, 1)"},
		{smoothed(-0.1), "nn: CrossEntropy: smoothing is -0.1, want a number in [0, 1)"},
		{smoothed(nan), "nn: CrossEntropy: smoothing is NaN, want a number in [0, 1)"},
		{func() { nn.CrossEntropy(nil, nil, []int{1}, -1, 0) }, "nn: CrossEntropy: logits is nil, want a tensor"},
		{func() { nn.MSE(nil, nil, z(2)) }, "tensor: Sub: a is nil, want a tensor"},
		{func() { nn.MSE(nil, z(2), nil) }, "tensor: Sub: b is nil, want a tensor"},
		{func() { new(nn.GRU).Forward(nil, z(2, 7, 5), nil, nil, nn.Forward) }, "nn: GRU: weight_ih is nil, want a tensor"},
		{func() { nn.NewGRU(5, 3, rng).Forward(nil, nil, nil, nil, nn.Forward) }, "nn: GRU: x is nil, want a tensor"},
		{func() { new(nn.Linear).Forward(nil, z(2, 5)) }, "tensor: Linear: w is nil, want a tensor"},
		{func() { nn.NewLinear(5, 3, true, rng).Forward(nil, nil) }, "tensor: Linear: x is nil, want a tensor"},
		{func() { new(nn.Embedding).Forward(nil, []int{0}, 1, 1) }, "nn: Embedding: weight is nil, want a tensor"},
		{func() { new(nn.LayerNorm).Forward(nil, z(2, 5)) }, "tensor: LayerNorm: shift is nil, want a tensor"},
		{func() { (&nn.FeedForward{In: nn.NewLinear(5, 3, true, rng)}).Forward(nil, z(2, 5)) }, "nn: FeedForward: activation is nil, want a function such as tensor.ReLU"},
		{func() { nn.NewFeedForward(5, 7, 1.5, rng).Forward(nil, z(2, 5)) }, "tensor: Dropout: p is 1.5, want a probability in [0, 1)"},
		{func() { nn.NewLinear(5, 3, true, nil) }, noRand},
		{func() { nn.NewFeedForward(5, 3, 0, nil) }, noRand},
		{func() { nn.NewGRU(5, 3, nil) }, noRand},
		{func() { nn.Xavier(nil, 5, 3) }, noRand},
		{func() { nn.Torch(nil, 5, 3) }, noRand},
		{func() { nn.NewEmbedding(5, 3, 1, nil) }, "tensor: Randn: rng is nil, want a *rand.Rand"},
	} {
		err := tensor.Catch(c.f)
		var value *tensor.ValueError
		if !errors.As(err, &value) || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	for _, f := range []func(){
		func() { nn.NewLinear(1<<31-1, 1<<31-1, true, rng) },
		func() { nn.NewEmbedding(1<<31-1, 1<<31-1, 1, rng) },
		func() { nn.NewLinear(-1, 3, true, rng) },
		func() { nn.Xavier(rng) },
	} {
		var shape *tensor.ShapeError
		if err := tensor.Catch(f); !errors.As(err, &shape) {
			t.Errorf("error %v, want a *ShapeError", err)
		}
	}
	if l := nn.NewLinear(0, 3, true, rng); math.IsNaN(float64(l.Bias.At(0))) {
		t.Error("a map of no features has NaN for a bias")
	}
}
