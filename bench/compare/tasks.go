package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
	"github.com/attn-go/attn/train"
)

// task is a row of the table.
type task struct {
	table     string // the title of its table
	name      string
	request   request // for the peers
	libraries []string
	// start prepares attn and returns its measurer.
	start func() (bench.Measurer, error)
	// share relates attn's time to a limit of the machine.
	share func(bench.Result) string
	// end, if not nil, cleans up after start.
	end func() error
}

// usual are the libraries that most work is compared with.
var usual = []string{"torch", "onnxruntime"}

// allTasks returns the rows of all tables, table by table.
func allTasks(threads int) []task {
	var tasks []task
	operation := func(table string, w bench.Work, libraries []string) {
		tasks = append(tasks, task{
			table: table, name: w.Name(), request: request{Work: w}, share: shareOf, libraries: libraries,
			start: func() (bench.Measurer, error) { return bench.New(w, threads), nil },
		})
	}
	for _, w := range bench.Usual() {
		operation("Operations", w, usual)
	}
	tasks = append(tasks, translatorTask(threads))
	for _, size := range []int{64, 128} {
		w, err := bench.Work{Op: "linear", E: size}.Complete()
		if err != nil {
			panic(err)
		}
		operation("Attention without a softmax", w, usual[1:])
	}
	for _, s := range encoders {
		for _, batch := range []int{1, 32} {
			for _, length := range []int{16, 64, 128, 512} {
				tasks = append(tasks, s.encode(threads, batch, length, tensor.Float32))
			}
		}
	}
	for _, s := range encoders {
		for _, x := range [][2]int{{1, 16}, {1, 128}, {1, 512}, {32, 16}, {32, 128}} {
			for _, format := range formats[1:] {
				tasks = append(tasks, s.encode(threads, x[0], x[1], format))
			}
		}
	}
	for _, x := range [][2]int{{1, 16}, {1, 128}, {32, 128}} {
		tasks = append(tasks, encoders[0].inGo(threads, x[0], x[1]))
	}
	for _, s := range decoders {
		for _, length := range []int{64, 512, 2048} {
			for _, format := range formats {
				tasks = append(tasks, s.prompt(threads, length, format))
			}
		}
	}
	for _, s := range decoders {
		for _, format := range []tensor.Format{tensor.Float32, tensor.BFloat16Weights, tensor.BFloat16, tensor.Int8} {
			tasks = append(tasks, s.generate(threads, format))
		}
	}
	for _, file := range []safetensors.DType{safetensors.F32, safetensors.BF16} {
		for _, format := range []tensor.Format{0, tensor.Float32, tensor.BFloat16Weights, tensor.Int8} {
			tasks = append(tasks, decoders[0].loading(threads, file, format))
		}
	}
	return tasks
}

// shareOf relates a result to the limit of that work.
func shareOf(r bench.Result) string {
	switch {
	case r.PeakReadGBps > 0:
		return fmt.Sprintf("%.0f%% of reading", 100*r.ReadShare())
	case r.Work.Triples() > 0:
		return fmt.Sprintf("%.1f G triples/s", r.GTriples())
	}
	return fmt.Sprintf("%.0f%%", 100*r.PeakShare())
}

// request is the work in the form that the peers read.
type request struct {
	bench.Work
	Hidden    int     `json:"hidden,omitempty"` // this and the following for the translator and models
	Layers    int     `json:"layers,omitempty"`
	Vocab     int     `json:"vocab,omitempty"`
	Smoothing float64 `json:"smoothing,omitempty"`
	Clip      float64 `json:"clip,omitempty"`
	Storage   string  `json:"storage,omitempty"` // this and the following for a decoder
	Bias      bool    `json:"bias,omitempty"`
	File      string  `json:"file,omitempty"` // for a tokenizer, or a library in Go
	Text      string  `json:"text,omitempty"`
	IDs       []int   `json:"ids,omitempty"` // text for the comparison of outputs, with the model in File
	Threads   int     `json:"threads"`
	Time      float64 `json:"time"` // seconds
}

