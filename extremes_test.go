package attn_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// times returns x·2^power.
func times(x *tensor.Tensor, power int) *tensor.Tensor {
	y := x.Clone()
	for i, v := range y.Data() {
		y.Data()[i] = float32(math.Ldexp(float64(v), power))
	}
	return y
}

// Tiny values give results with full precision, on every implementation, for many queries and,
// from a cache, for one.
func TestTinyValues(t *testing.T) {
	const keys, size = 70, 64
	r := newRand(7)
	q, k, v := tensor.Randn(r, 1, 1, keys, size), tensor.Randn(r, 1, 1, keys, size), tensor.Randn(r, 1, 1, keys, size)
	for _, power := range []int{0, -80, -100, -110} {
		tiny := times(v, power)
		simd.Each(func(kernels string) {
			what := fmt.Sprintf("%s: times 2^%d", kernels, power)
			o := attn.Options{Mask: mask.Causal()}
			want := attn.Attend(nil, q, k, v, o).Out
			got := attn.Attend(nil, q, k, tiny, o).Out
			tensortest.Near(t, what, times(got, -power), want)
			cache, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: size})
			if err != nil {
				t.Fatal(err)
			}
			cache.Append(k, tiny, nil)
			last := tensor.New(q.Data()[(keys-1)*size:], 1, 1, 1, size)
			one := cache.Attend(nil, last, o).Out
			tensortest.Same(t, what+", in a cache", one.Data(), got.Data()[(keys-1)*size:])
		})
	}
}

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

// If a query attends to a single key, the weight is 1 for every score, so the gradient of the
// score is exactly 0: also with dropout, and for large queries and keys.
func TestOneKeyHasNoScoreGradient(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: every score; TestGolden has gradients")
	}
	eachScore(t, func(t *testing.T, c scoreCase) {
		for _, s := range []sizes{
			{1, 1, 1, 1, 1, 1}, {2, 6, 3, 5, 1, 3}, {2, 6, 3, 5, 7, 67}, {1, 4, 2, 33, 300, 16}, {1, 2, 1, 1, 600, 32},
		} {
			masks := map[string]attn.Mask{
				"the first key":       mask.Lengths(slices.Repeat([]int{1}, s.b)...),
				"a key behind others": mask.AllowFunc(func(b, h, i, j int) bool { return j == (7*i+h)%s.lk }),
			}
			for name, m := range masks {
				for seed := range uint64(4) {
					x := newCall(c, s).mask(m)
					if x.o.Weights = seed&1 == 1; !x.o.Weights {
						x.dweights = nil
					}
					if x.o.Dropout = 0.3; seed&2 == 2 {
						x.o.Dropout = 0
					}
					x.v = tensor.Randn(newRand(100+seed), x.v.Shape()...)
					x.q, x.k = tensor.Scale(nil, x.q, float32(1+1000*seed)), tensor.Scale(nil, x.k, float32(1+1000*seed))
					tr := x.run()
					for grad, g := range tr {
						if !slices.Contains([]string{"out", "weights", "dv"}, grad) {
							tensortest.Same(t, name+": "+grad, g.Data(), make([]float32, g.Len()))
						}
					}
				}
			}
		}
	})
}

// The log-sum-exp of a query with a score of +Inf is +Inf, as by the formula; its weights, its result and its gradient
// are NaN. Scores of −Inf contribute nothing, and NaN makes everything NaN.
func TestInfiniteScores(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	// The scores of key n, n+lk/3 and lk−1 of query n, added to those of the call.
	added := [][3]float64{
		{}, {inf}, {0, inf}, {0, 0, inf}, {inf, inf, inf}, {-inf, 0, inf}, {inf, nan}, {nan, inf}, {0, inf, nan}, {-inf, -inf, -inf}, {nan}, {0, 0, nan},
		{1e3, nan}, {nan, 0, 1e3}, {1e3, 0, nan}, {-inf, 1e3}, {0, -inf, 1e3},
	}
	lengths := []int{1, 2, 15, 64, 65, 200, 513, 700, 1100}
	simd.Each(func(set string) {
		for n, lk := range lengths {
			for _, lq := range []int{1, 12, 60} {
				for variant := range 6 {
					if (testing.Short() || lq == 60) && (n+variant)%3 != 0 { // the formula of many queries is slow
						continue
					}
					c := newCall(kindCase([]string{"scaled", "additive", "gaussian"}[variant%3]), sizes{b: 2, h: 2, g: 1, lq: lq, lk: lk, v: 5})
					c.o.LogSumExp, c.o.Bias = true, tensor.Zeros(2, 2, lq, lk)
					each(c.o.Bias, func(b, h, i, j int, x *float32) {
						for k, at := range []int{i % lk, (i + lk/3) % lk, lk - 1} {
							if j == at {
								*x += float32(added[(i+3*h+6*b+lk)%len(added)][k])
							}
						}
					})
					switch variant / 3 {
					case 1:
						c.o.Mask = mask.AllowFunc(func(_, _, i, j int) bool { return (i+j)%5 != 2 })
						c.o.Sinks = tensor.New([]float32{0.5, []float32{90, float32(-inf), float32(inf), float32(nan)}[n%4]}, 2)
					case 0:
						if variant == 2 {
							c.o.SoftCap = 3
						}
					}
					checkInfinite(t, fmt.Sprintf("%s, %d queries, %d keys, variant %d", set, lq, lk, variant), c)
				}
			}
		}
	})
}

