package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/pruning"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tokenizer"
	"github.com/attn-go/attn/train"
)

// This file has what models are for, as attn heads and attn prune score them: a
// table of tasks, each with its data, its loss and what it is judged by.

// modelTask is a task of models.
type modelTask struct {
	name     string // for people: "masked words"
	lossUnit string
	items    string // what lines are: "texts"
	data     train.LineFormat
	// metrics are what the task can be judged by; the first is usual.
	metrics []string
	// source returns what tells lines of the same source apart from others. Lines of the
	// same one go into the same part of the data.
	source func(line train.Line) string
	// probe returns a probe on lines.
	probe func(l *loaded, lines []train.Line, seed uint64) (*models.Probe, error)
	// texts are what is recorded of a line.
	texts func(line train.Line) [][2]string
}

// loaded is a model with a task.
type loaded struct {
	*models.Model
	task     *modelTask
	embedder *models.Embedder // of a task of similarity, else nil
	data     string           // the file, for people
	// low and high are how similar the least and the most similar pair are said to be.
	low, high float64
}

func lineText(l train.Line) string { return l.Columns[0] }

var wordsTask = modelTask{
	lossUnit: "nats per token", items: "texts", data: train.LineFormat{Want: "a text"}, metrics: []string{"loss"}, source: lineText,
	probe: func(l *loaded, lines []train.Line, seed uint64) (*models.Probe, error) {
		return l.examples(lines, func(line train.Line) (models.Example, error) {
			return l.TextExample(line.Columns[0], rand.New(rand.NewPCG(seed, uint64(line.Number))))
		})
	},
	texts: func(line train.Line) [][2]string { return [][2]string{{line.Columns[0], ""}} },
}

var classesTask = modelTask{
	lossUnit: "nats per text", items: "texts", data: train.LineFormat{Want: "a text, or two, and a class", Least: 2, Most: 3}, metrics: []string{"accuracy", "loss"},
	source: func(l train.Line) string { return strings.Join(l.Columns[:len(l.Columns)-1], "\t") },
	probe: func(l *loaded, lines []train.Line, _ uint64) (*models.Probe, error) {
		return l.examples(lines, func(line train.Line) (models.Example, error) {
			texts := classified(line)
			return l.LabelExample(texts[0], texts[1], line.Columns[len(line.Columns)-1])
		})
	},
	texts: func(line train.Line) [][2]string { return [][2]string{classified(line)} },
}

// classified returns the text, or the two, of a line with a class.
func classified(l train.Line) (texts [2]string) {
	copy(texts[:], l.Columns[:len(l.Columns)-1])
	return texts
}

var translationTask = modelTask{
	name: "translation", lossUnit: "nats per token", items: "sources", data: train.LineFormat{Want: "a source and its target", Least: 2, Most: math.MaxInt},
	metrics: []string{"loss", "bleu", "exact"}, source: lineText,
	probe: func(l *loaded, lines []train.Line, _ uint64) (*models.Probe, error) {
		return l.examples(lines, func(line train.Line) (models.Example, error) {
			return l.TranslationExample(line.Columns[0], line.Columns[1])
		})
	},
	texts: func(line train.Line) [][2]string { return [][2]string{{line.Columns[0], line.Columns[1]}} },
}

