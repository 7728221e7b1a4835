package linear

import (
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn/examples/exercises/check"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/tensor"
)

var (
	q     = [][]float64{{0.7, 0.4, -0.3}, {-0.2, 0.9, 0.5}, {0.3, 0.6, 0.8}, {0.9, -0.5, 0.4}}
	k     = [][]float64{{0.6, 0.8, 0}, {0, -0.6, 0.8}, {0.8, 0, 0.6}, {0.6, 0.8, 0}} // of length 1
	v     = [][]float64{{2, -1}, {0.5, 3}, {-2, 1.5}, {4, 0.3}}
	decay = []float64{-0.1, -0.7, -0.3, -0.5}
	beta  = []float64{0.9, 0.5, 0.7, 0.8}
)

// variant is the rule with a mistake.
type variant struct {
	adds, late, stale, onKey, early bool // see mistakes
	factor, share                   func(x float64) float64
	scale                           float64
}

func (m variant) delta(q, k, v [][]float64, decay, beta []float64) (out [][]float64) {
	state := make([][]float64, len(k[0])) // [E V]
	for e := range state {
		state[e] = make([]float64, len(v[0]))
	}
	read := func(x []float64, scale float64) []float64 {
		sum := make([]float64, len(v[0]))
		for e, row := range state {
			for j, s := range row {
				sum[j] += float64(scale * x[e] * s)
			}
		}
		return sum
	}
	shrink := func(factor float64) {
		for _, row := range state {
			for j := range row {
				row[j] *= factor
			}
		}
	}
	for t := range q {
		key, share := slices.Clone(k[t]), m.share(beta[t])
		if m.onKey {
			for e := range key {
				key[e] *= share
			}
			share = 1
		}
		known := read(key, 1)
		if !m.late {
			shrink(m.factor(decay[t]))
		}
		if !m.stale {
			known = read(key, 1)
		}
		before := read(q[t], m.scale)
		for e, row := range state {
			for j := range row {
				u := v[t][j]
				if !m.adds {
					u -= known[j]
				}
				row[j] += float64(key[e] * share * u)
			}
		}
		if m.late {
			shrink(m.factor(decay[t]))
		}
		if m.early {
			out = append(out, before)
		} else {
			out = append(out, read(q[t], m.scale))
		}
	}
	return out
}

func same(x float64) float64 { return x }
func one(float64) float64    { return 1 }

func solved(q, k, v [][]float64, decay, beta []float64) [][]float64 {
	return variant{factor: math.Exp, share: same, scale: 1}.delta(q, k, v, decay, beta)
}

var mistakes = []struct {
	What string
	F    func(q, k, v [][]float64, decay, beta []float64) [][]float64
}{
	{"what the key reads is not subtracted: the value is added, not put in its place", variant{adds: true, factor: math.Exp, share: same, scale: 1}.delta},
	{"the state shrinks after the token is written: it has to shrink before", variant{late: true, factor: math.Exp, share: same, scale: 1}.delta},
	{"the key reads the state before it shrinks", variant{stale: true, factor: math.Exp, share: same, scale: 1}.delta},
	{"beta multiplies the key: it is a share of the difference between the value and what the key reads", variant{onKey: true, factor: math.Exp, share: same, scale: 1}.delta},
	{"the query reads before the token is written", variant{early: true, factor: math.Exp, share: same, scale: 1}.delta},
	{"the decays are forgotten", variant{factor: one, share: same, scale: 1}.delta},
	{"the factor is exp(decay), not decay", variant{factor: same, share: same, scale: 1}.delta},
	{"beta is forgotten", variant{factor: math.Exp, share: one, scale: 1}.delta},
	{"the outputs are scaled by 1/√E", variant{factor: math.Exp, share: same, scale: 1 / math.Sqrt(3)}.delta},
	{"queries and keys are exchanged", func(q, k, v [][]float64, decay, beta []float64) [][]float64 { return solved(k, q, v, decay, beta) }},
}

var exercise = check.Exercise[func(q, k, v [][]float64, decay, beta []float64) [][]float64]{
	Name: "delta", Run: func(f func(q, k, v [][]float64, decay, beta []float64) [][]float64) any {
		return f(q, k, v, decay, beta)
	}, Solved: solved, Mistakes: mistakes,
}

func TestDelta(t *testing.T) { exercise.Test(t, delta) }

// The solution is what linear.Attend computes. Each typical mistake is named.
func TestMistakes(t *testing.T) {
	matrix := func(x [][]float64) *tensor.Tensor {
		return tensor.FromFloat64s(slices.Concat(x...), 1, 1, len(x), len(x[0]))
	}
	want := linear.Attend(nil, matrix(q), matrix(k), matrix(v), linear.Options{Scale: 1,
		Decay: tensor.FromFloat64s(decay, 1, 1, len(decay)), Beta: tensor.FromFloat64s(beta, 1, 1, len(beta))}).Out.Float64s()
	for i, got := range slices.Concat(solved(q, k, v, decay, beta)...) {
		if math.Abs(got-want[i]) > 1e-5 {
			t.Errorf("output %d is %v, attn computes %v", i, got, want[i])
		}
	}
	exercise.TestMistakes(t)
}
