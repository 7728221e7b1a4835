package nn_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/tensor"
)

// manyParams returns parameters of many sizes with gradients.
func manyParams() nn.Vars {
	rng := rand.New(rand.NewPCG(7, 8))
	var vars nn.Vars
	for i, n := range []int{1, 100_003, 7, 0, 128, 20_001, 128, 128, 33, 70_000, 16, 5} {
		p, g := tensor.Randn(rng, n).Param(), tensor.Randn(rng, n)
		if i != 6 { // the parameter without a gradient
			tape := tensor.NewTape(tensor.Eval)
			tape.Backward(tensor.Sum(tape, tensor.Mul(tape, p, g)), nil)
		}
		vars = append(vars, nn.Var{Name: fmt.Sprint(i), Tensor: p})
	}
	return vars
}

// Clearing, clipping and updating are one loop each over all parameters, with the same bits for any number of threads.
func TestLoopsOfAStep(t *testing.T) {
	var want []float32
	for _, threads := range []int{1, 2, 3, 16, 64} {
		vars := manyParams()
		adam := optim.NewAdamW(vars)
		loops := func(name string, most int, f func()) {
			t.Helper()
			s := par.Trace(threads, 1, f)
			if len(s.Loops) > most {
				t.Errorf("%d threads: %s is %d loops, want %d", threads, name, len(s.Loops), most)
			}
			if n := len(s.Loops[0].Chunks); n < min(threads, 16) {
				t.Errorf("%d threads: %s has %d chunks", threads, name, n)
			}
		}
		var norm float32
		loops("clipping", 2, func() { norm = optim.ClipGradNorm(vars, 3) })
		loops("AdamW", 1, func() { adam.Step(0.01) })
		adam.Step(0.01)
		got := []float32{norm}
		for _, p := range vars.Params() {
			got = append(got, p.Data()...)
		}
		for _, x := range adam.State() {
			got = append(got, x.Data()...)
		}
		if want = slices.Concat(want, got)[:len(got)]; !slices.Equal(got, want) {
			t.Errorf("%d threads: other numbers", threads)
		}
		loops("clearing", 1, func() { optim.ZeroGrad(vars) })
		for name, p := range vars.Params() {
			if g := p.Grad(); g != nil && slices.ContainsFunc(g.Data(), func(v float32) bool { return v != 0 }) {
				t.Errorf("the gradient of %s is not cleared", name)
			}
		}
	}
}

// AddNorm and EmbeddingSum are the layers one after the other.
func TestSumsOfLayers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := tensor.Randn(rng, 2, 3, 5), tensor.Randn(rng, 2, 3, 5)
	for _, norm := range []nn.Norm{nn.NewLayerNorm(5), nn.NewRMSNorm(5), nn.L2Norm{Eps: 1e-6}} {
		sum, out := nn.AddNorm(nil, norm, x, y, 0.5)
		want := tensor.Add(nil, x, y)
		if !slices.Equal(sum.Data(), want.Data()) || !slices.Equal(out.Data(), norm.Forward(nil, want).Data()) {
			t.Errorf("%T: %v, %v", norm, sum, out)
		}
	}
	a, b := nn.NewEmbedding(7, 5, 1, rng), nn.NewEmbedding(3, 5, 1, rng)
	ids := [][]int{{6, 1, 1, 0, 2, 3}, {0, 1, 2, 0, 1, 2}}
	sum := nn.EmbeddingSum(nil, []*nn.Embedding{a, b}, ids, 2, 3)
	want := tensor.Add(nil, a.Forward(nil, ids[0], 2, 3), b.Forward(nil, ids[1], 2, 3))
	if !slices.Equal(sum.Data(), want.Data()) || !slices.Equal(sum.Shape(), want.Shape()) {
		t.Errorf("sum %v, want %v", sum, want)
	}
	for _, ids := range [][][]int{{}, {ids[0]}, {ids[0], ids[0]}, {ids[0], ids[1][:5]}} {
		if err := tensor.Catch(func() { nn.EmbeddingSum(nil, []*nn.Embedding{a, b}, ids, 2, 3) }); err == nil {
			t.Errorf("no error for %v", ids)
		}
	}
}
