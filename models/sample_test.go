package models

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSampler draws often, and compares the frequency of each token with its probability.
func TestSampler(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	// Probabilities 0.1, 0.2, 0.4, 0.3 at temperature 1.
	scores := []float32{0, ln(2), ln(4), ln(3)}
	for _, c := range []struct {
		name   string
		s      Sampling
		scores []float32
		want   []float64
	}{
		{"greedy", Sampling{TopK: 3}, scores, []float64{0, 0, 1, 0}},
		{"greedy, equal scores", Sampling{}, []float32{1, 3, 3}, []float64{0, 1, 0}},
		{"greedy, NaN", Sampling{}, []float32{nan, 1, 2}, []float64{0, 0, 1}},
		{"all", Sampling{Temperature: 1}, scores, []float64{0.1, 0.2, 0.4, 0.3}},
		{"cold", Sampling{Temperature: 0.5}, scores, []float64{1 / 30., 4 / 30., 16 / 30., 9 / 30.}},
		{"frozen", Sampling{Temperature: 1e-300}, scores, []float64{0, 0, 1, 0}},
		{"two best", Sampling{Temperature: 1, TopK: 2}, scores, []float64{0, 0, 4 / 7., 3 / 7.}},
		{"more than all", Sampling{Temperature: 1, TopK: 9}, scores, []float64{0.1, 0.2, 0.4, 0.3}},
		{"many best", Sampling{Temperature: 1, TopK: 1000}, scores, []float64{0.1, 0.2, 0.4, 0.3}},
		{"one best of equals", Sampling{Temperature: 1, TopK: 1}, []float32{1, 2, 2}, []float64{0, 1, 0}},
		{"nucleus", Sampling{Temperature: 1, TopP: 0.69}, scores, []float64{0, 0, 4 / 7., 3 / 7.}},
		{"nucleus of one", Sampling{Temperature: 1, TopP: 1e-9}, scores, []float64{0, 0, 1, 0}},
		{"nucleus of all", Sampling{Temperature: 1, TopP: 1}, scores, []float64{0.1, 0.2, 0.4, 0.3}},
		{"nucleus of the best", Sampling{Temperature: 1, TopK: 3, TopP: 0.6}, scores, []float64{0, 0, 4 / 7., 3 / 7.}},
		{"impossible tokens", Sampling{Temperature: 1}, []float32{-inf, 1, nan, 1}, []float64{0, 0.5, 0, 0.5}},
		{"sure tokens", Sampling{Temperature: 1}, []float32{inf, 1, inf}, []float64{0.5, 0, 0.5}},
		{"nothing", Sampling{Temperature: 1, TopK: 2, TopP: 0.5}, []float32{nan, nan}, []float64{1, 0}},
	} {
		if err := c.s.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		const n = 20000
		s, counts := newSampler(c.s), make([]float64, len(c.scores))
		for range n {
			counts[s.next(c.scores)]++
		}
		for i, want := range c.want {
			if got := counts[i] / n; math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/n) {
				t.Errorf("%s: token %d comes with frequency %.4f, want %.4f", c.name, i, got, want)
			}
		}
	}
}

func ln(x float64) float32 { return float32(math.Log(x)) }

// TestSamplerIsExact compares the candidate tokens with the definitions of top-k and top-p.
func TestSamplerIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	scores := make([]float32, 3001)
	for range 20 {
		for i := range scores {
			scores[i] = float32(math.Round(8*rng.NormFloat64()) / 4) // some are equal
		}
		for _, k := range []int{0, 1, 17, 300} {
			for _, p := range []float64{0, 0.3, 0.9, 0.999} {
				s := newSampler(Sampling{Temperature: 0.8, TopK: k, TopP: p})
				s.leave(scores)
				got := slices.Sorted(slices.Values(s.order))
				if want := left(scores, 0.8, k, p); !slices.Equal(got, want) {
					t.Fatalf("top-k %d, top-p %v leave %d tokens, want %d", k, p, len(got), len(want))
				}
			}
		}
	}
}

// left returns the candidate tokens by definition.
func left(scores []float32, temperature float64, k int, p float64) []int {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	if k > 0 {
		order = order[:k]
	}
	probs, total := make([]float64, len(order)), 0.0
	for i, id := range order {
		probs[i] = math.Exp(float64(scores[id]-scores[order[0]]) / temperature)
		total += probs[i]
	}
	sum := 0.0
	for i := range order {
		if sum += probs[i]; p > 0 && sum >= p*total {
			order = order[:i+1]
			break
		}
	}
	slices.Sort(order)
	return order
}

func TestSamplingErrors(t *testing.T) {
	for _, c := range []struct {
		s    Sampling
		want string
	}{
		{Sampling{Temperature: -1}, "models: temperature -1, want 0 for greedy, or a positive number"},
		{Sampling{Temperature: math.NaN()}, "models: temperature NaN, want 0 for greedy, or a positive number"},
		{Sampling{Temperature: math.Inf(1)}, "models: temperature +Inf, want 0 for greedy, or a positive number"},
		{Sampling{TopK: -2}, "models: top-k -2, want at least 1, or 0 for all tokens"},
		{Sampling{TopP: 1.5}, "models: top-p 1.5, want a probability above 0, or 0 for all tokens"},
		{Sampling{TopP: math.NaN()}, "models: top-p NaN, want a probability above 0, or 0 for all tokens"},
	} {
		if err := c.s.Check(); err == nil || err.Error() != c.want {
			t.Errorf("%+v: error %v, want %s", c.s, err, c.want)
		}
	}
}
