package attn_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// hidings returns masks of every kind for the sizes usual. Together they hide keys from all queries
// of a head, and all keys from some queries.
func hidings() map[string]attn.Mask {
	s := usual
	full := make([]bool, s.b*s.h*s.lq*s.lk)
	for r := range s.b * s.h * s.lq {
		for j := range s.lk {
			full[r*s.lk+j] = r%4 != 1 && j != 2 && (r+j)%3 != 0
		}
	}
	sequenceFirst := make([]bool, s.lq*s.lk*s.b)
	for x := range sequenceFirst {
		b, j := x%s.b, x/s.b%s.lk
		sequenceFirst[x] = b == 1 && j != 4
	}
	return map[string]attn.Mask{
		"valid lengths":         mask.Lengths(0, 4),
		"valid lengths by row":  mask.LengthsOfQueries([][]int{{0, 3, 2, 0, 1}, {5, 0, 4, 2, 3}}),
		"causal at":             mask.CausalAt(-2, 1),
		"window":                mask.Window(1, 0),
		"window at":             mask.WindowAt(1, 0, -3, 6),
		"keys":                  mask.Allow([]bool{true, false, true, true, false, true, false}, s.lk),
		"rows":                  mask.Allow([]bool{true, false, true, true, false}, s.lq, 1),
		"full":                  mask.Allow(full, s.b, s.h, s.lq, s.lk),
		"sequence first":        mask.AllowSequenceFirst(sequenceFirst, s.lq, s.lk, s.b),
		"function":              mask.AllowFunc(func(b, h, i, j int) bool { return b == h%2 && i != 1 && j > 2 }),
		"all of them":           attn.And(mask.CausalAt(1), mask.Lengths(3, 6), mask.Window(1, 1), mask.Allow(full, s.b, s.h, s.lq, s.lk)),
		"nothing left together": attn.And(mask.Lengths(2, 3), mask.WindowAt(0, -1, 4)),
	}
}

// eachHiding runs a test for every mask and every score. Under -short, each mask has a third of the scores.
func eachHiding(t *testing.T, test func(t *testing.T, m attn.Mask, c scoreCase)) {
	masks := hidings()
	for i, name := range slices.Sorted(maps.Keys(masks)) {
		t.Run(name, func(t *testing.T) {
			for j, c := range scores {
				if !testing.Short() || (i+j)%3 == 0 {
					t.Run(c.name, func(t *testing.T) { test(t, masks[name], c) })
				}
			}
		})
	}
}

// Masked elements have no effect on the results or on any gradient, even if they are NaN or
// infinite.
func TestMaskedInputsHaveNoEffect(t *testing.T) {
	eachHiding(t, func(t *testing.T, mask attn.Mask, c scoreCase) {
		clean := newCall(c, usual).bias(usual.b, usual.h, usual.lq, usual.lk).mask(mask)
		clean.o.SoftCap = 6
		want := clean.run()
		for _, p := range poisons {
			same(t, fmt.Sprint("with ", p, " under the mask"), poison(clean, want["weights"], p).run(), want)
		}
	})
}

// poison returns the call with p in every place that the mask hides: elements of the bias, keys
// and values that no query of their heads attends to, and queries that attend to no key. The
// weights are zero in all these places.
func poison(c call, weights *tensor.Tensor, p float32) call {
	c.q, c.k, c.v, c.o.Bias = c.q.Clone(), c.k.Clone(), c.v.Clone(), c.o.Bias.Clone()
	sees := map[[3]int]bool{}   // queries that attend to some key
	isSeen := map[[3]int]bool{} // attended keys
	group := c.q.Dim(1) / c.k.Dim(1)
	bias := c.o.Bias.Data()
	at := 0
	each(weights, func(b, h, i, j int, w *float32) {
		if *w != 0 {
			sees[[3]int{b, h, i}], isSeen[[3]int{b, h / group, j}] = true, true
		} else {
			bias[at] = p
		}
		at++
	})
	each(weights, func(b, h, i, j int, _ *float32) {
		if !sees[[3]int{b, h, i}] {
			fill(c.q, b, h, i, p)
		}
		if !isSeen[[3]int{b, h / group, j}] {
			fill(c.k, b, h/group, j, p)
			fill(c.v, b, h/group, j, p)
		}
	})
	return c
}

