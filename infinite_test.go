package attn_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

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
					if testing.Short() && (n+variant)%3 != 0 {
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
	nearTensor(t, what+": log-sum-exp", got.LogSumExp, want.LogSumExp)
	for i, attended := range c.o.Mask.Array(sizesOfCall(c.q, c.k, c.o)) {
		if !attended {
			want.Weights.Data()[i] = 0
		}
	}
	nearTensor(t, what+": weights", got.Weights, want.Weights)
	nearTensor(t, what+": out", got.Out, want.Out)
	nearTensor(t, what+": dq of the log-sum-exp", dq, wantDq)
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
					cache, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: c.k.Dim(3), ValueSize: 5, Storage: s.storage})
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