var similarityTask = modelTask{
	name: "similarity of texts", lossUnit: "squared error of the cosine", items: "pairs", data: train.LineFormat{Want: "two texts and a number, how similar they are", Least: 3, Most: 3},
	metrics: []string{"spearman", "pearson", "loss"},
	source:  func(l train.Line) string { return l.Columns[0] + "\t" + l.Columns[1] },
	probe: func(l *loaded, lines []train.Line, _ uint64) (*models.Probe, error) {
		pairs := make([]models.SimilarPair, len(lines))
		for i, line := range lines {
			x := [2]*tokenizer.Encoding{}
			for j := range x {
				e, cut, err := l.embedder.Encode(line.Columns[j])
				if cut {
					err = fmt.Errorf("the text has more than %d tokens, at which the model cuts texts off", l.embedder.MostTokens)
				}
				if err == nil {
					err = l.fits(len(e.IDs))
				}
				if err != nil {
					return nil, l.bad(line, err)
				}
				x[j] = e
			}
			pairs[i] = models.SimilarPair{First: x[0], Second: x[1], Cosine: l.cosine(line.Value)}
		}
		return models.NewSimilarityProbe(l.embedder, pairs)
	},
	texts: func(line train.Line) [][2]string { return [][2]string{{line.Columns[0], ""}, {line.Columns[1], ""}} },
}

// lessonTask is that of a translator of attn train.
var lessonTask = modelTask{
	lossUnit: "nats per token", items: "sources", metrics: []string{"exact", "bleu"}, source: lineText,
	probe: translationTask.probe, texts: translationTask.texts,
}

// taskOf returns the task of the model in a directory, which is not loaded yet.
func taskOf(dir string) (*modelTask, error) {
	if exists(filepath.Join(dir, modulesFile)) {
		return &similarityTask, nil
	}
	d, err := models.Describe(dir, models.Options{})
	if err != nil {
		return nil, err
	}
	if d.TokenizerError != nil {
		return nil, d.TokenizerError
	}
	task := wordsTask
	switch {
	case d.Sizes.Decoder != nil:
		return &translationTask, nil
	case d.Task == models.MaskedWords, d.Task == models.NextWord:
	case d.Task == models.TextClasses, d.Task == models.NextSentence:
		task = classesTask
	default:
		got := "has no head and no modules.json"
		if d.Task != "" {
			got = fmt.Sprintf("has a head for the %s", d.Task)
		}
		return nil, input.Errorf(dir, "%s, want a head for %s, %s, %s or %s, an encoder-decoder, or a pipeline of sentence-transformers: heads are scored by its loss",
			got, models.MaskedWords, models.NextWord, models.TextClasses, models.NextSentence)
	}
	task.name = string(d.Task)
	return &task, nil
}

// loadTask loads a model and its data: of a pretrained model, at most most lines; of a model of
// dates without data, about this number of new ones.
func (f *scoredFlags) loadTask(c console, most int) (*loaded, []train.Line, error) {
	if !isPretrained(f.Model) {
		m, err := f.load()
		if err != nil {
			return nil, nil, err
		}
		pairs, name, err := f.pairs(most)
		return &loaded{Model: m, task: &lessonTask, data: name}, linesOf(pairs), err
	}
	dir, data := f.Model, f.Data
	task, err := taskOf(dir)
	if err != nil {
		return nil, nil, err
	}
	if data == "" {
		return nil, nil, usage("--data is needed: a file with %s on each line%s", task.data.Want, task.data.Tabs())
	}
	lines, err := train.ReadLines(data, task.data, most)
	if err != nil {
		return nil, nil, err
	}
	l := &loaded{task: task, data: data}
	if task == &similarityTask {
		if l.embedder, err = load(c, models.LoadEmbedder, dir, models.Options{}); err != nil {
			return nil, nil, err
		}
		l.Model = l.embedder.Model
		l.low, l.high = math.Inf(1), math.Inf(-1)
		if err := l.similarities(data, lines); err != nil {
			return nil, nil, err
		}
	} else if l.Model, err = load(c, models.Load, dir, models.Options{}); err != nil {
		return nil, nil, err
	}
	return l, lines, wantHeads(dir, l.Attention())
}

// linesOf returns pairs as lines.
func linesOf(pairs []seq2seq.Pair) []train.Line {
	lines := make([]train.Line, len(pairs))
	for i, p := range pairs {
		lines[i] = train.Line{Number: i + 1, Columns: []string{p.Source, p.Target}}
	}
	return lines
}

