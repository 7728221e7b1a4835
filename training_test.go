package attn_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// checkAttend compares the gradients of a call, through out and weights at once, with finite
// differences.
func checkAttend(t *testing.T, name string, c call) {
	t.Helper()
	in := []*tensor.Tensor{c.q, c.k, c.v}
	if c.o.Bias != nil {
		in = append(in, c.o.Bias)
	}
	if m, ok := c.o.Score.(nn.Module); ok {
		for _, p := range m.Params() {
			in = append(in, p)
		}
	}
	tensortest.GradCheck(t, name, func(tape *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
		y := attn.Attend(tape, in[0], in[1], in[2], c.o)
		rows := y.Out.Len() / y.Out.Dim(-1)
		return tensor.Concat(tape, 1, tensor.Reshape(tape, y.Out, rows, -1), tensor.Reshape(tape, y.Weights, rows, -1))
	}, in)
}

// away moves inputs away from points where a score has no derivative: elements of q away from zero, because
// of ReLU, and away from elements of k, because of distances. It moves them to grids whose points
// are 0.1 apart.
func away(c call) {
	for x, offset := range map[*tensor.Tensor]float64{c.q: 0.1, c.k: 0} {
		for i, v := range x.Data() {
			x.Data()[i] = float32(0.2*math.Round(float64(v)/0.2) + offset)
		}
	}
}

// apart is like away, for vectors that are compared with each other: each feature gets a different value
// in each vector.
func apart(x *tensor.Tensor) {
	e := x.Dim(-1)
	n := x.Len() / e
	for f := range e {
		for i, rank := range newRand(uint64(f)).Perm(n) {
			x.Data()[i*e+f] = 0.2*float32(rank-n/2) + 0.1
		}
	}
}

func TestScoreGradients(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: differences; TestGolden has gradients")
	}
	small := sizes{b: 2, h: 2, g: 2, lq: 3, lk: 5, v: 2}
	grouped := small
	grouped.h = 4
	eachScore(t, func(t *testing.T, c scoreCase) {
		plain := newCall(c, small)
		away(plain)
		checkAttend(t, "plain", plain)
		masked := newCall(c, grouped).mask(attn.And(mask.Causal(), mask.Lengths(5, 2)))
		away(masked)
		checkAttend(t, "grouped and masked", masked)
		capped := newCall(c, small).bias(small.h, 1, small.lk)
		capped.o.SoftCap = 2
		away(capped)
		checkAttend(t, "capped, with a bias", capped)
	})
}

func TestBiasGradients(t *testing.T) {
	s := sizes{b: 2, h: 3, g: 3, lq: 3, lk: 5, v: 2}
	for _, shape := range [][]int{
		{s.b, s.h, s.lq, s.lk}, {s.h, s.lq, s.lk}, {s.lq, s.lk}, {s.lk}, {s.b, 1, 1, s.lk}, {s.h, 1, s.lk},
	} {
		checkAttend(t, fmt.Sprint("bias ", shape), newCall(kindCase("scaled"), s).bias(shape...).mask(mask.Window(2, 1)))
	}
	// A bias that is equal for all keys changes no weight.
	for _, shape := range [][]int{{s.b, 1, s.lq, 1}, {1, s.h, 1, 1}, {1}, {}} {
		x := newCall(kindCase("scaled"), s).mask(mask.Window(2, 1))
		want := x.run()
		got := x.bias(shape...).run()
		near(t, fmt.Sprint("bias ", shape), got, want)
		if m := magnitude(got["dbias"]); m > 1e-6 {
			t.Errorf("the gradient of a bias %v reaches %v, want 0", shape, m)
		}
	}
}

