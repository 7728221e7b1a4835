package reverse

import (
	"fmt"
	"slices"
	"testing"

	"github.com/attn-go/attn/examples/exercises/check"
)

var targets = [][]int{{5, 4, 3, 2}, {7, 6, 2, 0}} // 2 is the end, and 0 padding

const begin = 1

// rows applies a function to each row.
func rows(f func(row []int, begin int) []int) func([][]int, int) [][]int {
	return func(targets [][]int, begin int) (out [][]int) {
		for _, row := range targets {
			out = append(out, f(slices.Clone(row), begin))
		}
		return out
	}
}

func solved(targets [][]int, begin int) [][]int {
	return rows(func(row []int, begin int) []int { return append([]int{begin}, row[:len(row)-1]...) })(targets, begin)
}

var mistakes = []struct {
	What string
	F    func(targets [][]int, begin int) [][]int
}{
	{"nothing is shifted: the decoder reads the token that it has to write", rows(func(row []int, _ int) []int { return row })},
	{"shifted the wrong way: the decoder reads the token after the one that it has to write", rows(func(row []int, begin int) []int { return append(row[1:], begin) })},
	{"begin is missing: the first token is 0", rows(func(row []int, _ int) []int { return append([]int{0}, row[:len(row)-1]...) })},
	{"the last token is not dropped: the rows are one longer", rows(func(row []int, begin int) []int { return append([]int{begin}, row...) })},
	{"the last token comes first: rolled instead of shifted", rows(func(row []int, _ int) []int { return append(row[len(row)-1:], row[:len(row)-1]...) })},
	{"the first token is overwritten by begin instead of moved", rows(func(row []int, begin int) []int { return append([]int{begin}, row[1:]...) })},
}

var exercise = check.Exercise[func(targets [][]int, begin int) [][]int]{
	Name: "shifted", Run: func(f func(targets [][]int, begin int) [][]int) any { return f(targets, begin) }, Solved: solved, Mistakes: mistakes,
}

func TestShifted(t *testing.T) { exercise.Test(t, shifted) }

// The solution is the stated rows. Each typical mistake is named.
func TestMistakes(t *testing.T) {
	if got := fmt.Sprint(solved(targets, begin)); got != "[[1 5 4 3] [1 7 6 2]]" {
		t.Error(got)
	}
	exercise.TestMistakes(t)
}
