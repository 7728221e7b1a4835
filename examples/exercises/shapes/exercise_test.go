// Package shapes is the exercise of lesson 4: split vectors into heads.
// Fill in split; go test -v ./examples/exercises/shapes says what is wrong.
package shapes

// split returns the heads [H L E] of vectors x [L D], with E = D/H.
func split(x [][]float64, heads int) [][][]float64 {
	return nil // your code
}