func TestMultiHeadGradients(t *testing.T) {
	for name, c := range map[string]attn.MultiHeadConfig{
		"default": {Width: 12, Heads: 3},
		"everything different": {
			Width: 11, Heads: 4, KVHeads: 2, HeadSize: 3, ValueSize: 5, OutWidth: 7,
			QueryWidth: 6, KeyWidth: 13, ValueWidth: 2, Bias: attn.Query | attn.Out,
			Score: score.NewAdditive(3, 3, 5, newRand(71)), Layout: attn.SequenceFirst,
		},
		// No bias on the keys: with a dot product it shifts all scores of a query equally, so its
		// gradient is only rounding noise.
		"own score": {Width: 12, Heads: 3, Bias: attn.AllProjections &^ attn.Key, Score: relative{tensor.Randn(newRand(73), 7, 4).Param()}},
	} {
		t.Run(name, func(t *testing.T) {
			m := mustMultiHead(t, c)
			c := m.Config()
			rng := newRand(79)
			shape := func(l, d int) []int {
				if c.Layout == attn.SequenceFirst {
					return []int{l, 2, d}
				}
				return []int{2, l, d}
			}
			in := []*tensor.Tensor{
				tensor.Randn(rng, shape(3, c.QueryWidth)...),
				tensor.Randn(rng, shape(5, c.KeyWidth)...),
				tensor.Randn(rng, shape(5, c.ValueWidth)...),
			}
			for _, p := range m.Params() {
				in = append(in, p)
			}
			o := attn.Options{Mask: mask.Lengths(5, 3)}
			tensortest.GradCheck(t, name, func(tape *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
				return m.Forward(tape, in[0], in[1], in[2], o).Out
			}, in)
		})
	}
}

// If one tensor is query, key and value, its gradient is the sum of three gradients.
func TestSelfAttentionGradients(t *testing.T) {
	for _, layout := range []attn.Layout{attn.BatchFirst, attn.SequenceFirst} {
		m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, Layout: layout})
		x := tensor.Randn(newRand(83), 3, 3, 12)
		tensortest.GradCheck(t, "self-attention", func(tape *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
			return m.Forward(tape, in[0], in[0], in[0], attn.Options{Mask: mask.Causal()}).Out
		}, []*tensor.Tensor{x})
	}
	eachScore(t, func(t *testing.T, c scoreCase) {
		if c.eq != c.ek {
			return
		}
		x := tensor.Randn(newRand(89), 2, 5, c.eq)
		apart(x)
		tensortest.GradCheck(t, "self-attention", func(tape *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
			return attn.Attend(tape, in[0], in[0], in[0], attn.Options{Score: c.make()}).Out
		}, []*tensor.Tensor{x})
	})
}

// A loss may use the weights and the result separately or together, and backward may run more
// than once.
func TestGradientThroughWeights(t *testing.T) {
	rng := newRand(131)
	q, k, v := tensor.Randn(rng, 2, 3, 5, 4).Param(), tensor.Randn(rng, 2, 3, 7, 4).Param(), tensor.Randn(rng, 2, 3, 7, 6).Param()
	dout, dweights := tensor.Randn(rng, 2, 3, 5, 6), tensor.Randn(rng, 2, 3, 5, 7)
	tape := tensortest.Tape(tensor.Train)
	y := attn.Attend(tape, q, k, v, attn.Options{Weights: true, Mask: mask.Causal()})
	grads := func(outs, douts []*tensor.Tensor) trace {
		for _, x := range []*tensor.Tensor{q, k, v} {
			x.ZeroGrad()
		}
		tape.BackwardAll(outs, douts)
		got := trace{}
		for name, x := range map[string]*tensor.Tensor{"q": q, "k": k, "v": v} {
			got[name] = tensor.Zeros(x.Shape()...)
			if g := x.Grad(); g != nil {
				got[name] = g.Clone()
			}
		}
		return got
	}
	for round := range 2 {
		both := grads([]*tensor.Tensor{y.Out, y.Weights}, []*tensor.Tensor{dout, dweights})
		out := grads([]*tensor.Tensor{y.Out}, []*tensor.Tensor{dout})
		weights := grads([]*tensor.Tensor{y.Weights}, []*tensor.Tensor{dweights})
		grads([]*tensor.Tensor{y.Out, y.Weights}, []*tensor.Tensor{dout, dweights})
		same(t, fmt.Sprint("round ", round, ": gradients of the weights after those of both"),
			grads([]*tensor.Tensor{y.Weights}, []*tensor.Tensor{dweights}), weights)
		for name, sum := range out {
			tensortest.Same(t, "gradient of weights to v", weights["v"].Data(), make([]float32, v.Len()))
			sum = tensor.Add(nil, sum, weights[name])
			tensortest.Near(t, fmt.Sprint("round ", round, ": gradients of both, ", name), both[name], sum)
		}
	}
}

