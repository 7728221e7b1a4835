// Package dates is the exercise of lesson 5: which heads matter least?
// Fill in order; go test -v ./examples/exercises/dates says what is wrong.
package dates

// order returns the numbers of the heads, the least important one first. The importance of a head is the increase in loss
// when it alone is removed. loss returns the loss with the heads that are on.
func order(heads int, loss func(on []bool) float64) []int {
	return nil // your code
}
