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
