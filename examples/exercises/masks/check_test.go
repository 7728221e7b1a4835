package masks

import (
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/examples/exercises/check"
	"github.com/attn-go/attn/mask"
)

const n, left = 7, 2

var ends = []int{2, 7}

// rows returns a mask. see is called with the documents of the query and of the key, too.
func rows(see func(i, j, left, di, dj int) bool) func(n, left int, ends []int) [][]bool {
	return func(n, left int, ends []int) [][]bool {
		out := make([][]bool, n)
		document := func(i int) int { return slices.IndexFunc(ends, func(end int) bool { return i < end }) }
		for i := range out {
			for j := range n {
				out[i] = append(out[i], see(i, j, left, document(i), document(j)))
			}
		}
		return out
	}
}

func right(i, j, left, di, dj int) bool { return di == dj && j <= i && j >= i-left }

func solved(n, left int, ends []int) [][]bool { return rows(right)(n, left, ends) }

var mistakes = []struct {
	What string
	F    func(n, left int, ends []int) [][]bool
}{
	{"the documents are forgotten", rows(func(i, j, left, _, _ int) bool { return right(i, j, left, 0, 0) })},
	{"the window is forgotten: at most left keys before its own", rows(func(i, j, _, di, dj int) bool { return right(i, j, n, di, dj) })},
	{"the mask is not causal: later keys are visible", rows(func(i, j, left, di, dj int) bool { return right(i, j, left, di, dj) || right(j, i, left, dj, di) })},
	{"a query sees its own key, too: j ≤ i, not j < i", rows(func(i, j, left, di, dj int) bool { return i != j && right(i, j, left, di, dj) })},
	{"the window is too small: left keys before its own, and its own", rows(func(i, j, left, di, dj int) bool { return right(i, j, left-1, di, dj) })},
	{"the window is too large: left keys before its own", rows(func(i, j, left, di, dj int) bool { return right(i, j, left+1, di, dj) })},
	{"queries and keys are exchanged", rows(func(i, j, left, di, dj int) bool { return right(j, i, left, dj, di) })},
	{"true and false are exchanged: true means that a key is visible", rows(func(i, j, left, di, dj int) bool { return !right(i, j, left, di, dj) })},
}

var exercise = check.Exercise[func(n, left int, ends []int) [][]bool]{
	Name: "visible", Run: func(f func(n, left int, ends []int) [][]bool) any { return f(n, left, ends) }, Solved: solved, Mistakes: mistakes,
}

func TestVisible(t *testing.T) { exercise.Test(t, visible) }

// The solution is attn's mask. Each typical mistake is named.
func TestMistakes(t *testing.T) {
	m := attn.And(mask.Documents(ends), mask.Causal(), mask.Window(left, 0))
	if got, want := slices.Concat(solved(n, left, ends)...), m.Array(attn.Sizes{B: 1, H: 1, G: 1, Lq: n, Lk: n}); !slices.Equal(got, want) {
		t.Errorf("%v, attn's mask is %v", got, want)
	}
	exercise.TestMistakes(t)
}
