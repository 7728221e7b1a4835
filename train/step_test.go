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

// fullSize are the networks that attn trains on a file of pairs unless it is
// told otherwise.
func fullSize() []models.TranslatorConfig {
	return []models.TranslatorConfig{
		{Arch: models.Transformer, Score: "scaled", Width: 128, Heads: 4, Layers: 2, Hidden: 512, Dropout: 0.1},
		{Arch: models.GRU, Score: "scaled", Width: 128, Layers: 1, Dropout: 0.1},
		{Arch: models.GRU, Score: "additive", Width: 128, Layers: 1, Dropout: 0.1},
	}
}

// newFullSize returns a trainer of such a network, with about 4000 words on
// either side, and the batches of an epoch: sentences of 3 to 15 words.
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

// A warm step takes its memory from the tape. What is left are closures and
// short lists of sizes.
func TestTrainStepAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: steps of full size")
	}
	if raceDetector {
		t.Skip("pools forget under the race detector")
	}
	const mostObjects, mostBytes = 1000, 256 << 10
	for _, c := range fullSize() {
		t.Run(name(c), func(t *testing.T) {
			tr, batches := newFullSize(t, c, 16) // how many are made does not depend on the size of a batch
			step := func() {
				if _, err := tr.step(batches[0]); err != nil {
					t.Fatal(err)
				}
			}
			// A collection now would empty the pools that other tests filled
			// too; how often one happens is not the step's doing.
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			step() // the tape and the gradients are made
			var objects, bytes uint64
			for range 6 { // until every worker has had a part of everything
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

// Run it with -benchmem: the allocations count as much as the time.
func BenchmarkTrainStep(b *testing.B) {
	for _, c := range fullSize() {
		b.Run(name(c), func(b *testing.B) {
			tr, batches := newFullSize(b, c, 32)
			benchmarkSteps(b, tr, batches)
		})
	}
}

// BenchmarkStep is a step of what attn trains without any flags: a small
// transformer on dates, letter by letter.
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
	for _, batch := range batches { // which makes the tape's memory
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
