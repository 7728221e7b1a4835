package tensor

import (
	"fmt"
	"slices"
)

// ShapeError reports an argument whose shape, or some other property such as
// its lengths, does not fit the operation it was given to.
type ShapeError struct {
	Op   string // the operation with its package: "tensor: MatMul"
	Arg  string // the argument's name: "b"
	What string // the property that does not fit; empty means the shape
	Got  []int
	Want string // what would have fitted, in words and letters
}

// Error gives "op: arg has shape got, want want".
func (e *ShapeError) Error() string {
	what := e.What
	if what == "" {
		what = "shape"
	}
	return fmt.Sprintf("%s: %s has %s %v, want %s", e.Op, e.Arg, what, e.Got, e.Want)
}

// Catch calls f and returns the *ShapeError that f panicked with, or nil. Any
// other panic passes through: it is not a matter of shapes.
func Catch(f func()) (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *ShapeError:
			err = e
		default:
			panic(e)
		}
	}()
	f()
	return nil
}

// badShape is the one place in this package that raises a *ShapeError.
func badShape(op, arg string, got []int, want string, args ...any) {
	panic(&ShapeError{
		Op: "tensor: " + op, Arg: arg, Got: slices.Clone(got), Want: fmt.Sprintf(want, args...),
	})
}

// size returns the number of elements of an array of the given shape.
func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// split returns the sizes before, of and behind an axis, so that element
// (o, i, j) of the array lies at (o·n + i)·inner + j.
func split(shape []int, axis int) (outer, n, inner int) {
	return size(shape[:axis]), shape[axis], size(shape[axis+1:])
}

// rows returns the number of vectors along the last axis, and their length.
func rows(op string, x *Tensor) (n, width int) {
	if x.Rank() == 0 {
		badShape(op, "x", x.shape, "at least one axis")
	}
	last := x.Rank() - 1
	return size(x.shape[:last]), x.shape[last]
}

// checkAxis panics unless axis is one of x's axes.
func checkAxis(op string, x *Tensor, axis int) {
	if axis < 0 || axis >= x.Rank() {
		badShape(op, "x", x.shape, "an axis %d", axis)
	}
}

// sameShape panics unless x has the shape want.
func sameShape(op, arg string, x *Tensor, want []int) {
	if !slices.Equal(x.shape, want) {
		badShape(op, arg, x.shape, "%v", want)
	}
}
