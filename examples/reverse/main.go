// Command reverse trains an encoder–decoder to reverse strings. It draws its cross-attention into
// the directory given as an argument: an anti-diagonal, because the first letter written is the last
// one read.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
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

// strings returns n random strings with their reverses.
func strings(n int, rng *rand.Rand) []seq2seq.Pair {
	pairs := make([]seq2seq.Pair, n)
	for i := range pairs {
		for range 3 + rng.IntN(6) {
			letter := string(rune('a' + rng.IntN(10)))
			pairs[i].Source += letter
			pairs[i].Target = letter + pairs[i].Target
		}
	}
	return pairs
}

func run(dir string) error {
	if _, err := os.Stat(dir); err != nil { // before the training
		return err
	}
	ctx, rng := context.Background(), rand.New(rand.NewPCG(1, 2))
	training := strings(4000, rng)
	test := strings(100, rng)
	letters := seq2seq.BuildVocabulary([]string{"abcdefghij"}, seq2seq.Chars, 0)
	// lesson: learn
	config := models.TranslatorConfig{
		Arch: models.Transformer, Score: "scaled", Width: 32, Heads: 2, Layers: 1, Hidden: 64,
	}
	model, err := models.NewTranslator(config, letters, letters, rng)
	if err != nil {
		return err
	}
	trainer, err := train.NewTrainer(model, training, train.Settings{
		Epochs: 10, Batch: 32, LR: 0.003, Warmup: 100, Clip: 1, Seed: 3,
	})
	if err != nil {
		return err
	}
	if err := trainer.Run(ctx, func(p train.Progress) error { return nil }); err != nil {
		return err
	}
	// lesson end
	metrics, err := train.Evaluate(ctx, model, test, 1)
	if err != nil {
		return err
	}
	fmt.Printf("%.0f%% of new strings are reversed correctly\n", 100*metrics.ExactMatch)

	// lesson: record with learn
	record, err := probe.RecordTexts(ctx, model, "abcdefgh", "hgfedcba", heads.RecorderOptions{
		Kinds: []heads.Kind{heads.Cross},
	})
	if err != nil {
		return err
	}
	cross := record.Layer(heads.Cross, 0)
	// lesson end
	fmt.Printf("%d heads, %d queries, %d keys\n", cross.Heads, len(cross.Queries), len(cross.Keys))
	weights := tensor.New(cross.Weights, cross.Heads, len(cross.Queries), len(cross.Keys))
	figure := viz.Weights(weights, cross.Queries, cross.Keys)
	figure.Title = "Cross-attention of a model that reverses strings"
	return viz.WriteFile(filepath.Join(dir, "reverse.svg"), figure)
}
