package optim_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/tensor"
)

// Fit a line to points, with the complete training loop.
func ExampleAdamW() {
	rng := rand.New(rand.NewPCG(1, 2))
	x := tensor.Uniform(rng, -1, 1, 50, 1)
	y := tensor.Shift(nil, tensor.Scale(nil, x, 3), -2) // y = 3x − 2

	line := nn.NewLinear(1, 1, true, rng)
	optimizer := optim.NewAdamW(line)
	schedule := optim.WarmupCosine(20, 400)
	tape := tensor.NewTape(tensor.Train)
	for step := 1; step <= 400; step++ {
		tape.Reset()
		optim.ZeroGrad(line)
		loss := nn.MSE(tape, line.Forward(tape, x), y)
		tape.Backward(loss, nil)
		optim.ClipGradNorm(line, 5)
		optimizer.Step(0.1 * schedule(step))
	}
	fmt.Printf("y = %.3fx %+.3f\n", line.Weight.Item(), line.Bias.Item())
	// Output: y = 3.000x -2.000
}
