package regression

import (
	"math"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/examples/exercises/check"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

var (
	at   = []float64{0, 1, 2.5, 4}
	x, y = []float64{0.5, 1, 2, 3.5, 4.5}, []float64{1, 3, 2, -1, 5}
)

const w = 1.5

// kernel estimates with another function of w and the distance, which is divided by the sum unless raw is set.
func kernel(weight func(w, d float64) float64, raw bool) func(at, x, y []float64, w float64) []float64 {
	return func(at, x, y []float64, w float64) (out []float64) {
		for _, q := range at {
			mean, sum := 0.0, 0.0
			for j, k := range x {
				a := weight(w, q-k)
				mean, sum = mean+float64(a*y[j]), sum+a
			}
			if raw {
				sum = 1
			}
			out = append(out, mean/sum)
		}
		return out
	}
}

func gaussian(w, d float64) float64 { return math.Exp(-w * d * w * d / 2) }

func solved(at, x, y []float64, w float64) []float64 { return kernel(gaussian, false)(at, x, y, w) }

// overQueries divides by the sum over the queries.
func overQueries(at, x, y []float64, w float64) []float64 {
	out := make([]float64, len(at))
	for j, k := range x {
		sum := 0.0
		for _, q := range at {
			sum += gaussian(w, q-k)
		}
		for i, q := range at {
			out[i] += float64(gaussian(w, q-k) / sum * y[j])
		}
	}
	return out
}

var mistakes = []struct {
	What string
	F    func(at, x, y []float64, w float64) []float64
}{
	{"the factor ½ of the score is missing", kernel(func(w, d float64) float64 { return math.Exp(-w * d * w * d) }, false)},
	{"the distance is not squared", kernel(func(w, d float64) float64 { return math.Exp(-math.Abs(w*d) / 2) }, false)},
	{"the sign of the score is wrong: far observations have the most weight", kernel(func(w, d float64) float64 { return math.Exp(w * d * w * d / 2) }, false)},
	{"w is not squared with the distance", kernel(func(w, d float64) float64 { return math.Exp(-w * d * d / 2) }, false)},
	{"weights are not divided by their sum", kernel(gaussian, true)},
	{"the softmax runs over the queries: queries and keys are exchanged", overQueries},
	{"keys and values are exchanged: the query is compared with the places x", func(at, x, y []float64, w float64) []float64 { return solved(at, y, x, w) }},
	{"w is not used: the kernel always has the width 1", func(at, x, y []float64, _ float64) []float64 { return solved(at, x, y, 1) }},
}

var exercise = check.Exercise[func(at, x, y []float64, w float64) []float64]{
	Name: "estimate", Run: func(f func(at, x, y []float64, w float64) []float64) any { return f(at, x, y, w) }, Solved: solved, Mistakes: mistakes,
}

func TestEstimate(t *testing.T) { exercise.Test(t, estimate) }

// The solution is what Attend computes. Each typical mistake is named.
func TestMistakes(t *testing.T) {
	sequence := func(x []float64) *tensor.Tensor { return tensor.FromFloat64s(x, 1, len(x), 1) }
	kernel := &score.Gaussian{W: tensor.Full(w, 1)}
	want := attn.Attend(nil, sequence(at), sequence(x), sequence(y), attn.Options{Score: kernel}).Out.Float64s()
	for i, got := range solved(at, x, y, w) {
		if math.Abs(got-want[i]) > 1e-5 {
			t.Errorf("estimate %d is %v, attn computes %v", i, got, want[i])
		}
	}
	exercise.TestMistakes(t)
}
