// Command scores compares six scores on one batch: how strongly does each query attend to each key?
// It draws their weights side by side on one scale into the directory given as an argument.
package main

import (
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/attn-go/attn"
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
	const queries, keys, size = 7, 11, 16
	rng := rand.New(rand.NewPCG(3, 1))
	q, k := tensor.Randn(rng, 1, 1, queries, size), tensor.Randn(rng, 1, 1, keys, size) // [B H L E]
	// Each query is similar to one of the keys: scores that compare them should find it.
	for i := range queries {
		for j := range size {
			q.Data()[i*size+j] += k.Data()[(i*3%keys)*size+j]
		}
	}
	scores := []struct {
		name  string
		score attn.Score
	}{
		// lesson: scores with attend
		{"dot: q·k", score.Dot()},
		{"scaled dot: q·k/√E", score.ScaledDot()},
		{"cosine", &score.Cosine{}},
		{"Gaussian: −½|q−k|²", &score.Gaussian{}},
		{"additive, not trained", score.NewAdditive(size, size, 8, rng)},
		{"bilinear, not trained", score.NewBilinear(size, size, rng)},
		// lesson end
	}
	weights := make([]*tensor.Tensor, len(scores))
	for i, s := range scores {
		// lesson: attend
		out := attn.Attend(nil, q, k, k, attn.Options{Score: s.score, Weights: true})
		// lesson end
		fmt.Printf("%-22s weight of the matching key: %.2f\n", s.name, out.Weights.At(0, 0, 3, 9))
		weights[i] = out.Weights
	}
	figure := viz.Figure{Title: "Six scores, one batch", Columns: 3, RowTitle: "query", ColumnTitle: "key"}
	for i, s := range scores {
		panel := viz.Weights(weights[i]).Panels[0]
		panel.Title, panel.NewLine = s.name, false
		figure.Panels = append(figure.Panels, panel)
	}
	return viz.WriteFile(filepath.Join(dir, "scores.svg"), figure)
}
