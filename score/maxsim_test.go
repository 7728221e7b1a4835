package score_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// maxSim is the formula in float64.
func maxSim(q, d *tensor.Tensor) (sum float64, chosen []int) {
	for i := range q.Dim(0) {
		best, at := math.Inf(-1), 0
		for j := range d.Dim(0) {
			var dot float64
			for e := range q.Dim(1) {
				dot += float64(q.At(i, e)) * float64(d.At(j, e))
			}
			if dot > best {
				best, at = dot, j
			}
		}
		sum, chosen = sum+best, append(chosen, at)
	}
	return sum, chosen
}

// Scores, alignments and gradients are those of the formula, and the bits of a document do not depend on the others.
func TestMaxSim(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	for _, l := range []int{1, 2, 32, 37} {
		q := tensor.Randn(rng, l, 19).Param()
		var documents []*tensor.Tensor
		for _, n := range []int{5, 1, 180, 3, 41} {
			documents = append(documents, tensor.Randn(rng, n, 19).Param())
		}
		tape := tensor.NewTape(tensor.Train)
		scores, chosen := score.MaxSim(tape, q, documents...)
		tape.Backward(tensor.Mean(tape, tensor.Reshape(tape, scores, 1, 5)), nil)
		dq := make([]float64, q.Len())
		for n, d := range documents {
			want, at := maxSim(q, d)
			if !slices.Equal(chosen[n], at) || math.Abs(want-float64(scores.At(n))) > 1e-4 {
				t.Errorf("%d tokens, document %d: %v %v, want %v %v", l, n, scores.At(n), chosen[n], want, at)
			}
			alone, same := score.MaxSim(nil, q, d)
			if math.Float32bits(alone.At(0)) != math.Float32bits(scores.At(n)) || !slices.Equal(same[0], chosen[n]) {
				t.Errorf("%d tokens, document %d: %v alone, %v beside others", l, n, alone.At(0), scores.At(n))
			}
			dd := make([]float64, d.Len())
			for i, j := range at {
				for e := range 19 {
					dq[i*19+e] += float64(d.At(j, e)) / 5
					dd[j*19+e] += float64(q.At(i, e)) / 5
				}
			}
			for i, want := range dd {
				if math.Abs(want-float64(d.Grad().Data()[i])) > 1e-5 {
					t.Fatalf("gradient %d of document %d is %v, want %v", i, n, d.Grad().Data()[i], want)
				}
			}
		}
		for i, want := range dq {
			if math.Abs(want-float64(q.Grad().Data()[i])) > 1e-5 {
				t.Fatalf("gradient %d of the query is %v, want %v", i, q.Grad().Data()[i], want)
			}
		}
	}
}

// Ties take the first token, NaN is the largest, and nothing has no score.
func TestMaxSimEdges(t *testing.T) {
	nan := float32(math.NaN())
	d := tensor.New([]float32{1, 2, 2, nan, 3}, 5, 1)
	if s, at := score.MaxSim(nil, tensor.Full(1, 1, 1), tensor.New([]float32{1, 2, 2}, 3, 1), d); s.At(0) != 2 || at[0][0] != 1 || at[1][0] != 3 {
		t.Errorf("%v %v", s.Data(), at)
	}
	if s, at := score.MaxSim(nil, d); s.Len() != 0 || len(at) != 0 {
		t.Errorf("no documents: %v %v", s, at)
	}
	if s, at := score.MaxSim(nil, tensor.Zeros(0, 1), d); s.At(0) != 0 || len(at[0]) != 0 {
		t.Errorf("no query: %v %v", s, at)
	}
	for _, c := range [][]*tensor.Tensor{
		{tensor.Zeros(3), d}, {tensor.Zeros(3, 2), d}, {d, tensor.Zeros(0, 1)}, {d, tensor.Zeros(1, 3, 1)},
	} {
		var bad *tensor.ShapeError
		if err := tensor.Catch(func() { score.MaxSim(nil, c[0], c[1]) }); !errors.As(err, &bad) {
			t.Errorf("%v and %v: %v", c[0].Shape(), c[1].Shape(), err)
		}
	}
}

// A query of two tokens against two documents: the sum of the largest products, and the tokens that have them.
func ExampleMaxSim() {
	q := tensor.New([]float32{1, 0, 0, 1}, 2, 2)
	short := tensor.New([]float32{0.8, 0.6}, 1, 2)
	long := tensor.New([]float32{0.6, 0.8, 1, 0, 0, 1}, 3, 2)
	scores, chosen := score.MaxSim(nil, q, short, long)
	fmt.Printf("%.1f %v\n", scores.Data(), chosen)
	// Output: [1.4 2.0] [[0 0] [1 2]]
}

func BenchmarkMaxSim(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	q := tensor.Randn(rng, 32, 128)
	documents := make([]*tensor.Tensor, 100)
	for i := range documents {
		documents[i] = tensor.Randn(rng, 180, 128)
	}
	tape := tensor.NewTape(tensor.Infer)
	for b.Loop() {
		score.MaxSim(tape, q, documents...)
		tape.Reset()
	}
}
