// Command linear is attention without a softmax. It estimates the curve of examples/regression with a kernel that is a
// product of features, from a state to which one observation after the other is added. Then it trains four layers to
// recall digits by letters, and measures how many each remembers. It draws the results into the directory given as an
// argument.
package main

import (
	"cmp"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/examples/factor"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/viz"
)

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
	if err := regression(filepath.Join(dir, "linear.svg")); err != nil {
		return err
	}
	shares := viz.Multiples{Charts: []viz.Chart{recall("Letters that differ", false), recall("Letters that come again", true)}}
	return viz.WriteFile(filepath.Join(dir, "linear-recall.svg"), shares)
}

// regression draws two estimates of a curve.
func regression(path string) error {
	const observations, places = 50, 101
	rng := rand.New(rand.NewPCG(1, 2))
	x := tensor.Uniform(rng, 0, 5, 1, observations, 1) // [B Lk 1]
	slices.SortFunc(x.Data(), cmp.Compare[float32])
	y := tensor.Zeros(1, observations, 1)
	for i, v := range x.Data() {
		y.Data()[i] = float32(2*math.Sin(float64(v)) + math.Pow(float64(v), 0.8) + 0.5*rng.NormFloat64())
	}
	at := tensor.Reshape(nil, tensor.Linspace(0, 5, places), 1, places, 1)

	const p = 10
	// lesson: state
	waves := factor.Waves(p) // φ: [… 1] to [… 2p+1]
	state, err := linear.NewState(linear.StateConfig{
		Batch: 1, Heads: 1, KeySize: 2*p + 1, ValueSize: 1, Normalize: true,
	})
	if err != nil {
		return err
	}
	for i := range observations {
		k, v := tensor.Slice(nil, x, 1, i, i+1), tensor.Slice(nil, y, 1, i, i+1)
		state.Attend(nil, k, k, v, linear.Options{Feature: waves, Normalize: true, Scale: 1})
	}
	sums := tensor.Reshape(nil, state.Tensor(nil), 1, 2*p+1, 2) // S and z
	read := tensor.MatMul(nil, waves(nil, at), sums)            // φ(q)ᵀS and φ(q)ᵀz of each place
	// lesson end
	fmt.Println("state", sums.Shape(), "read", read.Shape())

	w := math.Pi * math.Sqrt(p/50.0)
	exact := attn.Attend(nil, at, x, y, attn.Options{Score: &score.Gaussian{W: tensor.Full(float32(w), 1)}})
	c := viz.Chart{
		Title: fmt.Sprintf("%d observations, a state of %d × 2 numbers", observations, 2*p+1), X: "x", Y: "y",
		YAxis: viz.Axis{Low: -1, High: 5},
		Lines: []viz.Line{
			{Name: "from the keys, with a softmax", X: at.Float64s(), Y: exact.Out.Float64s(), Color: viz.Grey, Dashed: true},
			{Name: "from the state", X: at.Float64s(), Color: 1},
			{Name: "observations", X: x.Float64s(), Y: y.Float64s(), Color: 2, Points: true},
		},
	}
	for i := range places {
		c.Lines[1].Y = append(c.Lines[1].Y, float64(read.Data()[2*i])/float64(read.Data()[2*i+1]))
	}
	return viz.WriteFile(path, c)
}

// recall trains a layer of each rule and returns a chart of what they recall.
func recall(title string, again bool) viz.Chart {
	c := viz.Chart{Title: title, X: "pairs", Y: "digits recalled", YAxis: viz.Axis{Low: 0, High: 1}}
	for i, rule := range factor.Rules {
		training := factor.NewTraining(rule, 8, 400, 1, again)
		for range training.Steps {
			training.Next()
		}
		line := viz.Line{Name: rule, Color: i + 1, Markers: true}
		rng := rand.New(rand.NewPCG(1, 3))
		for pairs := 2; pairs <= factor.MostPairs; pairs += 2 {
			line.X = append(line.X, float64(pairs))
			line.Y = append(line.Y, training.Recalled(factor.Draw(rng, 512/pairs, pairs, pairs, again)))
		}
		c.Lines = append(c.Lines, line)
		fmt.Printf("%s, %s: %.0f%% of %d pairs\n", title, rule, 100*line.Y[len(line.Y)-1], factor.MostPairs)
	}
	return c
}
