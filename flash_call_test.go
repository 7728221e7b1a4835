package attn_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// Attend equals its formula, for every mask and every score.
func TestFormula(t *testing.T) {
	eachHiding(t, func(t *testing.T, mask attn.Mask, c scoreCase) {
		x := newCall(c, usual).bias(usual.b, 1, usual.lq, usual.lk).mask(mask)
		x.o.SoftCap = 4
		near(t, c.name, x.runBy(attn.Attend), x.runBy(formula))
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
			nearTensor(t, fmt.Sprint("round ", round, ": gradients of both, ", name), both[name], sum)
		}
	}
}

// If weights are not requested, memory grows with the length and not with its square, forward and
// backward.
func TestMemory(t *testing.T) {
	const l, e = 3000, 8
	rng := newRand(149)
	q, k, v := tensor.Randn(rng, 1, 1, l, e).Param(), tensor.Randn(rng, 1, 1, l, e).Param(), tensor.Randn(rng, 1, 1, l, e).Param()
	dout := tensor.Randn(rng, 1, 1, l, e)
	for name, score := range map[string]attn.Score{"dot": score.Dot(), "additive": score.NewAdditive(e, e, e, rng)} {
		for _, mask := range []attn.Mask{{}, mask.Causal(), mask.AllowFunc(func(b, h, i, j int) bool { return j%7 != i%5 })} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			tape := tensor.NewTape(tensor.Train)
			y := attn.Attend(tape, q, k, v, attn.Options{Score: score, Mask: mask})
			tape.Backward(y.Out, dout)
			runtime.ReadMemStats(&after)
			if used, scores := after.TotalAlloc-before.TotalAlloc, uint64(4*l*l); used > scores/2 { // most of it is memory of tasks, which the race detector may allocate again
				t.Errorf("%s: %d bytes were allocated, where all scores would be %d", name, used, scores)
			}
		}
	}
}

// In both layouts, Extend gives step by step the result of Forward for the whole sequence.
func TestExtend(t *testing.T) {
	for _, bias := range []attn.Projections{attn.NoProjection, attn.AllProjections, attn.Query} {
		for _, config := range []attn.MultiHeadConfig{
			{Width: 12, Heads: 3, Bias: bias}, {Width: 12, Heads: 4, KVHeads: 2, HeadSize: 5, ValueSize: 7, Bias: bias},
		} {
			for _, layout := range []attn.Layout{attn.BatchFirst, attn.SequenceFirst} {
				config.Layout = layout
				m := mustMultiHead(t, config)
				x, axis := tensor.Randn(newRand(137), 2, 9, 12), 1
				if layout == attn.SequenceFirst {
					x, axis = tensor.Transpose(nil, x, 1, 0, 2), 0
				}
				o := attn.Options{Mask: mask.Causal()}
				whole := m.Forward(nil, x, x, x, o).Out
				cache := mustCache(t, m, 2, attn.CacheConfig{})
				for _, step := range [][2]int{{0, 4}, {4, 5}, {5, 9}} {
					now := pick(x, axis, step[0], step[1])
					y := m.Extend(nil, now, cache, o)
					what := fmt.Sprintf("layout %d, step %v", layout, step)
					tensortest.Same(t, what, y.Out.Data(), pick(whole, axis, step[0], step[1]).Data())
					if lens := cache.Lens(); !slices.Equal(lens, []int{step[1], step[1]}) {
						t.Errorf("after step %v: %v keys", step, lens)
					}
				}
			}
		}
	}
}

// The projections of a layer may be replaced at any time.
func TestReplacedProjections(t *testing.T) {
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3})
	other := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3})
	x := tensor.Randn(newRand(139), 2, 5, 12)
	before := m.Forward(nil, x, x, x, attn.Options{}).Out
	for i := range other.K.Weight.Data() {
		other.K.Weight.Data()[i] *= 2
	}
	want := other.Forward(nil, x, x, x, attn.Options{}).Out
	m.K = other.K
	got := m.Forward(nil, x, x, x, attn.Options{}).Out
	tensortest.Same(t, "with the other's key map", got.Data(), want.Data())
	same := true
	for i, v := range before.Data() {
		same = same && v == got.Data()[i]
	}
	if same {
		t.Error("another key map makes no difference")
	}
}