// The same without bias and soft-cap, on which masking must not depend. If a key that only some
// queries attend to contains NaN, it affects these queries and no others.
func TestKeysMaskedForSomeQueries(t *testing.T) {
	eachScore(t, func(t *testing.T, c scoreCase) {
		x := newCall(c, usual).mask(mask.Causal())
		x.dweights = nil
		want := x.run()
		for _, p := range poisons {
			bad := x
			bad.k, bad.v = x.k.Clone(), x.v.Clone()
			for b := range usual.b {
				for g := range usual.g {
					fill(bad.k, b, g, usual.lk-1, p) // only the last query attends to it
					fill(bad.v, b, g, usual.lk-1, p)
				}
			}
			got := bad.run()
			for _, name := range []string{"out", "weights", "dq"} {
				got[name], want[name] = pick(got[name], 2, 0, usual.lq-1), pick(want[name], 2, 0, usual.lq-1)
			}
			for _, name := range []string{"out", "weights", "dq"} {
				same(t, fmt.Sprint("with ", p), trace{name: got[name]}, trace{name: want[name]})
			}
		}
	})
}

// A key that contains NaN affects the weights of queries that attend to it, and among these
// weights only those of keys that are not hidden.
func TestNaNDoesNotReachWeightsOfHiddenKeys(t *testing.T) {
	eachHiding(t, func(t *testing.T, mask attn.Mask, c scoreCase) {
		for _, key := range []int{1, 5} {
			checkSpoiled(t, newCall(c, usual).mask(mask), key)
		}
	})
	long := sizes{b: 2, h: 2, g: 1, lq: 3, lk: 1201, v: 5} // several blocks of keys
	holes := mask.AllowFunc(func(b, h, i, j int) bool { return j%7 != i })
	for _, key := range []int{1, 700, 1103} {
		t.Run(fmt.Sprint("long, key ", key), func(t *testing.T) {
			checkSpoiled(t, newCall(scores[0], long).mask(attn.And(mask.Lengths(1103, 1104), holes)), key)
		})
	}
}

// checkSpoiled makes a call in which a key contains NaN.
func checkSpoiled(t *testing.T, c call, key int) {
	t.Helper()
	c.dweights = nil
	want := c.run()
	c.k = c.k.Clone()
	for b := range c.k.Dim(0) {
		for g := range c.k.Dim(1) {
			fill(c.k, b, g, key, float32(math.NaN()))
		}
	}
	got := c.run()
	for b := range c.q.Dim(0) {
		for h := range c.q.Dim(1) {
			for i := range c.q.Dim(2) {
				row := func(tr trace) []float32 {
					return pick(pick(pick(tr["weights"], 0, b, b+1), 1, h, h+1), 2, i, i+1).Data()
				}
				old, now := row(want), row(got)
				for j, w := range old {
					switch {
					case w == 0 && now[j] != 0:
						t.Fatalf("NaN in key %d makes the weight of query %d %d %d and key %d, which is hidden, %v", key, b, h, i, j, now[j])
					case old[key] == 0 && now[j] != w:
						t.Fatalf("NaN in key %d, which is hidden from query %d %d %d, changes its weight %d from %v to %v", key, b, h, i, j, w, now[j])
					}
				}
			}
		}
	}
	group := c.q.Dim(1) / c.k.Dim(1)
	attended := map[[3]int]bool{}
	each(want["weights"], func(b, h, _, j int, w *float32) {
		if *w != 0 {
			attended[[3]int{b, h / group, j}] = true
		}
	})
	for _, name := range []string{"dk", "dv"} {
		each(got[name], func(b, g, j, e int, d *float32) {
			if *d != 0 && !attended[[3]int{b, g, j}] {
				t.Fatalf("NaN in key %d makes element %d of %s of key %d %d %d, which is hidden from all, %v", key, e, name, b, g, j, *d)
			}
		})
	}
}

