package induction

import (
	"slices"
	"testing"

	"github.com/attn-go/attn/examples/exercises/check"
)

const inA, inB = 0.25, 2.25

// What a patch restores in B, and what it destroys in A, as shares of the difference. Head 1 matters at position 2. All
// numbers are exact, and none is 0, which could be −0.
var (
	restores = [][]float64{{-1. / 64, 1. / 128, 1. / 32, 1. / 64}, {1. / 64, -1. / 128, 7. / 8, 1. / 16}, {1. / 128, -1. / 32, 3. / 128, 1. / 8}}
	destroys = [][]float64{{1. / 128, 1. / 64, 1. / 4, 1. / 128}, {1. / 64, 1. / 128, 1. / 2, 1. / 32}, {1. / 128, 1. / 32, 1. / 64, 1. / 4}}
)

func loss(sequence string, patched ...[2]int) float64 {
	l, by, table := inB, inA-inB, restores
	if sequence == "A" {
		l, by, table = inA, inB-inA, destroys
	}
	for _, p := range patched {
		l += float64(by * table[p[0]][p[1]])
	}
	return l
}

type losses = func(sequence string, patched ...[2]int) float64

// each returns a function that calls share for each head and position, with the losses of A and B.
func each(share func(h, p int, heads, positions int, a, b float64, loss losses) float64) func(heads, positions int, loss losses) [][]float64 {
	return func(heads, positions int, loss losses) [][]float64 {
		out := make([][]float64, heads)
		for h := range out {
			for p := range positions {
				out[h] = append(out[h], share(h, p, heads, positions, loss("A"), loss("B"), loss))
			}
		}
		return out
	}
}

var solved = each(func(h, p, _, _ int, a, b float64, loss losses) float64 {
	return (b - loss("B", [2]int{h, p})) / (b - a)
})

// all returns the patches of the first heads and positions.
func all(h0, heads, p0, positions int) (list [][2]int) {
	for h := h0; h < heads; h++ {
		for p := p0; p < positions; p++ {
			list = append(list, [2]int{h, p})
		}
	}
	return list
}

var mistakes = []struct {
	What string
	F    func(heads, positions int, loss losses) [][]float64
}{
	{"the sign is wrong: a patch that lowers the loss restores something", each(func(h, p, _, _ int, a, b float64, loss losses) float64 {
		return (loss("B", [2]int{h, p}) - b) / (b - a)
	})},
	{"the wrong sequence is patched: what heads return in A belongs into B", each(func(h, p, _, _ int, a, b float64, loss losses) float64 {
		return (loss("A", [2]int{h, p}) - a) / (b - a)
	})},
	{"all heads of the layer are patched, not one", each(func(_, p, heads, _ int, a, b float64, loss losses) float64 {
		return (b - loss("B", all(0, heads, p, p+1)...)) / (b - a)
	})},
	{"the head is patched at all positions, not at one", each(func(h, _, _, positions int, a, b float64, loss losses) float64 {
		return (b - loss("B", all(h, h+1, 0, positions)...)) / (b - a)
	})},
	{"earlier patches are not taken back", each(func(h, p, _, positions int, a, b float64, loss losses) float64 {
		return (b - loss("B", append(all(0, h, 0, positions), all(h, h+1, 0, p+1)...)...)) / (b - a)
	})},
	{"this is the decrease in loss, not a share of the difference between B and A", each(func(h, p, _, _ int, a, b float64, loss losses) float64 { return b - loss("B", [2]int{h, p}) })},
	{"this is a share of the loss of B: A has a loss, too", each(func(h, p, _, _ int, a, b float64, loss losses) float64 { return (b - loss("B", [2]int{h, p})) / b })},
	{"this is the share that is left, not the one that is restored", each(func(h, p, _, _ int, a, b float64, loss losses) float64 {
		return (loss("B", [2]int{h, p}) - a) / (b - a)
	})},
	{"positions come first: the result is [positions][heads]", func(heads, positions int, loss losses) [][]float64 {
		return each(func(p, h, _, _ int, a, b float64, loss losses) float64 {
			return (b - loss("B", [2]int{h, p})) / (b - a)
		})(positions, heads, loss)
	}},
}

var exercise = check.Exercise[func(heads, positions int, loss losses) [][]float64]{
	Name: "restored", Run: func(f func(heads, positions int, loss losses) [][]float64) any { return f(3, 4, loss) }, Solved: solved, Mistakes: mistakes,
}

func TestRestored(t *testing.T) { exercise.Test(t, restored) }

// The solution has the shares that the losses are made from. Each typical mistake is named.
func TestMistakes(t *testing.T) {
	if got := solved(3, 4, loss); !slices.EqualFunc(got, restores, slices.Equal) {
		t.Error(got)
	}
	exercise.TestMistakes(t)
}
