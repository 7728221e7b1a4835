package probe

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/internal/par/partest"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// TestMain sets one thread; tests of threads set more.
func TestMain(m *testing.M) {
	partest.OneThread()
	m.Run()
}

// toyPairs returns n pairs of a text of 2 to 6 letters and the same letters in reverse. All sources differ.
// The task needs attention and is learnt in seconds.
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

// toyConfigs are small networks: both architectures with every score, the recurrent one with heads and
// without. With -short, each score after the first has one of them.
func toyConfigs() []models.TranslatorConfig {
	var all []models.TranslatorConfig
	for i, score := range score.Kinds().Names() {
		some := []models.TranslatorConfig{
			{Arch: models.Transformer, Score: score, Width: 12, Heads: 3, Layers: 2, Hidden: 10},
			{Arch: models.GRU, Score: score, Width: 12, Layers: 2},
			{Arch: models.GRU, Score: score, Width: 12, Heads: 3, Layers: 1},
		}
		if testing.Short() && i > 0 {
			some = some[i%3:][:1]
		}
		all = append(all, some...)
	}
	return all
}

func titleOf(c models.TranslatorConfig) string {
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

// toyBatch are sources of several lengths with their targets.
var toyBatch = []seq2seq.Pair{{Source: "abcdef", Target: "fedcba"}, {Source: "ga", Target: "ag"}, {Source: "bcfa", Target: "afcb"}, {Source: "e", Target: "e"}}

// headed returns the toy networks with heads.
func headed() []models.TranslatorConfig {
	return slices.DeleteFunc(toyConfigs(), func(c models.TranslatorConfig) bool { return c.Heads == 0 })
}

// toyKept selects heads of a toy network. Layers keep different heads, and one layer loses all.
func toyKept(c models.TranslatorConfig) map[string][]int {
	if c.Arch == models.GRU {
		return map[string][]int{"decoder.0.cross": {1}}
	}
	return map[string][]int{"encoder.0.self": {0, 2}, "encoder.1.self": {}, "decoder.0.self": {1}, "decoder.1.cross": {2}}
}

// newShaken is newToy with all parameters changed at random, including biases.
func newShaken(tb testing.TB, c models.TranslatorConfig, pairs []seq2seq.Pair) *models.Model {
	tb.Helper()
	m := newToy(tb, c, pairs)
	rng := rand.New(rand.NewPCG(17, 19))
	for _, p := range m.Params() {
		for i := range p.Data() {
			p.Data()[i] += 0.3 * float32(rng.NormFloat64())
		}
	}
	return m
}

// keepHeads returns the result of m.Keep; an error ends the test.
func keepHeads(tb testing.TB, m *models.Model, kept map[string][]int) *models.Model {
	tb.Helper()
	small, err := m.Keep(kept)
	if err != nil {
		tb.Fatal(err)
	}
	return small
}

// masked returns a probe of m on pairs, without the other heads.
func masked(tb testing.TB, m *models.Model, kept map[string][]int, pairs []seq2seq.Pair) *Probe {
	tb.Helper()
	var gone []prune.Head
	for _, l := range m.Attention() {
		left, some := kept[l.Config().Name]
		for h := range l.Config().Heads {
			if some && !slices.Contains(left, h) {
				gone = append(gone, prune.Head{Layer: l.Config().Name, Number: h})
			}
		}
	}
	p, err := pairProbe(tb, m, pairs).Without(gone)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// gatesFor returns gates of 1 for the given heads of each layer of m, and of 0 for the others.
func gatesFor(m *models.Model, kept map[string][]int) func(string) *tensor.Tensor {
	all := map[string]*tensor.Tensor{}
	for _, l := range m.Attention() {
		name, gates := l.Config().Name, tensor.Full(1, l.Config().Heads)
		if chosen, some := kept[name]; some {
			clear(gates.Data())
			for _, h := range chosen {
				gates.Data()[h] = 1
			}
		}
		all[name] = gates
	}
	return func(layer string) *tensor.Tensor { return all[layer] }
}

// examplesOf returns the examples of pairs.
func examplesOf(tb testing.TB, m *models.Model, pairs []seq2seq.Pair) []Example {
	tb.Helper()
	var all []Example
	for _, p := range pairs {
		e, err := TranslationExample(m, p.Source, p.Target)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}