// tokenizerTasks returns two tasks for each directory with a tokenizer.json: tokenizing the lines of a text one after
// another, and loading. Both libraries use one thread.
func tokenizerTasks(dirs []string, text string) ([]task, error) {
	data, err := os.ReadFile(text)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("%s is empty", text)
	}
	var tasks []task
	for _, dir := range dirs {
		path := filepath.Join(dir, "tokenizer.json")
		file, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		speed := func(bytes int64) func(bench.Result) string {
			return func(r bench.Result) string { return fmt.Sprintf("%.1f MB/s", float64(bytes)/1e3/r.Median) }
		}
		name := filepath.Base(dir)
		tasks = append(tasks, task{
			table: "Tokenizers", name: "tokenize " + name, libraries: []string{"tokenizers"}, share: speed(int64(len(data))),
			request: request{Work: bench.Work{Op: "tokenize"}, File: path, Text: text},
			start: func() (bench.Measurer, error) {
				t, err := tokenizer.Load(dir)
				if err != nil {
					return nil, err
				}
				lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
				encode := func() error {
					for _, line := range lines {
						if _, err := t.Encode(line, tokenizer.Options{}); err != nil {
							return err
						}
					}
					return nil
				}
				if err := encode(); err != nil {
					return nil, err
				}
				return bench.Calls(1, 0, func() { _ = encode() }), nil
			},
		}, task{
			table: "Tokenizers", name: "load " + name, libraries: []string{"tokenizers"}, share: speed(file.Size()),
			request: request{Work: bench.Work{Op: "tokenizer"}, File: path},
			start: func() (bench.Measurer, error) {
				if _, err := tokenizer.Load(dir); err != nil {
					return nil, err
				}
				return bench.Calls(1, 0, func() { _, _ = tokenizer.Load(dir) }), nil
			},
		})
	}
	return tasks, nil
}

// translator is the recipe of attn train for a file of pairs. Sentences have the average length of its example data,
// including end marks.
var translator = train.PairsRecipe()

const tokensOfSide = 10

var tokensOfStep = 2 * translator.Training.Batch * tokensOfSide

// translatorTask returns the task of one training step: forward, backward, clipping, AdamW.
func translatorTask(threads int) task {
	n, t := translator.Network, translator.Training
	return task{
		table: "Operations", name: fmt.Sprintf("translator-train B%d L%d width %d", t.Batch, tokensOfSide, n.Width), libraries: usual,
		request: request{
			Work: bench.Work{
				Op: "translator-train", B: t.Batch, H: n.Heads, Lq: tokensOfSide, Lk: tokensOfSide, Width: n.Width, Dropout: float64(n.Dropout),
			},
			Hidden: n.Hidden, Layers: n.Layers, Vocab: translator.VocabSize, Smoothing: float64(t.Smoothing), Clip: float64(t.Clip),
		},
		start: func() (bench.Measurer, error) {
			trainer, err := newTrainer()
			return func(ctx context.Context, d time.Duration) (bench.Result, error) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
				return measureSteps(ctx, trainer, d)
			}, err
		},
		share: func(r bench.Result) string {
			return fmt.Sprintf("%.1fk tokens/s", float64(tokensOfStep)/r.Median)
		},
	}
}

// newTrainer returns a trainer for sentences of random words.
func newTrainer() (*train.Trainer, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	words := make([]string, translator.VocabSize-4) // minus four special tokens
	for i := range words {
		words[i] = fmt.Sprint("w", i)
	}
	v := seq2seq.BuildVocabulary([]string{strings.Join(words, " ")}, seq2seq.Words, translator.VocabSize)
	if v.Len() != translator.VocabSize {
		return nil, fmt.Errorf("a vocabulary of %d entries, want %d", v.Len(), translator.VocabSize)
	}
	sentence := func() string {
		var s []string
		for range tokensOfSide - 1 { // followed by the end mark
			s = append(s, words[rng.IntN(len(words))])
		}
		return strings.Join(s, " ")
	}
	pairs := make([]seq2seq.Pair, 64*translator.Training.Batch)
	for i := range pairs {
		pairs[i] = seq2seq.Pair{Source: sentence(), Target: sentence()}
	}
	m, err := models.NewTranslator(translator.Network, v, v, rng)
	if err != nil {
		return nil, err
	}
	settings := translator.Training
	settings.Epochs = 1_000_000
	return train.NewTrainer(m, pairs, settings)
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
