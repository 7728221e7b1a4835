package minilm

import (
	"slices"
	"testing"

	"github.com/attn-go/attn/examples/exercises/check"
)

// pattern returns a head of five tokens whose queries attend to the key at.
func pattern(at func(i int) int) [][]float64 {
	out := make([][]float64, 5)
	for i := range out {
		out[i] = []float64{0.08, 0.08, 0.08, 0.08, 0.08}
		out[i][max(0, min(4, at(i)))] += 0.6
	}
	return out
}

var (
	self, next, third = pattern(func(i int) int { return i }), pattern(func(i int) int { return i + 1 }), pattern(func(i int) int { return i + 2 })
	sink              = pattern(func(int) int { return 0 })
	before            = pattern(func(i int) int { return (i + 4) % 5 }) // the first token has none before it
	weights           = [][][][]float64{{self, next, sink}, {third, self, before}}
)

// most returns the head with the largest mean over the queries of the weight of a key.
func most(weights [][][][]float64, key func(i int) int) []int {
	best, largest := []int{0, 0}, -1.0
	for l, layer := range weights {
		for h, head := range layer {
			mean, n := 0.0, 0.0
			for i, row := range head {
				if j := key(i); j >= 0 && j < len(row) {
					mean, n = mean+row[j], n+1
				}
			}
			if mean/n > largest {
				best, largest = []int{l, h}, mean/n
			}
		}
	}
	return best
}

func solved(weights [][][][]float64) []int { return most(weights, func(i int) int { return i - 1 }) }

var mistakes = []struct {
	What string
	F    func(weights [][][][]float64) []int
}{
	{"this head attends to the next token: queries and keys are exchanged", func(w [][][][]float64) []int { return most(w, func(i int) int { return i + 1 }) }},
	{"this head attends to the token itself", func(w [][][][]float64) []int { return most(w, func(i int) int { return i }) }},
	{"this head attends to the first token: a sink", func(w [][][][]float64) []int { return most(w, func(int) int { return 0 }) }},
	{"layer and head are exchanged", func(w [][][][]float64) []int { at := solved(w); slices.Reverse(at); return at }},
	{"this is the number of the head among all, without its layer", func(w [][][][]float64) []int { at := solved(w); return []int{0, at[0]*len(w[0]) + at[1]} }},
}

var exercise = check.Exercise[func(weights [][][][]float64) []int]{
	Name: "previous", Run: func(f func(weights [][][][]float64) []int) any { return f(weights) }, Solved: solved, Mistakes: mistakes,
}

func TestPrevious(t *testing.T) { exercise.Test(t, previous) }

// The solution is the stated head. Each typical mistake is named.
func TestMistakes(t *testing.T) {
	if got := solved(weights); !slices.Equal(got, []int{1, 2}) {
		t.Error(got)
	}
	exercise.TestMistakes(t)
}
