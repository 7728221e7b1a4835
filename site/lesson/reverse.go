//go:build !js || translator

package main

import (
	"math/rand/v2"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// reverseTask learns to write strings backwards. With seed 1 it is examples/reverse.
func reverseTask() task {
	return task{
		network: models.TranslatorConfig{
			Arch: models.Transformer, Score: "scaled", Width: 32, Heads: 2, Layers: 1, Hidden: 64,
		},
		settings: train.Settings{Epochs: 10, Batch: 32, LR: 0.003, Warmup: 100, Clip: 1, Seed: 3},
		build: func(c models.TranslatorConfig, seed uint64) (learn, test []seq2seq.Pair, m *models.Model, err error) {
			rng := seeded(seed)
			learn, test = reversed(4000, rng), reversed(100, rng)
			letters := seq2seq.BuildVocabulary([]string{"abcdefghij"}, seq2seq.Chars, 0)
			m, err = models.NewTranslator(c, letters, letters, rng)
			return learn, test, m, err
		},
	}
}

// reversed returns n random strings with their reverses.
func reversed(n int, rng *rand.Rand) []seq2seq.Pair {
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