// identity returns the identity matrix as values: the output is then the weights after
// dropout.
func identity(b, g, n int) *tensor.Tensor {
	v := tensor.Zeros(b, g, n, n)
	each(v, func(_, _, i, j int, x *float32) {
		if i == j {
			*x = 1
		}
	})
	return v
}

// dropped attends with dropout p on a training tape with the given seed.
func dropped(seed uint64, q, k, v *tensor.Tensor, p float32) attn.Output {
	tape := tensor.NewTape(tensor.Train)
	tape.Seed(seed, 0)
	return attn.Attend(tape, q, k, v, attn.Options{Dropout: p, Weights: true})
}

func TestDropout(t *testing.T) {
	const b, h, lq, lk, p = 2, 3, 19, 97, 0.25
	rng := newRand(47)
	q, k, v := tensor.Randn(rng, b, h, lq, 5), tensor.Randn(rng, b, h, lk, 5), identity(b, h, lk)
	plain := attn.Attend(nil, q, k, v, attn.Options{Weights: true})
	y := dropped(1, q, k, v, p)
	tensortest.Same(t, "weights are those before dropout", y.Weights.Data(), plain.Weights.Data())

	// Each weight is either dropped or scaled up, and the right number of weights is dropped.
	gone := 0
	for i, w := range plain.Weights.Data() {
		switch got := y.Out.Data()[i]; {
		case got == 0:
			gone++
		case math.Abs(float64(got-w/(1-p))) > 1e-6*float64(w):
			t.Fatalf("weight %v became %v, want 0 or %v", w, got, w/(1-p))
		}
	}
	n := float64(plain.Weights.Len())
	if off := (float64(gone) - n*p) / math.Sqrt(n*p*(1-p)); math.Abs(off) > 4 {
		t.Errorf("%d of %v weights dropped, %.1f standard deviations from a quarter", gone, n, off)
	}

	// No axis is dropped as a whole: neighbours on each axis are dropped independently.
	for _, step := range []int{1, lk, lq * lk, h * lq * lk} {
		alike := 0
		for i := range y.Out.Len() - step {
			if (y.Out.Data()[i] == 0) == (y.Out.Data()[i+step] == 0) {
				alike++
			}
		}
		n, want := float64(y.Out.Len()-step), p*p+(1-p)*(1-p)
		if off := (float64(alike) - n*want) / math.Sqrt(n*want*(1-want)); math.Abs(off) > 5 {
			t.Errorf("elements %d apart are alike %d times of %v, %.1f standard deviations from independence", step, alike, n, off)
		}
	}

	tensortest.Same(t, "the same seed", dropped(1, q, k, v, p).Out.Data(), y.Out.Data())
	if other := dropped(2, q, k, v, p); equalData(other.Out, y.Out) {
		t.Error("another seed drops the same weights")
	}
	for _, mode := range []tensor.Mode{tensor.Eval, tensor.Infer} {
		got := attn.Attend(tensor.NewTape(mode), q, k, v, attn.Options{Dropout: p})
		tensortest.Same(t, "not in training", got.Out.Data(), plain.Out.Data())
	}
}

func equalData(a, b *tensor.Tensor) bool {
	for i, v := range a.Data() {
		if v != b.Data()[i] {
			return false
		}
	}
	return true
}

