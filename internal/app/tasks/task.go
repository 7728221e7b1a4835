// Package tasks has the tasks of models on which attn heads and attn prune measure heads: for each task the
// format of its data, its loss and its metrics.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tokenizer"
	"github.com/attn-go/attn/train"
)

// Task is a task of models.
type Task struct {
	Name     string // "masked words"
	LossUnit string
	Items    string // unit of the parts of the data: "sources"
	OfLines  string // unit of the lines of the data: "pairs"
	// Metrics are the values of --metric that the task allows. The first is the default.
	Metrics []string
	// Source returns the part of a line that identifies it. Lines with the same source go to the same part
	// of the data.
	Source func(line train.Line) string

	data    train.LineFormat
	line    string                                                               // unit of training data
	example func(m *Model, line train.Line, seed uint64) (models.Example, error) // nil for pipelines
	texts   func(line train.Line) [][2]string                                    // to record
}

func firstColumn(l train.Line) string { return l.Columns[0] }

var words = Task{
	LossUnit: "nats per token", Items: "texts", OfLines: "texts", line: "line", data: train.LineFormat{Want: "a text"},
	Metrics: []string{"loss"}, Source: firstColumn,
	example: func(m *Model, line train.Line, seed uint64) (models.Example, error) {
		return m.TextExample(line.Columns[0], rand.New(rand.NewPCG(seed, uint64(line.Number))))
	},
	texts: func(line train.Line) [][2]string { return [][2]string{{line.Columns[0], ""}} },
}

var classes = Task{
	LossUnit: "nats per text", Items: "texts", OfLines: "texts", line: "line",
	data:    train.LineFormat{Want: "a text, or two, and a class", Least: 2, Most: 3},
	Metrics: []string{"accuracy", "loss"},
	Source:  func(l train.Line) string { return strings.Join(l.Columns[:len(l.Columns)-1], "\t") },
	example: func(m *Model, line train.Line, _ uint64) (models.Example, error) {
		texts := classified(line)
		return m.LabelExample(texts[0], texts[1], line.Columns[len(line.Columns)-1])
	},
	texts: func(line train.Line) [][2]string { return [][2]string{classified(line)} },
}

// classified returns the one or two texts of a line with a class.
func classified(l train.Line) (texts [2]string) {
	copy(texts[:], l.Columns[:len(l.Columns)-1])
	return texts
}

// Translation is the name of the task of encoder-decoders.
const Translation = "translation"

// translation is the task of encoder-decoders. The default metric of a model of characters is exact.
var translation = Task{
	Name: Translation, LossUnit: "nats per token", Items: "sources", OfLines: "pairs", line: "source",
	data:    train.LineFormat{Want: "a source and its target", Least: 2, Most: math.MaxInt},
	Metrics: []string{"bleu", "exact", "loss"}, Source: firstColumn, example: translated, texts: bothColumns,
}

func translated(m *Model, line train.Line, _ uint64) (models.Example, error) {
	return m.TranslationExample(line.Columns[0], line.Columns[1])
}

func bothColumns(line train.Line) [][2]string { return [][2]string{{line.Columns[0], line.Columns[1]}} }

var similarity = Task{
	Name: "similarity of texts", LossUnit: "squared error of the cosine", Items: "pairs", OfLines: "pairs",
	line: "line", data: train.LineFormat{Want: "two texts and a number, how similar they are, or only texts", Least: 3, Most: 3},
	Metrics: []string{"spearman", "pearson", "loss"},
	Source:  func(l train.Line) string { return l.Columns[0] + "\t" + l.Columns[1] },
	texts:   func(line train.Line) [][2]string { return [][2]string{{line.Columns[0], ""}, {line.Columns[1], ""}} },
}

// vectors is the task of a pipeline for which only texts are given: to keep the vectors of the model.
var vectors = Task{
	Name: "vectors of texts", LossUnit: "1 − cosine with the whole model's vector", Items: "texts", OfLines: "texts",
	line: "line", data: train.LineFormat{Want: "a text", Least: 1, Most: 1},
	Metrics: []string{"cosine", "loss"}, Source: firstColumn, texts: words.texts,
}

