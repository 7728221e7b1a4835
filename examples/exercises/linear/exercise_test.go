// Package linear is the exercise of lesson 8: the delta rule with a decay, token by token.
// Fill in delta; go test -v ./examples/exercises/linear says what is wrong.
package linear

// delta returns what each query reads from the state after its token [L V], without the scale 1/√E. The state is 0 at first.
// A token lets it shrink by the factor exp(decay), and then replaces the share beta of what its key reads by its value.
// q and k are [L E], v is [L V], decay and beta are [L].
func delta(q, k, v [][]float64, decay, beta []float64) [][]float64 {
	return nil // your code
}
