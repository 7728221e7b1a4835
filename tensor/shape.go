package tensor

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// ShapeError reports an argument whose shape, or a related property such as its lengths, does not match the
// operation.
type ShapeError struct {
	Op   string // the operation with its package: "tensor: MatMul"
	Arg  string // the argument's name: "b"
	What string // the property that does not match, such as "number of heads"; empty means the shape
	Got  []int
	Want string // what is expected, in words and letters
}

// Error gives "op: arg has shape [2 3], want want". A property that is one number has no brackets: "has length 9"; a
// property "number of heads" gives "has 9 heads".
func (e *ShapeError) Error() string {
	got := fmt.Sprint("shape ", e.Got)
	if e.What != "" {
		got = fmt.Sprint(e.What, " ", e.Got)
		if len(e.Got) == 1 {
			got = fmt.Sprint(e.What, " ", e.Got[0])
			if of, ok := strings.CutPrefix(e.What, "number of "); ok {
				got = fmt.Sprint(e.Got[0], " ", of)
			}
		}
	}
	return fmt.Sprintf("%s: %s has %s, want %s", e.Op, e.Arg, got, e.Want)
}

// ValueError reports an argument that is invalid for a reason other than its shape: an option out of range, a nil
// tensor, or a tensor whose memory a tape has freed.
type ValueError struct {
	Op   string // the operation with its package: "tensor: Dropout"
	Arg  string // the argument's name: "p"
	Got  string // the value, in words or digits
	Want string // the values that are valid
}

// Error gives "op: arg is got, want want".
func (e *ValueError) Error() string {
	return fmt.Sprintf("%s: %s is %s, want %s", e.Op, e.Arg, e.Got, e.Want)
}

// Catch calls f and returns the *ShapeError or *ValueError that f panicked with, or nil. If the context of a tape has
// ended within f, it returns the error of the context. Any other panic passes through, because it does not concern an
// argument.
func Catch(f func()) (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *ShapeError:
			err = e
		case *ValueError:
			err = e
		default:
			panic(e)
		}
	}()
	return par.Stopped(f)
}

// badShape panics with a *ShapeError; all such panics of this package come from here.
func badShape(op, arg string, got []int, want string, args ...any) {
	panic(&ShapeError{
		Op: "tensor: " + op, Arg: arg, Got: slices.Clone(got), Want: fmt.Sprintf(want, args...),
	})
}

// badValue panics with a *ValueError; all such panics of this package come from here.
func badValue(op, arg, got, want string) {
	panic(&ValueError{Op: "tensor: " + op, Arg: arg, Got: got, Want: want})
}

// size returns the number of elements of a shape that checkSize has accepted.
func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// mostElements is the largest size of a tensor, 4 TiB. A larger size is a mistake or comes from a hostile file, and
// could overflow.
const mostElements = min(1<<40, math.MaxInt/4)

// checkSize returns the number of elements of a new array. It panics if an axis is negative or if there are too many
// elements. Axes of size zero are left out of that limit, so that the product of any axes does not overflow.
func checkSize(op string, shape []int) int {
	n, empty := uint64(1), false
	for _, d := range shape {
		if d < 0 {
			badShape(op, "tensor", shape, "no negative axis")
		}
		if d == 0 {
			empty = true
			continue
		}
		over, product := bits.Mul64(n, uint64(d))
		if n = product; over != 0 || n > mostElements {
			badShape(op, "tensor", shape, "at most %d elements", mostElements)
		}
	}
	if empty {
		return 0
	}
	return int(n)
}

// operand panics unless x, the operand called arg, is a valid tensor.
func operand(op, arg string, x *Tensor) {
	if x == nil {
		badValue(op, arg, "nil", "a tensor")
	}
	if len(x.shape) == 0 && len(x.data) == 0 {
		badValue(op, arg, "the zero Tensor", "a tensor from New, Zeros or an operation")
	}
	if x.later {
		badShape(op, arg, x.shape, "a parameter with elements: call Build or Forward on its layer first")
	}
	if x.stale() {
		badStale(op, arg)
	}
}

// checkRand panics if rng is nil.
func checkRand(op string, rng *rand.Rand) {
	if rng == nil {
		badValue(op, "rng", "nil", "a *rand.Rand")
	}
}

// split returns the product of the sizes before an axis, its size, and the product of the sizes after it, so that
// element (o, i, j) of the array is at index (o·n + i)·inner + j.
func split(shape []int, axis int) (outer, n, inner int) {
	return size(shape[:axis]), shape[axis], size(shape[axis+1:])
}

// rows returns the number of vectors along the last axis, and their length.
func rows(op string, x *Tensor) (n, width int) {
	operand(op, "x", x)
	if x.Rank() == 0 {
		badShape(op, "x", x.shape, "at least one axis")
	}
	last := x.Rank() - 1
	return size(x.shape[:last]), x.shape[last]
}

// checkAxis panics unless axis is one of x's axes.
func checkAxis(op string, x *Tensor, axis int) {
	operand(op, "x", x)
	if axis < 0 || axis >= x.Rank() {
		badShape(op, "x", x.shape, "an axis %d", axis)
	}
}

// sameShape panics unless x has the shape want.
func sameShape(op, arg string, x *Tensor, want []int) {
	operand(op, arg, x)
	if !slices.Equal(x.shape, want) {
		badShape(op, arg, x.shape, "%v", want)
	}
}

// Want panics with a *ValueError if x is nil. It is for user-defined operations.
func Want(op, arg string, x *Tensor) {
	if x == nil {
		panic(&ValueError{Op: op, Arg: arg, Got: "nil", Want: "a tensor"})
	}
}

// CheckShape returns a *ShapeError, with an empty Op, unless x has the given sizes; a size of −1 matches any. It
// returns a *ValueError if x is nil. want describes the expected shape, such as "[H=3 E]".
func CheckShape(arg string, x *Tensor, want string, sizes ...int) error {
	if x == nil {
		return &ValueError{Arg: arg, Got: "nil", Want: want}
	}
	fits := x.Rank() == len(sizes)
	for i := 0; fits && i < len(sizes); i++ {
		fits = sizes[i] < 0 || x.Dim(i) == sizes[i]
	}
	if !fits {
		return &ShapeError{Arg: arg, Got: x.Shape(), Want: want}
	}
	return nil
}

// AddTo sets dst[i] += x[i] with SIMD instructions, several times as fast as a loop in Go. It panics unless the
// slices have the same length.
func AddTo(dst, x []float32) { simd.Add(dst, dst, x) }
