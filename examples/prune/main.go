// Command prune trains a small translator of dates, measures the importance of each of its heads,
// and removes the least important ones. It draws the importance, and the loss as heads are removed,
// into the directory given as an argument.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/train"
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
	if _, err := os.Stat(dir); err != nil { // before the training
		return err
	}
	ctx := context.Background()
	training, test := train.DatesSplit(3000, 100, 1)
	model, err := trained(ctx, training)
	if err != nil {
		return err
	}
	whole, err := train.Probe(model, test)
	if err != nil {
		return err
	}
	// lesson: importance
	// The importance of a head is the increase in loss when it is removed.
	scores, err := prune.Importance(ctx, whole, prune.ImportanceOptions{
		Methods: []prune.Method{prune.LeaveOneOut},
	})
	if err != nil {
		return err
	}
	// lesson end
	fmt.Printf("importance of the heads: %.4f\n", scores[0].Flat(whole.Layers()))
	if err := drawScores(filepath.Join(dir, "prune-importance.svg"), whole, scores[0]); err != nil {
		return err
	}

	line := viz.Line{Name: "least important first", Markers: true}
	measure := func(ctx context.Context, p *probe.Probe) (bool, error) {
		loss, err := p.Loss(ctx)
		left := 0
		for _, l := range p.Layers() {
			left += l.Heads
		}
		fmt.Printf("%2d heads: loss %.3f\n", left, loss)
		line.X, line.Y = append(line.X, float64(left)), append(line.Y, loss)
		return true, err
	}
	if _, err := measure(ctx, whole); err != nil {
		return err
	}
	// lesson: remove
	order := prune.Order(whole.Layers(), scores[0], false)
	_, err = prune.Heads(ctx, whole, prune.Options[*probe.Probe]{
		Order: order, Keep: len(whole.Layers()), Step: 1, Within: measure,
	})
	if err != nil {
		return err
	}
	// lesson end
	return viz.WriteFile(filepath.Join(dir, "prune-loss.svg"), viz.Chart{
		Title: "Loss as heads are removed", X: "heads left", Y: "loss, nats per token", Lines: []viz.Line{line},
		Falling: true, Bare: true, YAxis: viz.Axis{Low: 0, High: 4},
	})
}

// trained returns a translator of dates with four heads in each of its three layers.
func trained(ctx context.Context, pairs []seq2seq.Pair) (*models.Model, error) {
	config := models.TranslatorConfig{Arch: models.Transformer, Score: "scaled", Width: 32, Heads: 4, Layers: 1, Hidden: 64}
	read, written := train.Vocabularies(pairs, seq2seq.Chars, 0)
	model, err := models.NewTranslator(config, read, written, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		return nil, err
	}
	trainer, err := train.NewTrainer(model, pairs, train.Settings{
		Epochs: 5, Batch: 32, LR: 0.003, Warmup: 100, Clip: 1, Seed: 3,
	})
	if err != nil {
		return nil, err
	}
	return model, trainer.Run(ctx, func(train.Progress) error { return nil })
}

// drawScores draws a row for each layer and a column for each head.
func drawScores(path string, p *probe.Probe, s prune.Scores) error {
	layers := p.Layers()
	values := tensor.FromFloat64s(s.Flat(layers), len(layers), layers[0].Heads)
	names := make([]string, len(layers))
	for i, l := range layers {
		names[i] = l.Name
	}
	numbers := []string{"0", "1", "2", "3"}
	figure := viz.Weights(values, names, numbers)
	figure.Title, figure.Unit, figure.Scale = "Increase in loss without each head", "loss, nats per token", viz.Largest
	figure.RowTitle, figure.ColumnTitle = "layer", "head"
	return viz.WriteFile(path, figure)
}