// checkInfinite compares a call with the formula, in which the weights of masked keys are NaN, too, where others are.
func checkInfinite(t *testing.T, what string, c call) {
	t.Helper()
	dlse := tensor.Randn(newRand(7), c.q.Shape()[:3]...)
	run := func(attend attend) (attn.Output, *tensor.Tensor) {
		tape := tensortest.Tape(tensor.Train)
		q := c.q.Clone().Param()
		y := attend(tape, q, c.k, c.v, c.o)
		tape.Backward(y.LogSumExp, dlse)
		return y, q.Grad()
	}
	got, dq := run(attn.Attend)
	want, wantDq := run(formula)
	tensortest.Near(t, what+": log-sum-exp", got.LogSumExp, want.LogSumExp)
	for i, attended := range c.o.Mask.Array(sizesOfCall(c.q, c.k, c.o)) {
		if !attended {
			want.Weights.Data()[i] = 0
		}
	}
	tensortest.Near(t, what+": weights", got.Weights, want.Weights)
	tensortest.Near(t, what+": out", got.Out, want.Out)
	tensortest.Near(t, what+": dq of the log-sum-exp", dq, wantDq)
}

// Scores are infinite because of a bias or of a key, and come from tensors, caches and merged parts.
func TestInfiniteScoresOnEveryWay(t *testing.T) {
	const lk = 700
	inf := float32(math.Inf(1))
	simd.Each(func(set string) {
		for _, lq := range []int{1, 20} {
			for _, keys := range []bool{false, true} {
				c := newCall(kindCase("scaled"), sizes{b: 1, h: 2, g: 1, lq: lq, lk: lk, v: 5})
				c.o.LogSumExp = true
				switch {
				case keys: // the scores of its query are ±Inf
					c.k.Data()[600*c.k.Dim(3)] = inf
				default:
					c.o.Bias = tensor.Zeros(2, lq, lk)
					for r := range 2 * lq {
						row := c.o.Bias.Data()[r*lk:][:lk]
						row[5], row[600] = []float32{0, inf, 0, -inf, float32(math.NaN())}[r%5], []float32{inf, inf, -inf}[r%3]
					}
				}
				want := formula(nil, c.q, c.k, c.v, c.o).LogSumExp
				sameKind := func(what string, got *tensor.Tensor) {
					t.Helper()
					for i, w := range want.Data() {
						g := got.Data()[i]
						if (g != g) != (w != w) || (g-g == 0) != (w-w == 0) || w-w != 0 && g < 0 != (w < 0) {
							t.Errorf("%s, %d queries, infinite keys %v, %s: log-sum-exp %d is %v, want %v", set, lq, keys, what, i, g, w)
						}
					}
				}
				dropped := c.o
				dropped.Dropout, dropped.Weights = 0.5, false
				sameKind("dropout", attn.Attend(tensortest.Tape(tensor.Train), c.q, c.k, c.v, dropped).LogSumExp)

				var parts []attn.Output
				for lo := 0; lo < lk; lo += 350 {
					o := c.o
					if o.Bias != nil {
						o.Bias = tensor.Slice(nil, o.Bias, 2, lo, lo+350)
					}
					parts = append(parts, attn.Attend(nil, c.q, tensor.Slice(nil, c.k, 2, lo, lo+350), tensor.Slice(nil, c.v, 2, lo, lo+350), o))
				}
				sameKind("merged parts", attn.Merge(nil, parts...).LogSumExp)

				for _, s := range storages {
					if keys && s.storage == tensor.Int8 {
						continue // which stores no infinite numbers
					}
					cache, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: c.k.Dim(3), ValueSize: 5, Format: s.storage})
					if err != nil {
						t.Fatal(err)
					}
					cache.Append(c.k, c.v, nil)
					sameKind("cache of "+s.name, cache.Attend(nil, c.q, c.o).LogSumExp)
				}
			}
		}
	})
}
