package seq2seq_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

func ExampleTranslator_Translate() {
	pairs := []seq2seq.Pair{{"one two", "eins zwei"}, {"two one", "zwei eins"}, {"one one", "eins eins"}, {"two two", "zwei zwei"}}
	var sources, targets []string
	for _, p := range pairs {
		sources, targets = append(sources, p.Source), append(targets, p.Target)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	m, err := seq2seq.New(seq2seq.Config{Arch: seq2seq.GRU, Score: "additive", Width: 16, Layers: 1},
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
	fmt.Println(m.Translate(context.Background(), []string{"two one"}, seq2seq.Decoding{}))
	// Output: [zwei eins] <nil>
}
