// Package induction is the exercise of lesson 9: which head did it, and where?
// Fill in restored; go test -v ./examples/exercises/induction says what is wrong.
package induction

// restored returns a number for each head and position [heads][positions]: which share of the difference between the losses
// of B and A a patch restores that puts what this head returns in A, at this position, into B. It is 0 if the loss of B
// stays, and 1 if it falls to that of A. loss returns the loss of the right answer for sequence "A" or "B", in which the
// patched heads, {head, position} each, return what they return in the other sequence.
func restored(heads, positions int, loss func(sequence string, patched ...[2]int) float64) [][]float64 {
	return nil // your code
}
