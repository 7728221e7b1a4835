package train

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn/internal/par/partest"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/seq2seq"
)

// TestMain sets one thread; tests of threads set more.
func TestMain(m *testing.M) {
	partest.OneThread()
	m.Run()
}

// toyPairs makes n pairs of 2 to 6 letters and the same letters reversed, with different sources:
// a task that needs attention and takes seconds to learn.
func toyPairs(n int) []seq2seq.Pair {
	rng := rand.New(rand.NewPCG(11, 13))
	seen := map[string]bool{}
	var pairs []seq2seq.Pair
	for len(pairs) < n {
		var source, target string
		for range 2 + rng.IntN(5) {
			letter := string(rune('a' + rng.IntN(7)))
			source, target = source+letter, letter+target
		}
		if !seen[source] {
			seen[source] = true
			pairs = append(pairs, seq2seq.Pair{Source: source, Target: target})
		}
	}
	return pairs
}

// headed returns small networks with heads: both architectures with every score.
func headed() []models.TranslatorConfig {
	var all []models.TranslatorConfig
	for _, score := range score.Kinds().Names() {
		all = append(all,
			models.TranslatorConfig{Arch: models.Transformer, Score: score, Width: 12, Heads: 3, Layers: 2, Hidden: 10},
			models.TranslatorConfig{Arch: models.GRU, Score: score, Width: 12, Heads: 3, Layers: 1})
	}
	return all
}

func name(c models.TranslatorConfig) string {
	return fmt.Sprintf("%s with %s scores and %d heads", c.Arch, c.Score, c.Heads)
}

// newToy returns an untrained translator for the letters of pairs.
func newToy(tb testing.TB, c models.TranslatorConfig, pairs []seq2seq.Pair) *models.Model {
	tb.Helper()
	var sources, targets []string
	for _, p := range pairs {
		sources, targets = append(sources, p.Source), append(targets, p.Target)
	}
	m, err := models.NewTranslator(c, seq2seq.BuildVocabulary(sources, seq2seq.Chars, 0), seq2seq.BuildVocabulary(targets, seq2seq.Chars, 0), rand.New(rand.NewPCG(3, 5)))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// toySettings suit the toy task.
func toySettings(epochs int) Settings {
	return Settings{Epochs: epochs, Batch: 8, LR: 0.003, Warmup: 50, Clip: 1, Seed: 7}
}

// newToyTrainer returns a trainer or fails the test.
func newToyTrainer(tb testing.TB, m *models.Model, pairs []seq2seq.Pair, s Settings) *Trainer {
	tb.Helper()
	tr, err := NewTrainer(m, pairs, s)
	if err != nil {
		tb.Fatal(err)
	}
	return tr
}

// run trains to the end and returns the progress of all steps.
func run(tb testing.TB, tr *Trainer) []Progress {
	tb.Helper()
	var all []Progress
	err := tr.Run(context.Background(), func(p Progress) error { all = append(all, p); return nil })
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// toyKept selects heads of a toy: different ones in each layer, and none in one layer.
func toyKept(c models.TranslatorConfig) map[string][]int {
	if c.Arch == models.GRU {
		return map[string][]int{"decoder.0.cross": {1}}
	}
	return map[string][]int{"encoder.0.self": {0, 2}, "encoder.1.self": {}, "decoder.0.self": {1}, "decoder.1.cross": {2}}
}

// keep returns the result of m.Keep or fails the test.
func keep(tb testing.TB, m *models.Model, kept map[string][]int) *models.Model {
	tb.Helper()
	small, err := m.Keep(kept)
	if err != nil {
		tb.Fatal(err)
	}
	return small
}

// halfTrained returns translators that have learnt the toy task a little, so that their
// translations differ from text to text and end.
func halfTrained(t *testing.T) map[string]*models.Model {
	pairs := toyPairs(64)
	all := map[string]*models.Model{}
	for _, c := range []models.TranslatorConfig{
		{Arch: models.Transformer, Score: "scaled", Width: 16, Heads: 2, Layers: 2, Hidden: 16},
		{Arch: models.GRU, Score: "additive", Width: 16, Layers: 2},
		{Arch: models.GRU, Score: "cosine", Width: 16, Heads: 2, Layers: 1},
	} {
		m := newToy(t, c, pairs)
		run(t, newToyTrainer(t, m, pairs, toySettings(12)))
		all[name(c)] = m
	}
	return all
}

// translate returns the translations of texts.
func translate(tb testing.TB, m *models.Model, texts ...string) []string {
	tb.Helper()
	out, err := m.Translate(context.Background(), texts, 1)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// logits returns the logits of all targets of pairs.
func logits(m *models.Model, pairs []seq2seq.Pair) []float32 {
	var examples []probe.Example
	for _, p := range pairs {
		e, err := probe.TranslationExample(m, p.Source, p.Target)
		if err != nil {
			panic(err)
		}
		examples = append(examples, e)
	}
	all, _ := probe.Predict(nil, m, examples, models.Run{})
	return all.Data()
}