// On average dropout changes nothing.
func TestDropoutMean(t *testing.T) {
	const runs, p = 4000, 0.4
	rng := newRand(53)
	q, k, v := tensor.Randn(rng, 1, 2, 3, 5), tensor.Randn(rng, 1, 2, 7, 5), tensor.Randn(rng, 1, 2, 7, 4)
	plain := attn.Attend(nil, q, k, v, attn.Options{})
	n := plain.Out.Len()
	sum, squares := make([]float64, n), make([]float64, n)
	for seed := range uint64(runs) {
		for i, x := range dropped(seed, q, k, v, p).Out.Data() {
			sum[i] += float64(x)
			squares[i] += float64(x) * float64(x)
		}
	}
	for i, want := range plain.Out.Data() {
		mean := sum[i] / runs
		deviation := math.Sqrt((squares[i]/runs - mean*mean) / runs)
		if off := (mean - float64(want)) / deviation; math.Abs(off) > 5 {
			t.Errorf("element %d is %v on average, want %v: %.1f standard deviations off", i, mean, want, off)
		}
	}
}

// The layers of a model drop different weights on one tape. A step repeated after Reset and Seed
// drops the same weights.
func TestDropoutOfLayers(t *testing.T) {
	rng := newRand(59)
	q, k, v := tensor.Randn(rng, 2, 3, 5, 5), tensor.Randn(rng, 2, 3, 7, 5), tensor.Randn(rng, 2, 3, 7, 4)
	tape := tensor.NewTape(tensor.Train)
	o := attn.Options{Dropout: 0.5}
	step := func() (first, second *tensor.Tensor) {
		tape.Reset()
		tape.Seed(3, 0)
		return attn.Attend(tape, q, k, v, o).Out.Clone(), attn.Attend(tape, q, k, v, o).Out.Clone()
	}
	a, b := step()
	if equalData(a, b) {
		t.Error("two layers drop the same weights")
	}
	again, _ := step()
	tensortest.Same(t, "the same step", again.Data(), a.Data())
}

// The dropout of a call overrides the dropout of its layer.
func TestMultiHeadDropout(t *testing.T) {
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, Dropout: 0.3})
	x := tensor.Randn(newRand(131), 2, 5, 12)
	run := func(mode tensor.Mode, o attn.Options) *tensor.Tensor {
		tape := tensor.NewTape(mode)
		tape.Seed(1, 0)
		return m.Forward(tape, x, x, x, o).Out
	}
	layers := run(tensor.Train, attn.Options{})
	tensortest.Same(t, "dropout 0.3", run(tensor.Train, attn.Options{Dropout: 0.3}).Data(), layers.Data())
	if equalData(run(tensor.Train, attn.Options{Dropout: 0.6}), layers) {
		t.Error("the call's dropout has no effect")
	}
	plain := m.Forward(nil, x, x, x, attn.Options{}).Out
	if equalData(layers, plain) {
		t.Error("the layer's dropout has no effect")
	}
	tensortest.Same(t, "not in training", run(tensor.Eval, attn.Options{}).Data(), plain.Data())
}

// The backward pass drops the same weights as the forward pass: the gradient matches finite
// differences of calls with the same seed.
func TestDropoutGradient(t *testing.T) {
	x := newCall(kindCase("scaled"), usual)
	o := attn.Options{Dropout: 0.3, Mask: mask.Causal()}
	tensortest.GradCheck(t, "dropout", func(tape *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
		return attn.Attend(tape, in[0], in[1], in[2], o).Out
	}, []*tensor.Tensor{x.q, x.k, x.v})

	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, Dropout: 0.3})
	in := []*tensor.Tensor{tensor.Randn(newRand(61), 2, 5, 12), tensor.Randn(newRand(67), 2, 7, 12)}
	tensortest.GradCheck(t, "layer with dropout", func(tape *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
		return m.Forward(tape, in[0], in[1], in[1], attn.Options{}).Out
	}, in)
}
