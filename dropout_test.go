package attn_test

import (
	"math"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

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
