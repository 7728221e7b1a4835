// Command regression uses attention without a network: Nadaraya–Watson regression. A query is a
// place x, the keys are the places of observations, and the weights decrease with the distance
// between them. It estimates a curve from 50 noisy points, first with a kernel of fixed width
// and then with a learnt one. It draws both curves with their weights into the directory given as
// an argument.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/viz"
)

func truth(x float64) float64 { return 2*math.Sin(x) + math.Pow(x, 0.8) }

func main() {
	log.SetFlags(0)
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := run(dir); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) error {
	const observations, places = 50, 101
	rng := rand.New(rand.NewPCG(1, 2))
	x := tensor.Uniform(rng, 0, 5, 1, observations, 1) // [B Lk 1]
	slices.SortFunc(x.Data(), cmp.Compare[float32])
	y := tensor.Zeros(1, observations, 1)
	for i, v := range x.Data() {
		y.Data()[i] = float32(truth(float64(v)) + 0.5*rng.NormFloat64())
	}
	at := tensor.Reshape(nil, tensor.Linspace(0, 5, places), 1, places, 1) // where the curve is estimated

	// The width is 1/w. It is learnt by estimating each observation from the others.
	// lesson: fixed
	kernel := &score.Gaussian{W: tensor.Full(1, 1).Param()}
	fixed := attn.Attend(nil, at, x, y, attn.Options{Score: kernel, Weights: true})
	// lesson end
	fmt.Println("output", fixed.Out.Shape(), "weights", fixed.Weights.Shape())
	// lesson: learn
	others := mask.AllowFunc(func(_, _, i, j int) bool { return i != j })
	optimizer := optim.NewAdamW(kernel)
	tape := tensor.NewTape(tensor.Train)
	for range 200 {
		tape.Reset()
		optim.ZeroGrad(kernel)
		estimate := attn.Attend(tape, x, x, y, attn.Options{Score: kernel, Mask: others}).Out
		tape.Backward(nn.MSE(tape, estimate, y), nil)
		optimizer.Step(0.1)
	}
	// lesson end
	learnt := attn.Attend(nil, at, x, y, attn.Options{Score: kernel, Weights: true})
	fmt.Printf("the learnt w is %.1f\n", kernel.W.Item())

	curve := func(title string, out *tensor.Tensor) viz.Chart {
		c := viz.Chart{Title: title, X: "x", Y: "y", YAxis: viz.Axis{Low: -1, High: 5},
			Lines: []viz.Line{{Name: "truth", Color: viz.Grey, Dashed: true}, {Name: "estimate", Color: 1}}}
		for i := range c.Lines {
			c.Lines[i].X = at.Float64s()
		}
		c.Lines[1].Y = out.Float64s()
		for _, v := range c.Lines[0].X {
			c.Lines[0].Y = append(c.Lines[0].Y, truth(v))
		}
		c.Lines = append(c.Lines, viz.Line{Name: "observations", X: x.Float64s(), Y: y.Float64s(), Color: 2, Points: true})
		return c
	}
	charts := viz.Multiples{Charts: []viz.Chart{curve("w = 1", fixed.Out), curve(fmt.Sprintf("w = %.1f, learnt", kernel.W.Item()), learnt.Out)}}
	if err := charts.Charts[1].Text(os.Stdout, viz.Terminal{Width: 80}); err != nil {
		return err
	}

	// Rows are queries, columns are observations: with the learnt width only near ones count.
	numbers := [2][]string{} // places of the queries; indexes of the observations
	for _, x := range at.Float64s() {
		numbers[0] = append(numbers[0], fmt.Sprintf("%.4g", x))
	}
	for i := range observations {
		numbers[1] = append(numbers[1], fmt.Sprint(i))
	}
	weights := viz.Weights(fixed.Weights, numbers[0], numbers[1])
	weights.Title, weights.Scale, weights.Columns = "Weights", viz.Largest, 2
	weights.RowTitle, weights.ColumnTitle = "place x (query)", "observation (key)"
	weights.Panels = append(weights.Panels, viz.Weights(learnt.Weights, numbers[0], numbers[1]).Panels...)
	weights.Panels[0].Title, weights.Panels[1].Title = charts.Charts[0].Title, charts.Charts[1].Title
	weights.Panels[1].NewLine = false
	return errors.Join(
		viz.WriteFile(filepath.Join(dir, "regression.svg"), charts),
		viz.WriteFile(filepath.Join(dir, "regression-weights.svg"), weights))
}
