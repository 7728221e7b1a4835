package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// The translator that attn train builds for a file of pairs. Sentences have the average length of its example data,
// including end marks.
const (
	pairsOfStep  = 32
	tokensOfSide = 10
	width        = 128
	heads        = 4
	layers       = 2
	hidden       = 512
	vocabulary   = 4000
	dropout      = 0.1
	smoothing    = 0.1
	clip         = 1.0
	tokensOfStep = 2 * pairsOfStep * tokensOfSide
)

// translatorTask returns the task of one training step: forward, backward, clipping, AdamW.
func translatorTask(threads int) task {
	return task{
		table: "Operations", name: "translator-train B32 L10 width 128", libraries: usual,
		request: request{
			Work: bench.Work{
				Op: "translator-train", B: pairsOfStep, H: heads, Lq: tokensOfSide, Lk: tokensOfSide, Width: width, Dropout: dropout,
			},
			Hidden: hidden, Layers: layers, Vocab: vocabulary, Smoothing: smoothing, Clip: clip,
		},
		start: func() (bench.Measurer, error) {
			trainer, err := newTrainer()
			return bench.Measurer{
				Measure: func(ctx context.Context, d time.Duration) (bench.Result, error) {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
					return measureSteps(ctx, trainer, d)
				},
			}, err
		},
		share: func(r bench.Result) string {
			return fmt.Sprintf("%.1fk tokens/s", tokensOfStep/r.Median)
		},
	}
}

// newTrainer returns a trainer for sentences of random words.
func newTrainer() (*train.Trainer, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	words := make([]string, vocabulary-4) // minus four special tokens
	for i := range words {
		words[i] = fmt.Sprint("w", i)
	}
	v := seq2seq.BuildVocabulary([]string{strings.Join(words, " ")}, seq2seq.Words, vocabulary)
	if v.Len() != vocabulary {
		return nil, fmt.Errorf("a vocabulary of %d entries, want %d", v.Len(), vocabulary)
	}
	sentence := func() string {
		var s []string
		for range tokensOfSide - 1 { // followed by the end mark
			s = append(s, words[rng.IntN(len(words))])
		}
		return strings.Join(s, " ")
	}
	pairs := make([]seq2seq.Pair, 64*pairsOfStep)
	for i := range pairs {
		pairs[i] = seq2seq.Pair{Source: sentence(), Target: sentence()}
	}
	m, err := models.NewTranslator(models.TranslatorConfig{
		Arch: models.Transformer, Score: "scaled", Width: width, Heads: heads, Layers: layers, Hidden: hidden, Dropout: dropout,
	}, v, v, rng)
	if err != nil {
		return nil, err
	}
	return train.NewTrainer(m, pairs, train.Settings{
		Epochs: 1_000_000, Batch: pairsOfStep, LR: 0.002, Warmup: 400, Clip: clip, Smoothing: smoothing, Seed: 1,
	})
}

// measureSteps trains for about the given time, after a fifth of it to warm up, and returns the time of a step. The
// trainer continues from its current state.
func measureSteps(ctx context.Context, trainer *train.Trainer, d time.Duration) (bench.Result, error) {
	const fewest = 5
	var r bench.Result
	var times []float64
	start := time.Now()
	err := trainer.Run(ctx, func(p train.Progress) error {
		if p.Tokens != tokensOfStep {
			return fmt.Errorf("a step of %d tokens, want %d", p.Tokens, tokensOfStep)
		}
		if time.Since(start) > d/5 {
			times = append(times, p.Time.Seconds()*1000)
		}
		if time.Since(start) > d+d/5 && len(times) >= fewest {
			return train.ErrStop
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	r.Median = bench.Median(times)
	r.Min, r.Max = times[0], times[len(times)-1] // Median has sorted them
	return r, nil
}
