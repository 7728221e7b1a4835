// Package masks is the exercise of lesson 6: a mask of packed documents.
// Fill in visible; go test -v ./examples/exercises/masks says what is wrong.
package masks

// visible returns a row for each of n queries with true for each key that it may attend to: its own and at most left
// keys before it, of the same document. ends says where documents end, the last one at n.
func visible(n, left int, ends []int) [][]bool {
	return nil // your code
}
