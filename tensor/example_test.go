package tensor_test

import (
	"fmt"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// The derivative of a polynomial: of x³ − 2x at x = 3.
func Example() {
	x := tensor.New([]float32{3}, 1).Param()
	tape := tensor.NewTape(tensor.Train)
	cube := tensor.Mul(tape, tensor.Square(tape, x), x)
	y := tensor.Sub(tape, cube, tensor.Scale(tape, x, 2))
	tape.Backward(y, nil)
	fmt.Println(y, x.Grad())
	// Output: [21] [25]
}

// clamp is an operation of one's own: x cut off at ±limit.
func clamp(tape *tensor.Tape, x *tensor.Tensor, limit float32) *tensor.Tensor {
	out := tape.Make(x.Shape()...)
	for i, v := range x.Data() {
		out.Data()[i] = max(-limit, min(v, limit))
	}
	if tape.Needs(x) {
		tape.Record(out, func(dout []float32) {
			dx := tape.GradOf(x)
			for i, v := range x.Data() {
				if -limit < v && v < limit {
					dx[i] += dout[i]
				}
			}
		})
	}
	return out
}

func ExampleTape_Record() {
	x := tensor.New([]float32{-3, -1, 0, 0.5, 7}, 5).Param()
	tape := tensor.NewTape(tensor.Train)
	y := clamp(tape, tensor.Scale(tape, x, 2), 4)
	tape.Backward(tensor.Sum(tape, y), nil)
	fmt.Println(y)
	fmt.Println(x.Grad())
	// Output:
	// [-4 -2 0 1 4]
	// [0 2 2 2 0]
}

// Shapes that come from outside are tried inside Catch.
func ExampleCatch() {
	a, b := tensor.Zeros(2, 3), tensor.Zeros(5, 7)
	err := tensor.Catch(func() { tensor.MatMul(nil, a, b) })
	fmt.Println(err)
	// Output: tensor: MatMul: b has shape [5 7], want K=3, as a [2 3] has
}

// oneInTwo hides every second column, and from row 1 all of them.
type oneInTwo struct{}

func (m oneInTwo) Visible([]int) tensor.Visible { return m }

func (oneInTwo) Row(r int, seen []bool) (lo, hi int, holes bool) {
	if r == 1 {
		return 0, 0, false
	}
	for j := range seen {
		seen[j] = j%2 == 0
	}
	return 0, len(seen), true
}

// One head of the weights [B H Lq Lk] that attention returns, as a matrix.
func ExampleIndex() {
	x := tensor.Zeros(2, 1, 4, 8)
	weights := attn.Attend(nil, x, x, x, attn.Options{Mask: attn.Causal(), Weights: true}).Weights
	head := tensor.Index(nil, weights, 1, 0)
	fmt.Println(weights.Shape(), head.Shape())
	fmt.Println(head)
	// Output:
	// [2 1 4 4] [4 4]
	// [[1 0 0 0] [0.5 0.5 0 0] [0.3333 0.3333 0.3333 0] [0.25 0.25 0.25 0.25]]
}

// A mask of one's own says of each row what it sees.
func ExampleMask() {
	fmt.Println(tensor.MaskedSoftmax(nil, tensor.Zeros(2, 4), oneInTwo{}))
	// Output: [[0.5 0 0.5 0] [0 0 0 0]]
}

// The masks of package attn fit: here two sequences with two queries each, of
// whose four keys the first two and the first three are valid.
func ExampleMaskedSoftmax() {
	scores := tensor.Zeros(2, 2, 4)
	fmt.Println(tensor.MaskedSoftmax(nil, scores, attn.ValidLens(2, 3)))
	fmt.Println(tensor.MaskedSoftmax(nil, scores, attn.ValidLensRows([][]int{{1, 3}, {2, 4}})))
	// Output:
	// [[[0.5 0.5 0 0] [0.5 0.5 0 0]] [[0.3333 0.3333 0.3333 0] [0.3333 0.3333 0.3333 0]]]
	// [[[1 0 0 0] [0.3333 0.3333 0.3333 0]] [[0.5 0.5 0 0] [0.25 0.25 0.25 0.25]]]
}
