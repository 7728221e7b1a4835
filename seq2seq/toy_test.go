package seq2seq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn/score"
)

// toyPairs makes n pairs of a text of 2 to 6 letters and the same letters in
// reverse, all sources different: a task that nothing but attention can do, and
// that is learnt in seconds.
func toyPairs(n int) []Pair {
	rng := rand.New(rand.NewPCG(11, 13))
	seen := map[string]bool{}
	var pairs []Pair
	for len(pairs) < n {
		var source, target string
		for range 2 + rng.IntN(5) {
			letter := string(rune('a' + rng.IntN(7)))
			source, target = source+letter, letter+target
		}
		if !seen[source] {
			seen[source] = true
			pairs = append(pairs, Pair{source, target})
		}
	}
	return pairs
}

// toyConfigs are small networks: both architectures with every score, the
// recurrent one with heads and without.
func toyConfigs() []Config {
	var all []Config
	for _, score := range score.Kinds().Names() {
		all = append(all,
			Config{Arch: Transformer, Score: score, Width: 12, Heads: 3, Layers: 2, Hidden: 10},
			Config{Arch: GRU, Score: score, Width: 12, Layers: 2},
			Config{Arch: GRU, Score: score, Width: 12, Heads: 3, Layers: 1})
	}
	return all
}

func (c Config) name() string {
	return fmt.Sprintf("%s with %s scores and %d heads", c.Arch, c.Score, c.Heads)
}

// newToy returns an untrained translator for the letters of pairs.
func newToy(tb testing.TB, c Config, pairs []Pair) *Translator {
	tb.Helper()
	var sources, targets []string
	for _, p := range pairs {
		sources, targets = append(sources, p.Source), append(targets, p.Target)
	}
	m, err := New(c, BuildVocabulary(sources, Chars, 0), BuildVocabulary(targets, Chars, 0), rand.New(rand.NewPCG(3, 5)))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// toySettings suit the toy task.
func toySettings(epochs int) Settings {
	return Settings{Epochs: epochs, Batch: 8, LR: 0.003, Warmup: 50, Clip: 1, Seed: 7}
}

// newToyTrainer returns a trainer, and ends the test if it cannot.
func newToyTrainer(tb testing.TB, m *Translator, pairs []Pair, s Settings) *Trainer {
	tb.Helper()
	tr, err := NewTrainer(m, pairs, s)
	if err != nil {
		tb.Fatal(err)
	}
	return tr
}

// run trains to the end and returns the steps' reports.
func run(tb testing.TB, tr *Trainer) []Progress {
	tb.Helper()
	var all []Progress
	err := tr.Run(context.Background(), func(p Progress) error { all = append(all, p); return nil })
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// translate returns the translations of texts.
func translate(tb testing.TB, m *Translator, d Decoding, texts ...string) []string {
	tb.Helper()
	out, err := m.Translate(context.Background(), texts, d)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}
