package dates

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn/examples/exercises/check"
)

const heads = 4

// loss falls without head 1; heads 0 and 2 can replace one another.
func loss(on []bool) float64 {
	sum := 0.3
	for h, x := range []float64{0.22, -0.09, 0.03, 0.6} {
		if !on[h] {
			sum += x
		}
	}
	if !on[0] && !on[2] {
		sum += 0.5
	}
	return sum
}

// only returns which heads are on: those for which f is true.
func only(heads int, f func(h int) bool) []bool {
	on := make([]bool, heads)
	for h := range on {
		on[h] = f(h)
	}
	return on
}

// by sorts the heads by a score.
func by(score func(heads int, loss func([]bool) float64, h int) float64) func(int, func([]bool) float64) []int {
	return func(heads int, loss func([]bool) float64) (order []int) {
		for h := range heads {
			order = append(order, h)
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score(heads, loss, a), score(heads, loss, b)) })
		return order
	}
}

func importance(heads int, loss func([]bool) float64, h int) float64 {
	return loss(only(heads, func(i int) bool { return i != h })) - loss(only(heads, func(int) bool { return true }))
}

func solved(heads int, loss func([]bool) float64) []int { return by(importance)(heads, loss) }

var mistakes = []struct {
	What string
	F    func(heads int, loss func([]bool) float64) []int
}{
	{"the most important head is first: the sign is wrong", by(func(n int, loss func([]bool) float64, h int) float64 { return -importance(n, loss, h) })},
	{"importance is no absolute value: a head without which the loss falls is the first to go", by(func(n int, loss func([]bool) float64, h int) float64 {
		return math.Abs(importance(n, loss, h))
	})},
	{"heads are not put back before the next one is measured", by(func(n int, loss func([]bool) float64, h int) float64 {
		return loss(only(n, func(i int) bool { return i > h })) - loss(only(n, func(i int) bool { return i >= h }))
	})},
	{"each head is measured alone, without the others", by(func(n int, loss func([]bool) float64, h int) float64 {
		return loss(only(n, func(i int) bool { return i == h }))
	})},
	{"heads are counted from 0", func(heads int, loss func([]bool) float64) []int {
		order := solved(heads, loss)
		for i := range order {
			order[i]++
		}
		return order
	}},
	{"this is the place of each head in the order, not the heads in order", func(heads int, loss func([]bool) float64) []int {
		places := make([]int, heads)
		for i, h := range solved(heads, loss) {
			places[h] = i
		}
		return places
	}},
}

var exercise = check.Exercise[func(heads int, loss func(on []bool) float64) []int]{
	Name: "order", Run: func(f func(heads int, loss func(on []bool) float64) []int) any { return f(heads, loss) }, Solved: solved, Mistakes: mistakes,
}

func TestOrder(t *testing.T) { exercise.Test(t, order) }

// The solution is the stated order. Each typical mistake is named.
func TestMistakes(t *testing.T) {
	if got := solved(heads, loss); !slices.Equal(got, []int{1, 2, 0, 3}) {
		t.Error(got)
	}
	exercise.TestMistakes(t)
}
