package models_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

func ExampleModel_Translate() {
	pairs := []seq2seq.Pair{{Source: "one two", Target: "eins zwei"}, {Source: "two one", Target: "zwei eins"}, {Source: "one one", Target: "eins eins"}, {Source: "two two", Target: "zwei zwei"}}
	var sources, targets []string
	for _, p := range pairs {
		sources, targets = append(sources, p.Source), append(targets, p.Target)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	m, err := models.NewTranslator(models.TranslatorConfig{Arch: models.GRU, Score: "additive", Width: 16, Layers: 1},
		seq2seq.BuildVocabulary(sources, seq2seq.Words, 0), seq2seq.BuildVocabulary(targets, seq2seq.Words, 0), rng)
	if err != nil {
		fmt.Println(err)
		return
	}
	trainer, err := train.NewTrainer(m, pairs, train.Settings{Epochs: 100, Batch: 4, LR: 0.01, Warmup: 10, Clip: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := trainer.Run(context.Background(), func(train.Progress) error { return nil }); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Translate(context.Background(), []string{"two one"}, 1))
	// Output: [zwei eins] <nil>
}