// wantHeads returns an error if a model has no attention heads.
func wantHeads(dir string, layers []*attn.MultiHead) error {
	for _, l := range layers {
		if l.Config().Heads > 0 {
			return nil
		}
	}
	return input.Errorf(dir, "the model has no attention heads")
}

// similarities reads the last column of lines, and widens the range of similarities by it.
func (l *loaded) similarities(name string, lines []train.Line) error {
	for i, line := range lines {
		v, err := strconv.ParseFloat(line.Columns[2], 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return &input.Error{Name: name, Line: line.Number, Err: fmt.Errorf("similarity %.40q, want a number", line.Columns[2])}
		}
		lines[i].Value = v
		l.low, l.high = min(l.low, v), max(l.high, v)
	}
	if l.low == l.high {
		return input.Errorf(name, "every pair has similarity %g, want different ones", l.low)
	}
	return nil
}

// cosine returns what the cosine of a pair is to be, from 0 for the least similar one to 1 for
// the most similar one: files count from 0 to 5, or to 1, or otherwise.
func (l *loaded) cosine(similarity float64) float64 { return (similarity - l.low) / (l.high - l.low) }

// bad says that a line cannot be used.
func (l *loaded) bad(line train.Line, err error) error {
	if errors.As(err, new(*models.FormatError)) {
		return err
	}
	return &input.Error{Name: l.data, Line: line.Number, Err: err}
}

// examples returns a probe on what a head is to predict of lines.
func (l *loaded) examples(lines []train.Line, example func(train.Line) (models.Example, error)) (*models.Probe, error) {
	list := make([]models.Example, len(lines))
	for i, line := range lines {
		e, err := example(line)
		if err == nil {
			err = l.fits(max(len(e.IDs), len(e.Reads)))
		}
		if err != nil {
			return nil, l.bad(line, err)
		}
		list[i] = e
	}
	return models.NewProbe(l.Model, list)
}

// layerBytes returns how large the weights of a layer are for a text of n tokens.
func layerBytes(m *models.Model, n int) int64 {
	heads := m.Sizes().Heads
	if y := m.Sizes().Decoder; y != nil {
		heads = max(heads, y.Heads)
	}
	return 4 * int64(heads) * int64(n) * int64(n)
}

// fits returns an error if the weights of a layer are too large for a text of n tokens.
func (l *loaded) fits(n int) error {
	if bytes := layerBytes(l.Model, n); bytes > mostPretrained && l.Translator == nil {
		return fmt.Errorf("the text has %d tokens, and so %d MB of weights in a layer, want at most %d MB", n, bytes>>20, mostPretrained>>20)
	}
	return nil
}

// recorder returns how many records there are to be of each text, of some layers each, so
// that one takes no more than most bytes; and a function that makes them.
func (l *loaded) recorder(texts [][2]string, most int) (parts int, record func(i int) (*heads.Record, error), err error) {
	longest := 0
	for _, t := range texts {
		source, target, err := lengths(l.Model, t[0], t[1])
		if err != nil {
			return 0, nil, err
		}
		longest = max(longest, source, target)
	}
	layers := l.Attention()
	all := int64(len(layers)) * layerBytes(l.Model, longest)
	parts = int(min(int64(len(layers)), (all+int64(most)-1)/int64(most)))
	return parts, func(i int) (*heads.Record, error) {
		text, chosen := texts[i/parts], map[string]bool{}
		for n := i % parts; n < len(layers); n += parts {
			chosen[layers[n].Config().Name] = true
		}
		return l.Record(text[0], text[1], heads.RecorderOptions{Layers: func(name string) bool { return chosen[name] }})
	}, nil
}

// judges are the metrics of predictions, by the names that --metric has for them.
var judges = map[string]pruning.Judge{
	"loss": pruning.Loss, "accuracy": pruning.Accuracy, "spearman": pruning.Spearman, "pearson": pruning.Pearson,
}