// A query that attends to no key has out 0, weights 0 and gradients 0.
func TestBlindQueries(t *testing.T) {
	eachHiding(t, func(t *testing.T, mask attn.Mask, c scoreCase) {
		checkBlind(t, newCall(c, usual).bias(usual.h, usual.lq, usual.lk).mask(mask))
	})
	tall := usual
	tall.lq, tall.lk = 7, 5
	t.Run("causal, more queries than keys", func(t *testing.T) {
		eachScore(t, func(t *testing.T, c scoreCase) {
			if n := checkBlind(t, newCall(c, tall).mask(mask.Causal())); n != 2*tall.b*tall.h {
				t.Errorf("%d blind queries, want 2 of each head", n)
			}
		})
	})
	none := usual
	none.lk = 0
	t.Run("no keys at all", func(t *testing.T) {
		eachScore(t, func(t *testing.T, c scoreCase) {
			tr := newCall(c, none).run()
			if m := max(magnitude(tr["out"]), magnitude(tr["dq"])); m != 0 {
				t.Errorf("out or its gradient reaches %v, want 0", m)
			}
		})
	})
}

// checkBlind makes a call and returns the number of queries that attend to no key. A second call
// with other upstream gradients for these queries must give the same results and gradients.
func checkBlind(t *testing.T, c call) (blind int) {
	t.Helper()
	tr := c.run()
	c.dout = c.dout.Clone()
	for b := range c.q.Dim(0) {
		for h := range c.q.Dim(1) {
			for i := range c.q.Dim(2) {
				row := func(name string) *tensor.Tensor { return pick(pick(pick(tr[name], 0, b, b+1), 1, h, h+1), 2, i, i+1) }
				sum := float64(tensor.Sum(nil, row("weights")).Item())
				if sum > 0.5 {
					if sum < 1-1e-6 || sum > 1+1e-6 {
						t.Errorf("weights of query %d %d %d add up to %v, want 1", b, h, i, sum)
					}
					continue
				}
				blind++
				for _, name := range []string{"out", "weights", "dq"} {
					if m := magnitude(row(name)); m != 0 {
						t.Errorf("%s of query %d %d %d, which sees nothing, reaches %v", name, b, h, i, m)
					}
				}
				fill(c.dout, b, h, i, 1e6)
			}
		}
	}
	same(t, "with other gradients where nothing is seen", c.run(), tr)
	return blind
}

// Inputs of a layer after the valid lengths have no effect either, although they first pass
// through maps with parameters.
func TestMultiHeadMaskedInputsHaveNoEffect(t *testing.T) {
	lens := []int{3, 0}
	for _, c := range scores {
		if c.eq != c.ek {
			c.eq = c.ek // one head size
		}
		t.Run(c.name, func(t *testing.T) {
			scored := c.make()
			switch s := scored.(type) {
			case *score.Additive:
				scored = score.NewAdditive(c.ek, c.ek, 11, newRand(1))
			case *score.Bilinear:
				square := score.NewBilinear(c.ek, c.ek, newRand(2))
				square.Scaled = s.Scaled
				scored = square
			}
			m := mustMultiHead(t, attn.MultiHeadConfig{
				Width: 3 * c.ek, Heads: 3, KeyWidth: 13, ValueWidth: 17, Bias: attn.AllProjections, Score: scored,
			})
			rng := newRand(41)
			q, k, v := tensor.Randn(rng, 2, 5, 3*c.ek), tensor.Randn(rng, 2, 7, 13), tensor.Randn(rng, 2, 7, 17)
			dout := tensor.Randn(rng, 2, 5, 3*c.ek)
			o := attn.Options{Mask: mask.Lengths(lens...), Weights: true, SoftCap: 5}
			want := runLayer(m, q, k, v, dout, o)
			for _, p := range poisons {
				for b, n := range lens {
					for j := n; j < 7; j++ {
						for _, x := range []*tensor.Tensor{k, v} {
							w := x.Dim(2)
							row := x.Data()[(b*7+j)*w:][:w]
							for e := range row {
								row[e] = p
							}
						}
					}
				}
				same(t, fmt.Sprint("with ", p, " as padding"), runLayer(m, q, k, v, dout, o), want)
			}
		})
	}
}
