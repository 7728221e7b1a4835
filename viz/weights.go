package viz

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// Weights returns a figure of weights: a heat map of a matrix [Lq Lk], a panel per head for
// [H Lq Lk], and a row of panels per sequence for [B H Lq Lk].
//
//	err := viz.Weights(out.Weights).SVG(file)
//	err := viz.Weights(out.Weights, words).SVG(file)
//	err := viz.Weights(cross.Weights, target, source).SVG(file)
//
// tokens are the tokens of queries and keys, or one list for both. Without tokens, labels are numbers. For weights of
// package linear, set Figure.Signed.
//
// Panics: with a *tensor.ShapeError if t has another rank, or if the number of tokens does not match.
//
// Aliasing: the figure shares t's data.
func Weights(t *tensor.Tensor, tokens ...[]string) Figure {
	shape := t.Shape()
	wrong := func(want string) {
		panic(&tensor.ShapeError{Op: "viz: Weights", Arg: "weights", Got: shape, Want: want})
	}
	if len(shape) < 2 || len(shape) > 4 {
		wrong("[Lq Lk], [H Lq Lk] or [B H Lq Lk]")
	}
	all := append([]int{1, 1, 1}, shape...)
	all = all[len(all)-4:]
	lq, lk := all[2], all[3]
	if len(tokens) > 2 {
		panic(&tensor.ShapeError{Op: "viz: Weights", Arg: "tokens", What: "number of lists", Got: []int{len(tokens)}, Want: "2, of queries and keys"})
	}
	axis := func(i, n int) []string {
		if len(tokens) == 0 {
			list := make([]string, n)
			for j := range list {
				list[j] = strconv.Itoa(j)
			}
			return list
		}
		list := tokens[min(i, len(tokens)-1)]
		if len(list) != n {
			wrong(fmt.Sprintf("[… %d %d] for the tokens", len(tokens[0]), len(tokens[len(tokens)-1])))
		}
		return list
	}
	rows, columns := axis(0, lq), axis(1, lk)
	f := Figure{RowTitle: "query", ColumnTitle: "key"}
	if len(shape) > 2 {
		f.Columns = all[1]
	}
	for b := range all[0] {
		for h := range all[1] {
			p := Panel{Head: h, Layer: b, Rows: rows, Columns: columns, Values: t.Data()[(b*all[1]+h)*lq*lk:][:lq*lk], NewLine: h == 0}
			switch len(shape) {
			case 3:
				p.Title = fmt.Sprintf("head %d", h)
			case 4:
				p.Title = fmt.Sprintf("sequence %d, head %d", b, h)
			}
			f.Panels = append(f.Panels, p)
		}
	}
	return f
}

// MaskedWeights is Weights with masked cells hatched:
//
//	err := viz.MaskedWeights(out.Weights, mask.Causal()).SVG(file)
//
// Panics: like Weights, and with a *tensor.ShapeError if the mask does not fit the weights. A
// matrix [Lq Lk] counts as [1 1 Lq Lk] and [H Lq Lk] as [1 H Lq Lk].
func MaskedWeights(t *tensor.Tensor, mask attn.Mask, tokens ...[]string) Figure {
	f := Weights(t, tokens...)
	shape := append([]int{1, 1}, t.Shape()...)
	shape = shape[len(shape)-4:] // Weights has checked them
	size := shape[2] * shape[3]
	attended := mask.Array(attn.Sizes{B: shape[0], H: shape[1], G: shape[1], Lq: shape[2], Lk: shape[3]})
	for i := range f.Panels {
		masked := make([]bool, size)
		for n, yes := range attended[i*size:][:size] {
			masked[n] = !yes
		}
		if slices.Contains(masked, true) {
			f.Panels[i].Masked = masked
		}
	}
	return f
}
