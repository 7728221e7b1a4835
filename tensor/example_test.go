package tensor_test

import (
	"fmt"
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
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

// clamp is a user-defined operation: it limits x to ±limit.
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

// Catch turns the panic on a bad shape from outside into an error.
func ExampleCatch() {
	a, b := tensor.Zeros(2, 3), tensor.Zeros(5, 7)
	err := tensor.Catch(func() { tensor.MatMul(nil, a, b) })
	fmt.Println(err)
	// Output: tensor: MatMul: b has shape [5 7], want K=3 as in a [2 3]
}

// One head of the weights [B H Lq Lk] that attention returns, as a matrix.
func ExampleIndex() {
	x := tensor.Zeros(2, 1, 4, 8)
	weights := attn.Attend(nil, x, x, x, attn.Options{Mask: mask.Causal(), Weights: true}).Weights
	head := tensor.Index(nil, weights, 1, 0)
	fmt.Println(weights.Shape(), head.Shape())
	fmt.Println(head)
	// Output:
	// [2 1 4 4] [4 4]
	// [[1 0 0 0] [0.5 0.5 0 0] [0.3333 0.3333 0.3333 0] [0.25 0.25 0.25 0.25]]
}

// recency adds a number that depends on the distance between a key and its query.
type recency struct {
	attn.NoParam
	byDistance []float32 // from the farthest to 0
}

func (recency) Adds() bool { return true }

func (r recency) Apply(at attn.Row, _, scores []float32) {
	first := len(r.byDistance) - 1 - at.Position + at.Key
	tensor.AddTo(scores, r.byDistance[first:][:len(scores)])
}

func (recency) Back(_ attn.Row, _, _, _, _, _ []float32) {} // nothing is trained

// A score change that adds numbers from a slice.
func ExampleAddTo() {
	x := tensor.Zeros(1, 1, 3, 2)
	fade := recency{byDistance: []float32{float32(-math.Log(4)), float32(-math.Log(2)), 0}}
	last := tensor.Slice(nil, x, 2, 2, 3)
	out := attn.Attend(nil, last, x, x, attn.Options{Changes: []attn.ScoreChange{fade}, Weights: true})
	fmt.Println(out.Weights) // 1/4, 1/2 and 1, divided by their sum
	// Output:
	// [[[[0.1429 0.2857 0.5714]]]]
}

// Products of Linear and of attention on this tape round their factors to bfloat16, here 1.01 to 1.0078125.
func ExampleTape_SetFormat() {
	tape := tensor.NewTape(tensor.Infer)
	tape.SetFormat(tensor.BFloat16)
	x, w := tensor.New([]float32{1.01, 2}, 1, 2), tensor.New([]float32{1, 1}, 1, 2)
	fmt.Println(tensor.Linear(tape, x, w, nil).Data())
	fmt.Println(tensor.Linear(nil, x, w, nil).Data())
	// Output:
	// [3.0078125]
	// [3.01]
}

// The largest and the two largest numbers of each row, with their indices.
func ExampleTopK() {
	x := tensor.FromFloat64s([]float64{0.1, 0.7, 0.2, 0.5, 0.1, 0.4}, 2, 3)
	fmt.Println(tensor.ArgMax(x))
	values, indices := tensor.TopK(x, 2)
	fmt.Println(values.Shape(), values.Data(), indices)
	// Output:
	// [1 0]
	// [2 2] [0.7 0.2 0.5 0.4] [1 2 0 2]
}
