package attn_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// positionedLayers are layers with everything that acts between projection and attention.
func positionedLayers(t testing.TB) map[string]attn.MultiHeadConfig {
	rope := func(c position.RoPEConfig) *position.RoPE {
		r, err := position.NewRoPE(c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	rms := func(seed uint64) *nn.RMSNorm {
		return &nn.RMSNorm{Weight: tensor.Uniform(newRand(seed), 0.5, 1.5, 10).Param(), Eps: 1e-3}
	}
	config := func(f func(c *attn.MultiHeadConfig)) attn.MultiHeadConfig {
		c := attn.MultiHeadConfig{Width: 15, Heads: 6, KVHeads: 3, HeadSize: 10, ValueSize: 7, Bias: attn.AllProjections &^ attn.Key}
		f(&c)
		return c
	}
	return map[string]attn.MultiHeadConfig{
		"RoPE": config(func(c *attn.MultiHeadConfig) { c.Position = rope(position.RoPEConfig{}) }),
		"partial, pairs": config(func(c *attn.MultiHeadConfig) {
			c.Position = rope(position.RoPEConfig{Size: 6, Pairs: position.AdjacentPairs})
		}),
		"norms":    config(func(c *attn.MultiHeadConfig) { c.QueryNorm, c.KeyNorm = rms(3), rms(5) }),
		"one norm": config(func(c *attn.MultiHeadConfig) { c.KeyNorm = nn.L2Norm{} }),
		"sinks":    config(func(c *attn.MultiHeadConfig) { c.Sinks = true }),
		"all": config(func(c *attn.MultiHeadConfig) {
			c.Position, c.Sinks = rope(position.RoPEConfig{Scaling: position.ScaleYaRN(position.YaRN{Factor: 4, Trained: 32})}), true
			c.QueryNorm, c.KeyNorm = rms(7), rms(11)
		}),
		"all, sequence first": config(func(c *attn.MultiHeadConfig) {
			c.Position, c.Sinks, c.Layout = rope(position.RoPEConfig{}), true, attn.SequenceFirst
			c.QueryNorm, c.KeyNorm = rms(7), rms(11)
		}),
		"additive, a user's position": config(func(c *attn.MultiHeadConfig) {
			c.Position, c.Score, c.Bias = fade{0.9}, score.NewAdditive(10, 10, 5, newRand(13)), attn.NoProjection
		}),
		"a user's score": config(func(c *attn.MultiHeadConfig) {
			c.Position, c.Score, c.Sinks = rope(position.RoPEConfig{}), score.Func(ownNonlinearScore), true
		}),
	}
}

// positionedLayer returns a layer with random sinks instead of 0.
func positionedLayer(t testing.TB, c attn.MultiHeadConfig) *attn.MultiHead {
	m := mustMultiHead(t, c)
	if m.Sinks != nil {
		copy(m.Sinks.Data(), tensor.Randn(newRand(17), m.Sinks.Len()).Data())
	}
	return m
}

// fade is a user-defined position: vectors get shorter with the position.
type fade struct{ by float64 }

func (fade) Check(int) error { return nil }

func (f fade) Apply(dst, x []float32, p int, of attn.Projections) {
	for i, v := range x {
		dst[i] = v * float32(math.Pow(f.by, float64(p)))
	}
}

func (f fade) Back(dx, dy []float32, p int, of attn.Projections) {
	for i, v := range dy {
		dx[i] += v * float32(math.Pow(f.by, float64(p)))
	}
}

// swapped exchanges the first two axes in layout SequenceFirst.
func swapped(layout attn.Layout, x *tensor.Tensor) *tensor.Tensor {
	if layout == attn.SequenceFirst {
		return tensor.Transpose(nil, x, 1, 0, 2)
	}
	return x
}

// A decoder that extends its keys step by step gives the same bits as the whole sequence, with
// positions, norms and sinks.
func TestExtendWithPositions(t *testing.T) {
	const b, l = 2, 13
	for name, c := range positionedLayers(t) {
		t.Run(name, func(t *testing.T) {
			m := positionedLayer(t, c)
			x := tensor.Randn(newRand(19), b, l, c.Width)
			o := attn.Options{Mask: mask.Causal(), Changes: []attn.ScoreChange{position.ALiBi()}, Weights: true, LogSumExp: true}
			in := swapped(c.Layout, x)
			whole := m.Forward(nil, in, in, in, o)
			for _, steps := range [][]int{{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {7, 1, 3, 2}, {13}} {
				kv, err := m.NewCache(b, attn.CacheConfig{})
				if err != nil {
					t.Fatal(err)
				}
				at := 0
				for _, n := range steps {
					y := m.Extend(nil, swapped(c.Layout, pick(x, 1, at, at+n)), kv, o)
					tensortest.Same(t, fmt.Sprint("out from ", at), swapped(c.Layout, y.Out).Data(), pick(swapped(c.Layout, whole.Out), 1, at, at+n).Data())
					tensortest.Same(t, fmt.Sprint("weights from ", at), y.Weights.Data(), pick(pick(whole.Weights, 2, at, at+n), 3, 0, at+n).Data())
					tensortest.Same(t, fmt.Sprint("log-sum-exp from ", at), y.LogSumExp.Data(), pick(whole.LogSumExp, 2, at, at+n).Data())
					at += n
				}
			}
		})
	}
}

// Positions are relative: shifted positions give the same result within rounding, with Offsets or
// IDs.
func TestUserDefinedPositions(t *testing.T) {
	c := positionedLayers(t)["RoPE"]
	m := positionedLayer(t, c)
	x := tensor.Randn(newRand(23), 2, 5, c.Width)
	at := func(p attn.Positions) *tensor.Tensor {
		return m.Forward(nil, x, x, x, attn.Options{QueryPositions: p, KeyPositions: p}).Out
	}
	first := m.Forward(nil, x, x, x, attn.Options{}).Out
	tensortest.Same(t, "from 0", at(attn.Positions{Offsets: []int{0}}).Data(), first.Data())
	tensortest.Near(t, "further on", at(attn.Positions{Offsets: []int{100, 37}}), first)
	tensortest.Same(t, "by number", at(attn.Positions{IDs: [][]int{{7, 8, 9, 10, 11}}}).Data(), at(attn.Positions{Offsets: []int{7}}).Data())
	if y := at(attn.Positions{IDs: [][]int{{4, 3, 2, 1, 0}}}); slices.Equal(y.Data(), first.Data()) {
		t.Error("positions in another order change nothing")
	}
	// Padding on the left: positions after it start at 0.
	padded := tensor.Concat(nil, 1, tensor.Randn(newRand(29), 2, 3, c.Width), x)
	ids := [][]int{{0, 0, 0, 0, 1, 2, 3, 4}}
	keys := mask.AllowFunc(func(_, _, _, j int) bool { return j >= 3 })
	y := m.Forward(nil, padded, padded, padded, attn.Options{Mask: keys, QueryPositions: attn.Positions{IDs: ids}, KeyPositions: attn.Positions{IDs: ids}}).Out
	tensortest.Near(t, "padding on the left", pick(y, 1, 3, 8), first)
}

func TestPositionedGradients(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: differences; TestGoldenPositions in position has gradients")
	}
	for name, c := range positionedLayers(t) {
		if name == "a user's score" {
			continue // not smooth enough for differences; TestCombinations covers a similar case
		}
		t.Run(name, func(t *testing.T) {
			m := positionedLayer(t, c)
			in := []*tensor.Tensor{swapped(c.Layout, tensor.Randn(newRand(31), 2, 5, c.Width))}
			for _, p := range m.Params() {
				in = append(in, p)
			}
			tensortest.GradCheck(t, name, func(tape *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
				return m.Forward(tape, in[0], in[0], in[0], attn.Options{Mask: mask.Causal()}).Out
			}, in)
		})
	}
}

// A pruned layer keeps the norms, the positions and the sinks of the remaining heads.
func TestKeepWithPositions(t *testing.T) {
	for name, c := range positionedLayers(t) {
		m := positionedLayer(t, c)
		x, dout := swapped(c.Layout, tensor.Randn(newRand(37), 2, 5, c.Width)), swapped(c.Layout, tensor.Randn(newRand(41), 2, 5, c.Width))
		o := attn.Options{Mask: mask.Causal(), Weights: true}
		for _, keep := range [][]int{{2, 3}, {0, 1, 4, 5}, {0, 1, 2, 3, 4, 5}, nil} {
			small, err := m.Keep(keep)
			if err != nil {
				t.Fatal(err)
			}
			gated := o
			gated.Gates = tensor.Zeros(6)
			for _, h := range keep {
				gated.Gates.Data()[h] = 1
			}
			want := restrict(m, runLayer(m, x, x, x, dout, gated), keep)
			if c.Sinks {
				sinks := tensor.Zeros(len(keep))
				for i, h := range keep {
					sinks.Data()[i] = want["dsinks"].Data()[h]
				}
				want["dsinks"] = sinks
			}
			got := runLayer(small, x, x, x, dout, o)
			if len(keep) == 0 { // norms of nothing
				for _, n := range []string{"dq_norm.weight", "dk_norm.weight"} {
					if got[n] != nil && magnitude(got[n]) != 0 {
						t.Errorf("%s: %s without heads is %v", name, n, got[n])
					}
				}
			}
			near(t, fmt.Sprintf("%s: keeping %v", name, keep), got, want)
		}
	}
}

func TestPositionedParams(t *testing.T) {
	c := positionedLayers(t)["all"]
	var got []string
	m := positionedLayer(t, c)
	for name := range m.Params() {
		got = append(got, name)
	}
	want := []string{"q.weight", "q.bias", "k.weight", "v.weight", "v.bias", "out.weight", "out.bias", "q_norm.weight", "k_norm.weight", "sinks"}
	if !slices.Equal(got, want) {
		t.Errorf("parameters %v, want %v", got, want)
	}
	if magnitude(mustMultiHead(t, c).Sinks) != 0 {
		t.Error("sinks do not start at 0")
	}
}

// SequenceFirst computes the same as BatchFirst, with everything that acts on heads.
func TestPositionedSequenceFirst(t *testing.T) {
	for name, c := range positionedLayers(t) {
		if c.Layout == attn.SequenceFirst {
			continue
		}
		batch := positionedLayer(t, c)
		c.Layout = attn.SequenceFirst
		sequence := positionedLayer(t, c)
		q, k := tensor.Randn(newRand(43), 2, 5, c.Width), tensor.Randn(newRand(47), 2, 7, c.Width)
		o := attn.Options{Mask: mask.Lengths(7, 4), QueryPositions: attn.Positions{}, Weights: true}
		if c.Position != nil {
			o.QueryPositions, o.KeyPositions = attn.Positions{Offsets: []int{3, 11}}, attn.Positions{Offsets: []int{1, 9}}
		}
		want := batch.Forward(nil, q, k, k, o)
		got := sequence.Forward(nil, swapped(c.Layout, q), swapped(c.Layout, k), swapped(c.Layout, k), o)
		tensortest.Same(t, name+": out", swapped(c.Layout, got.Out).Data(), want.Out.Data())
		tensortest.Same(t, name+": weights", got.Weights.Data(), want.Weights.Data())
	}
}

// A position does not change the caller's tensor, of either rank.
func TestApplyPositionKeepsItsArgument(t *testing.T) {
	for _, shape := range [][]int{{2, 3, 5, 8}, {2, 5, 8}} {
		x := tensor.Randn(newRand(3), shape...)
		before := slices.Clone(x.Data())
		for _, tape := range []*tensor.Tape{nil, tensor.NewTape(tensor.Infer), tensor.NewTape(tensor.Eval)} {
			y := attn.ApplyPosition(tape, &position.RoPE{}, x, attn.Query, attn.Positions{Offsets: []int{7}})
			if !slices.Equal(x.Data(), before) || slices.Equal(y.Data(), before) {
				t.Errorf("%v: the argument has changed, or the result is equal to it", shape)
			}
		}
	}
}
