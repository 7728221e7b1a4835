package train

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
)

// fullSize has the networks that attn trains by default on a file of pairs.
func fullSize() []models.TranslatorConfig {
	return []models.TranslatorConfig{
		{Arch: models.Transformer, Score: "scaled", Width: 128, Heads: 4, Layers: 2, Hidden: 512, Dropout: 0.1},
		{Arch: models.GRU, Score: "scaled", Width: 128, Layers: 1, Dropout: 0.1},
		{Arch: models.GRU, Score: "additive", Width: 128, Layers: 1, Dropout: 0.1},
	}
}

// newFullSize returns a trainer of such a network with about 4000 words per language, and the
// batches of an epoch: sentences of 3 to 15 words.
func newFullSize(tb testing.TB, c models.TranslatorConfig, batch int) (*Trainer, [][]int) {
	tb.Helper()
	rng := rand.New(rand.NewPCG(17, 19))
	sentence := func() string {
		words := make([]string, 3+rng.IntN(13))
		for i := range words {
			words[i] = fmt.Sprint("w", rng.IntN(4000))
		}
		return strings.Join(words, " ")
	}
	var texts []string
	var pairs []seq2seq.Pair
	for range 1500 {
		p := seq2seq.Pair{Source: sentence(), Target: sentence()}
		pairs, texts = append(pairs, p), append(texts, p.Source, p.Target)
	}
	words := seq2seq.BuildVocabulary(texts, seq2seq.Words, 0)
	m, err := models.NewTranslator(c, words, words, rng)
	if err != nil {
		tb.Fatal(err)
	}
	tr := newToyTrainer(tb, m, pairs[:4*batch], Settings{Epochs: 1, Batch: batch, LR: 0.001, Warmup: 400, Clip: 1, Smoothing: 0.1, Seed: 1})
	return tr, tr.batches(0)
}

// After the first steps, a step reuses the tape's memory. Only closures and short lists of sizes
// are allocated.
func TestTrainStepAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: steps of full size")
	}
	if raceDetector {
		t.Skip("pools forget under the race detector")
	}
	const mostObjects, mostBytes = 1020, 256 << 10
	for _, c := range fullSize() {
		t.Run(name(c), func(t *testing.T) {
			tr, batches := newFullSize(t, c, 16) // the number of allocations does not depend on the size of a batch
			step := func() {
				if _, err := tr.step(batches[0]); err != nil {
					t.Fatal(err)
				}
			}
			// A garbage collection here would empty the pools, including those that other tests
			// filled, and its timing does not depend on the step.
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			step() // allocates the tape and the gradients
			var objects, bytes uint64
			for range 6 { // until every worker has handled every kind of work
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				step()
				runtime.ReadMemStats(&after)
				objects, bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
				if objects < mostObjects && bytes < mostBytes {
					t.Logf("%d objects of %d bytes together", objects, bytes)
					return
				}
			}
			t.Errorf("a step allocates %d objects of %d bytes together, want less than %d of %d", objects, bytes, mostObjects, mostBytes)
		})
	}
}

// Run this with -benchmem: allocations matter as much as time.
func BenchmarkTrainStep(b *testing.B) {
	for _, c := range fullSize() {
		b.Run(name(c), func(b *testing.B) {
			tr, batches := newFullSize(b, c, 32)
			benchmarkSteps(b, tr, batches)
		})
	}
}

// BenchmarkStep is a step of attn train without flags: a small transformer on dates, by
// characters.
func BenchmarkStep(b *testing.B) {
	pairs, _ := DatesSplit(1024, 0, 1)
	var sources, targets []string
	for _, p := range pairs {
		sources, targets = append(sources, p.Source), append(targets, p.Target)
	}
	source, target := seq2seq.BuildVocabulary(sources, seq2seq.Chars, 1000), seq2seq.BuildVocabulary(targets, seq2seq.Chars, 1000)
	c := models.TranslatorConfig{Arch: models.Transformer, Score: "scaled", Width: 64, Heads: 4, Layers: 1, Hidden: 128, Dropout: 0.05}
	m, err := models.NewTranslator(c, source, target, rand.New(rand.NewPCG(1, 0)))
	if err != nil {
		b.Fatal(err)
	}
	tr := newToyTrainer(b, m, pairs, Settings{Epochs: 1, Batch: 32, LR: 0.003, Warmup: 400, Clip: 1, Seed: 1})
	benchmarkSteps(b, tr, tr.batches(0))
}

// benchmarkSteps makes steps from the batches in turn.
func benchmarkSteps(b *testing.B, tr *Trainer, batches [][]int) {
	for _, batch := range batches { // allocates the tape's memory
		if _, err := tr.step(batch); err != nil {
			b.Fatal(err)
		}
	}
	tokens := 0
	for i := 0; b.Loop(); i++ {
		p, err := tr.step(batches[i%len(batches)])
		if err != nil {
			b.Fatal(err)
		}
		tokens += p.Tokens
	}
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
}
