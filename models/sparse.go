package models

import (
	"cmp"
	"slices"

	"github.com/attn-go/attn/internal/stats"
)

// SparseVector is a vector with an element for each token of a vocabulary, of which most are zero. Its JSON form,
// {"indices": […], "values": […]}, is that of vector databases.
type SparseVector struct {
	Tokens  []int     `json:"indices"` // the ids of the elements that are not zero, ascending
	Weights []float32 `json:"values"`  // the elements
}

// NewSparseVector returns the vector of tokens with the given weights, in any order. A token that occurs several times
// has its largest weight. If tokens is nil, weights has an element for each token of the vocabulary.
func NewSparseVector(tokens []int, weights []float32) SparseVector {
	if tokens == nil {
		tokens = stats.Numbers(len(weights))
	}
	order := stats.Numbers(len(tokens))
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(tokens[i], tokens[j]), cmp.Compare(weights[j], weights[i]))
	})
	v := SparseVector{Tokens: []int{}, Weights: []float32{}}
	for n, i := range order {
		if weights[i] != 0 && (n == 0 || tokens[order[n-1]] != tokens[i]) {
			v.Tokens, v.Weights = append(v.Tokens, tokens[i]), append(v.Weights, weights[i])
		}
	}
	return v
}

// Dot returns Σ v_t·w_t over the tokens t that both vectors have.
func (v SparseVector) Dot(w SparseVector) (sum float64) {
	for i, j := 0, 0; i < len(v.Tokens) && j < len(w.Tokens); {
		switch c := cmp.Compare(v.Tokens[i], w.Tokens[j]); {
		case c < 0:
			i++
		case c > 0:
			j++
		default:
			sum += float64(v.Weights[i]) * float64(w.Weights[j])
			i, j = i+1, j+1
		}
	}
	return sum
}
