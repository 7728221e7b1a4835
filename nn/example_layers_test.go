package nn_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/tensor"
)

func ExampleLinear() {
	l := nn.NewLinear(3, 2, true, rand.New(rand.NewPCG(1, 2)))
	copy(l.Weight.Data(), []float32{1, 0, 0, 0, 1, 1}) // [out in]
	copy(l.Bias.Data(), []float32{10, 20})
	fmt.Println(l.Forward(nil, tensor.New([]float32{1, 2, 3}, 1, 3)))
	// Output: [[11 25]]
}

func ExampleLayerNorm() {
	n := nn.NewLayerNorm(4)
	fmt.Printf("%.3f\n", n.Forward(nil, tensor.New([]float32{1, 2, 3, 4}, 1, 4)).Data())
	// Output: [-1.342 -0.447 0.447 1.342]
}

func ExampleFeedForward() {
	f := nn.NewFeedForward(16, 64, 0.1, rand.New(rand.NewPCG(1, 2)))
	fmt.Println(f.Forward(nil, tensor.Zeros(2, 5, 16)).Shape(), nn.Count(f))
	// Output: [2 5 16] 2128
}

// Clip the gradients before the optimiser's step.
func ExampleClipGradNorm() {
	l := nn.NewLinear(1, 1, false, rand.New(rand.NewPCG(1, 2)))
	l.Weight.Data()[0] = 1
	tape := tensor.NewTape(tensor.Train)
	loss := nn.MSE(tape, l.Forward(tape, tensor.Full(3, 1, 1)), tensor.Zeros(1, 1))
	tape.Backward(loss, nil)
	fmt.Println(optim.ClipGradNorm(l, 1), l.Weight.Grad())
	optim.NewSGD(l).Step(0.1)
	fmt.Println(l.Weight)
	// Output:
	// 18 [[1]]
	// [[0.9]]
}

// A schedule is a factor of the learning rate for each step.
func ExampleWarmupCosine() {
	rate := optim.WarmupCosine(10, 100)
	for _, step := range []int{1, 10, 55, 100} {
		fmt.Printf("%d: %.2f\n", step, rate(step))
	}
	// Output:
	// 1: 0.10
	// 10: 1.00
	// 55: 0.50
	// 100: 0.00
}