// DefaultMethods returns the methods that score heads if none is asked for: all but random.
func DefaultMethods() []prune.Method {
	return slices.DeleteFunc(prune.Methods(), func(p prune.Method) bool { return p == prune.Random })
}

// Methods returns methods to score heads with, or those of DefaultMethods that can. Methods that need gradients cannot
// tell heads apart by a loss that is least for the whole model.
func (m *Model) Methods(asked []prune.Method) ([]prune.Method, error) {
	still := func(p prune.Method) bool {
		return m.Name == vectors.Name && slices.Contains([]prune.Method{prune.Gradient, prune.Taylor, prune.Fisher}, p)
	}
	if len(asked) == 0 {
		return slices.DeleteFunc(DefaultMethods(), still), nil
	}
	if i := slices.IndexFunc(asked, still); i >= 0 {
		return nil, flags.Errorf("--method %v needs a loss with gradients, but with texts alone the whole model has the least: "+
			"want leave-one-out, weight-norm or confidence, or pairs of texts with their similarity", asked[i])
	}
	return asked, nil
}

// Probe returns a probe of the model on lines. Errors name the file of the lines.
func (m *Model) Probe(ctx context.Context, file string, lines []train.Line, seed uint64) (*models.Probe, error) {
	bad := func(line train.Line, err error) error {
		if errors.As(err, new(*models.FormatError)) {
			return err
		}
		return &input.Error{Name: file, Line: line.Number, Err: err}
	}
	if m.Name == vectors.Name {
		texts, list := make([]string, len(lines)), make([]*tokenizer.Encoding, len(lines))
		for i, line := range lines {
			var err error
			if list[i], err = m.encode(line.Columns[0]); err != nil {
				return nil, bad(line, err)
			}
			texts[i] = line.Columns[0]
		}
		want, err := m.embedder.Embed(ctx, texts...)
		if err != nil {
			return nil, err
		}
		return models.NewVectorProbe(m.embedder, list, want)
	}
	if m.example == nil {
		pairs := make([]models.SimilarPair, len(lines))
		for i, line := range lines {
			var err error
			if pairs[i], err = m.similarPair(line); err != nil {
				return nil, bad(line, err)
			}
		}
		return models.NewSimilarityProbe(m.embedder, pairs)
	}
	list := make([]models.Example, len(lines))
	for i, line := range lines {
		e, err := m.example(m, line, seed)
		if err == nil {
			err = m.fits(max(len(e.IDs), len(e.Reads)))
		}
		if err != nil {
			return nil, bad(line, err)
		}
		list[i] = e
	}
	return models.NewProbe(m.Model, list)
}

// similarPair returns the example of a line with two texts and their similarity.
func (m *Model) similarPair(line train.Line) (p models.SimilarPair, err error) {
	var x [2]*tokenizer.Encoding
	for i := range x {
		if x[i], err = m.encode(line.Columns[i]); err != nil {
			return p, err
		}
	}
	return models.SimilarPair{First: x[0], Second: x[1], Cosine: m.cosine(line.Value)}, nil
}

// encode returns the tokens of a text of which a vector is made.
func (m *Model) encode(text string) (*tokenizer.Encoding, error) {
	e, cut, err := m.embedder.Encode(text)
	if cut {
		err = fmt.Errorf("the text has more than %d tokens, where the model truncates texts", m.embedder.MostTokens)
	}
	if err == nil {
		err = m.fits(len(e.IDs))
	}
	return e, err
}

// fits returns an error if the weights of a layer are too large for a text of n tokens.
func (m *Model) fits(n int) error {
	if bytes := recording.LayerBytes(m.Model, n); bytes > recording.MaxWeights {
		return fmt.Errorf("the weights of a layer for %d tokens take %d MB, want at most %d MB",
			n, bytes>>20, recording.MaxWeights>>20)
	}
	return nil
}

// Recorder returns the number of texts in the lines of the data, the number of records of each text, and
// a function that makes them, as recording.Parts does.
func (m *Model) Recorder() (texts, parts int, record func(ctx context.Context, i int) (*heads.Record, error), err error) {
	var all [][2]string
	for _, line := range m.Lines {
		all = append(all, m.texts(line)...)
	}
	parts, record, err = recording.Parts(m.Model, all, recording.MaxWeights)
	return len(all), parts, record, err
}
