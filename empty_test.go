package attn_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// Without keys, a query attends to no key: results are zero on every path, and gradients exist
// and are zero. Without queries or sequences, the results are empty.
func TestNothingToAttendTo(t *testing.T) {
	check := func(t *testing.T, name string, got trace) {
		t.Helper()
		for what, x := range got {
			tensortest.Same(t, fmt.Sprintf("%s: %s", name, what), x.Data(), make([]float32, x.Len()))
		}
	}
	eachScore(t, func(t *testing.T, c scoreCase) {
		for _, s := range []sizes{
			{b: 2, h: 6, g: 3, lq: 5, lk: 0, v: 3}, {b: 2, h: 6, g: 6, lq: 1, lk: 0, v: 3}, {b: 2, h: 1, g: 1, lq: 5, lk: 0, v: 3},
			{b: 2, h: 6, g: 3, lq: 0, lk: 7, v: 3}, {b: 0, h: 6, g: 3, lq: 5, lk: 7, v: 3}, {b: 0, h: 6, g: 3, lq: 5, lk: 0, v: 3},
			{b: 2, h: 6, g: 3, lq: 0, lk: 0, v: 0},
		} {
			for _, mask := range []attn.Mask{{}, mask.Causal(), mask.AllowFunc(func(_, _, _, _ int) bool { return true })} {
				for _, asked := range []bool{false, true} {
					call := newCall(c, s).bias(s.h, s.lq, s.lk).mask(mask)
					call.o.Weights, call.o.SoftCap, call.o.Gates = asked, 5, tensor.Full(1, s.h).Param()
					got := call.run()
					check(t, fmt.Sprintf("%+v", s), got)
					if want := []int{s.b, s.h, s.lq, s.v}; !slices.Equal(got["out"].Shape(), want) {
						t.Errorf("%+v: out has shape %v, want %v", s, got["out"].Shape(), want)
					}
				}
			}
		}
	})

	for name, score := range innerScores() {
		for _, layout := range []attn.Layout{attn.BatchFirst, attn.SequenceFirst} {
			for _, config := range []attn.MultiHeadConfig{{Heads: 6, KVHeads: 2}, {Heads: 6}, {Heads: 1, HeadSize: 5}} {
				config.Width, config.Score, config.Layout = 30, score, layout
				m := mustMultiHead(t, config)
				for _, s := range []sizes{{b: 2, lq: 5, lk: 0}, {b: 2, lq: 0, lk: 7}, {b: 0, lq: 5, lk: 7}} {
					rng := newRand(151)
					q, k := tensor.Randn(rng, s.b, s.lq, 30), tensor.Randn(rng, s.b, s.lk, 30)
					if layout == attn.SequenceFirst {
						q, k = tensor.Randn(rng, s.lq, s.b, 30), tensor.Randn(rng, s.lk, s.b, 30)
					}
					for _, asked := range []bool{false, true} {
						got := runLayer(m, q, k, k, tensor.Randn(rng, q.Shape()...), attn.Options{Weights: asked})
						check(t, fmt.Sprintf("%s, layout %d, %+v", name, layout, s), got)
						if m.Q.Weight.Grad() == nil || m.K.Weight.Grad() == nil || m.V.Weight.Grad() == nil {
							t.Errorf("%s, layout %d, %+v: no gradient has reached a map", name, layout, s)
						}
					}
				}
			}
		}
	}
}

// Vectors without features have scores of 0, so all keys have the same weight.
func TestNoFeatures(t *testing.T) {
	for name, s := range map[string]attn.Score{
		"dot": score.Dot(), "scaled dot": score.ScaledDot(), "gaussian": &score.Gaussian{}, "cosine": &score.Cosine{},
		"bilinear": &score.Bilinear{W: tensor.Zeros(0, 0), Scaled: true},
	} {
		y := attn.Attend(nil, shaped(2, 5, 0), shaped(2, 4, 0), tensor.Full(3, 2, 4, 7), attn.Options{Score: s, Weights: true})
		tensortest.Same(t, name+": weights", y.Weights.Data(), tensor.Full(0.25, 2, 5, 4).Data())
		tensortest.Same(t, name+": out", y.Out.Data(), tensor.Full(3, 2, 5, 7).Data())
	}
}
