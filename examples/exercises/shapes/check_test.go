package shapes

import (
	"slices"
	"testing"

	"github.com/attn-go/attn/examples/exercises/check"
	"github.com/attn-go/attn/tensor"
)

const heads = 2

var x = [][]float64{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}, {16, 17, 18, 19, 20, 21, 22, 23}}

// read returns an array of a shape, whose elements are those of x at a place l and an element d.
func read(a, b, c int, at func(i, j, k int) (l, d int)) [][][]float64 {
	out := make([][][]float64, a)
	for i := range out {
		out[i] = make([][]float64, b)
		for j := range out[i] {
			for k := range c {
				l, d := at(i, j, k)
				out[i][j] = append(out[i][j], x[l][d])
			}
		}
	}
	return out
}

func solved(x [][]float64, heads int) [][][]float64 {
	e := len(x[0]) / heads
	return read(heads, len(x), e, func(h, l, i int) (int, int) { return l, h*e + i })
}

var mistakes = []struct {
	What string
	F    func(x [][]float64, heads int) [][][]float64
}{
	{"a reshape without a transpose: a head mixes positions. Split D first, then move the axes", func(x [][]float64, heads int) [][][]float64 {
		e := len(x[0]) / heads
		return read(heads, len(x), e, func(h, l, i int) (int, int) { n := (h*len(x)+l)*e + i; return n / len(x[0]), n % len(x[0]) })
	}},
	{"heads are split along the wrong axis: D is read as E × H instead of H × E", func(x [][]float64, heads int) [][][]float64 {
		return read(heads, len(x), len(x[0])/heads, func(h, l, i int) (int, int) { return l, i*heads + h })
	}},
	{"the axes are not moved: the result is [L H E]", func(x [][]float64, heads int) [][][]float64 {
		e := len(x[0]) / heads
		return read(len(x), heads, e, func(l, h, i int) (int, int) { return l, h*e + i })
	}},
	{"positions and elements are exchanged: the result is [H E L]", func(x [][]float64, heads int) [][][]float64 {
		e := len(x[0]) / heads
		return read(heads, e, len(x), func(h, i, l int) (int, int) { return l, h*e + i })
	}},
	{"the order of the heads is reversed", func(x [][]float64, heads int) [][][]float64 {
		e := len(x[0]) / heads
		return read(heads, len(x), e, func(h, l, i int) (int, int) { return l, (heads-1-h)*e + i })
	}},
}

var exercise = check.Exercise[func(x [][]float64, heads int) [][][]float64]{
	Name: "split", Run: func(f func(x [][]float64, heads int) [][][]float64) any { return f(x, heads) }, Solved: solved, Mistakes: mistakes,
}

func TestSplit(t *testing.T) { exercise.Test(t, split) }

// The solution is what the operations of package tensor compute. Each typical mistake is named.
func TestMistakes(t *testing.T) {
	a := tensor.Transpose(nil, tensor.Reshape(nil, tensor.FromFloat64s(slices.Concat(x...), 3, 8), 3, heads, 4), 1, 0, 2)
	if got := slices.Concat(slices.Concat(solved(x, heads)...)...); !slices.Equal(got, a.Float64s()) {
		t.Errorf("%v, attn computes %v", got, a)
	}
	exercise.TestMistakes(t)
}
