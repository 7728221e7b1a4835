package scores

import (
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/examples/exercises/check"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

var (
	q = [][]float64{{1, 0.5, -1, 2}, {0, -1, 0.5, 1}}
	k = [][]float64{{1, 1, 0, 0}, {0.5, 0, -1, 1}, {2, -1, 0, 0.5}, {1, 2, -1, 1}}
	v = [][]float64{{1, 2}, {3, -1}, {5, 0}, {-2, 4}}
)

const valid = 3

// variant is attention with a mistake: another scale, score of padding, or weight of padding after the softmax.
type variant struct {
	scale, fill      float64
	after, overQuery bool
	hide             func(j, valid int) bool
}

func (m variant) attend(q, k, v [][]float64, valid int) [][]float64 {
	weights, sums := make([][]float64, len(q)), map[int]float64{}
	for i := range q {
		weights[i] = make([]float64, len(k))
		for j := range k {
			dot := 0.0
			for e := range q[i] {
				dot += float64(q[i][e] * k[j][e])
			}
			dot *= m.scale
			if m.hide(j, valid) && !m.after {
				dot = m.fill
			}
			weights[i][j] = math.Exp(dot)
			if m.overQuery {
				sums[j] += weights[i][j]
			} else {
				sums[i] += weights[i][j]
			}
		}
	}
	out := make([][]float64, len(q))
	for i := range q {
		out[i] = make([]float64, len(v[0]))
		for j := range k {
			sum := sums[i]
			if m.overQuery {
				sum = sums[j]
			}
			if sum == 0 || m.after && m.hide(j, valid) {
				continue
			}
			for e := range out[i] {
				out[i][e] += float64(weights[i][j] / sum * v[j][e])
			}
		}
	}
	return out
}

func padding(j, valid int) bool { return j >= valid }

var (
	never   = math.Inf(-1)
	root    = 0.5 // 1/√E
	nothing = func(int, int) bool { return false }
	first   = func(j, valid int) bool { return j < valid }
	right   = variant{scale: root, fill: never, hide: padding}
)

func solved(q, k, v [][]float64, valid int) [][]float64 { return right.attend(q, k, v, valid) }

var mistakes = []struct {
	What string
	F    func(q, k, v [][]float64, valid int) [][]float64
}{
	{"the scale is forgotten: divide the scores by √E", variant{scale: 1, fill: never, hide: padding}.attend},
	{"the scores are divided by E, not by √E", variant{scale: root * root, fill: never, hide: padding}.attend},
	{"the scores are multiplied by √E", variant{scale: 1 / root, fill: never, hide: padding}.attend},
	{"the mask is applied after the softmax: the weights no longer sum to 1", variant{scale: root, after: true, hide: padding}.attend},
	{"masked scores are 0 instead of −∞: padding has a weight", variant{scale: root, hide: padding}.attend},
	{"nothing is masked", variant{scale: root, hide: nothing}.attend},
	{"the wrong keys are masked: keys from valid on are padding", variant{scale: root, fill: never, hide: first}.attend},
	{"the softmax runs over the queries: queries and keys are exchanged", variant{scale: root, fill: never, overQuery: true, hide: padding}.attend},
}

var exercise = check.Exercise[func(q, k, v [][]float64, valid int) [][]float64]{
	Name: "attend", Run: func(f func(q, k, v [][]float64, valid int) [][]float64) any { return f(q, k, v, valid) }, Solved: solved, Mistakes: mistakes,
}

func TestAttend(t *testing.T) { exercise.Test(t, attend) }

// The solution is what Attend computes. Each typical mistake is named.
func TestMistakes(t *testing.T) {
	matrix := func(x [][]float64) *tensor.Tensor {
		return tensor.FromFloat64s(slices.Concat(x...), 1, len(x), len(x[0]))
	}
	want := attn.Attend(nil, matrix(q), matrix(k), matrix(v), attn.Options{Mask: mask.Lengths(valid)}).Out.Float64s()
	for i, got := range slices.Concat(solved(q, k, v, valid)...) {
		if math.Abs(got-want[i]) > 1e-5 {
			t.Errorf("output %d is %v, attn computes %v", i, got, want[i])
		}
	}
	exercise.TestMistakes(t)
}
