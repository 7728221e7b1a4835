// Package reverse is the exercise of lesson 3: what a decoder reads while it is trained.
// Fill in shifted; go test -v ./examples/exercises/reverse says what is wrong.
package reverse

// shifted returns what a decoder has written before each token of the targets, which begins with the token begin. The
// rows are as long as those of the targets.
func shifted(targets [][]int, begin int) [][]int {
	return nil // your code
}
