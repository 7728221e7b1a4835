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
	"github.com/attn-go/attn/probe"
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

	data     train.LineFormat
	line     string                                                // unit of training data
	pipeline bool                                                  // of an Embedder, not of a model with a head
	still    bool                                                  // the whole model has the least loss, so all gradients are 0
	read     func(m *Model, file string, lines []train.Line) error // what else is in the lines, or nil
	probe    prober
	texts    func(line train.Line) [][2]string // to record
}

// prober makes a probe of a model on the lines of a file.
type prober func(ctx context.Context, m *Model, file string, lines []train.Line, seed uint64) (*probe.Probe, error)

// examples is the prober of models with a head.
func examples(of func(m *Model, line train.Line, seed uint64) (probe.Example, error)) prober {
	return func(_ context.Context, m *Model, file string, lines []train.Line, seed uint64) (*probe.Probe, error) {
		list, err := ofLines(file, lines, func(line train.Line) (probe.Example, error) {
			e, err := of(m, line, seed)
			if err == nil {
				err = recording.Fits(m.Model, max(len(e.IDs), len(e.Reads)))
			}
			return e, err
		})
		if err != nil {
			return nil, err
		}
		return probe.New(m.Model, list)
	}
}

// ofLines makes something of each line. Its errors name the file and the line.
func ofLines[T any](file string, lines []train.Line, of func(train.Line) (T, error)) ([]T, error) {
	list := make([]T, len(lines))
	for i, line := range lines {
		var err error
		if list[i], err = of(line); errors.As(err, new(*models.FormatError)) {
			return nil, err
		} else if err != nil {
			return nil, &input.Error{Name: file, Line: line.Number, Err: err}
		}
	}
	return list, nil
}

func firstColumn(l train.Line) string { return l.Columns[0] }

var words = Task{
	LossUnit: "nats per token", Items: "texts", OfLines: "texts", line: "line", data: train.LineFormat{Want: "a text"},
	Metrics: []string{"loss"}, Source: firstColumn,
	probe: examples(func(m *Model, line train.Line, seed uint64) (probe.Example, error) {
		return probe.TextExample(m.Model, line.Columns[0], rand.New(rand.NewPCG(seed, uint64(line.Number))))
	}),
	texts: func(line train.Line) [][2]string { return [][2]string{{line.Columns[0], ""}} },
}

var classes = Task{
	LossUnit: "nats per text", Items: "texts", OfLines: "texts", line: "line",
	data:    train.LineFormat{Want: "a text, or two, and a class", Least: 2, Most: 3},
	Metrics: []string{"accuracy", "loss"},
	Source:  func(l train.Line) string { return strings.Join(l.Columns[:len(l.Columns)-1], "\t") },
	probe: examples(func(m *Model, line train.Line, _ uint64) (probe.Example, error) {
		texts := classified(line)
		return probe.LabelExample(m.Model, texts[0], texts[1], line.Columns[len(line.Columns)-1])
	}),
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
	Metrics: []string{"bleu", "exact", "loss"}, Source: firstColumn, texts: bothColumns,
	probe: examples(func(m *Model, line train.Line, _ uint64) (probe.Example, error) {
		return probe.TranslationExample(m.Model, line.Columns[0], line.Columns[1])
	}),
}

func bothColumns(line train.Line) [][2]string { return [][2]string{{line.Columns[0], line.Columns[1]}} }

var similarity = Task{
	Name: "similarity of texts", LossUnit: "squared error of the cosine", Items: "pairs", OfLines: "pairs",
	line: "line", data: train.LineFormat{Want: "two texts and a number, how similar they are, or only texts", Least: 3, Most: 3},
	Metrics: []string{"spearman", "pearson", "loss"},
	Source:  func(l train.Line) string { return l.Columns[0] + "\t" + l.Columns[1] },
	texts:   func(line train.Line) [][2]string { return [][2]string{{line.Columns[0], ""}, {line.Columns[1], ""}} },
	read:    (*Model).similarities, pipeline: true,
	probe: func(ctx context.Context, m *Model, file string, lines []train.Line, _ uint64) (*probe.Probe, error) {
		pairs, err := ofLines(file, lines, func(line train.Line) (p probe.SimilarPair, err error) {
			if p.First, err = m.encode(ctx, line.Columns[0]); err != nil {
				return p, err
			}
			p.Second, err = m.encode(ctx, line.Columns[1])
			p.Cosine = m.cosine(line.Value)
			return p, err
		})
		if err != nil {
			return nil, err
		}
		return probe.NewSimilarity(m.embedder, pairs)
	},
}

// vectors is the task of a pipeline for which only texts are given: to keep the vectors of the model.
var vectors = Task{
	Name: "vectors of texts", LossUnit: "1 − cosine with the whole model's vector", Items: "texts", OfLines: "texts",
	line: "line", data: train.LineFormat{Want: "a text", Least: 1, Most: 1},
	Metrics: []string{"cosine", "loss"}, Source: firstColumn, texts: words.texts, pipeline: true, still: true,
	probe: func(ctx context.Context, m *Model, file string, lines []train.Line, _ uint64) (*probe.Probe, error) {
		var texts []string
		list, err := ofLines(file, lines, func(line train.Line) (*tokenizer.Encoding, error) {
			texts = append(texts, line.Columns[0])
			return m.encode(ctx, line.Columns[0])
		})
		if err != nil {
			return nil, err
		}
		want, err := m.embedder.Embed(ctx, texts...)
		if err != nil {
			return nil, err
		}
		return probe.NewVector(m.embedder, list, want)
	},
}

// Attention is the name of the task of plain texts, and of models without a loss: heads are measured and not scored.
const Attention = "attention"

var attention = Task{
	Name: Attention, Items: "texts", OfLines: "texts", line: "line", data: train.LineFormat{Want: "a text", Least: 1, Most: 1},
	Source: firstColumn, texts: words.texts,
}

// DefaultMethods returns the methods that score heads if none is asked for: all but random.
func DefaultMethods() []prune.Method {
	return slices.DeleteFunc(prune.Methods(), func(p prune.Method) bool { return p == prune.Random })
}

// Methods returns methods to score heads with, or those of DefaultMethods that can.
func (t *Task) Methods(asked []prune.Method) ([]prune.Method, error) {
	cannot := func(p prune.Method) bool {
		return t.still && slices.Contains([]prune.Method{prune.Gradient, prune.Taylor, prune.Fisher}, p)
	}
	if len(asked) == 0 {
		return slices.DeleteFunc(DefaultMethods(), cannot), nil
	}
	if i := slices.IndexFunc(asked, cannot); i >= 0 {
		return nil, flags.Errorf("--method %v needs a loss with gradients, but with texts alone the whole model has the least: "+
			"want leave-one-out, weight-norm or confidence, or pairs of texts with their similarity", asked[i])
	}
	return asked, nil
}

// Probe returns a probe of the model on lines, nil if heads are not scored. Errors name the file of the lines.
func (m *Model) Probe(ctx context.Context, file string, lines []train.Line, seed uint64) (*probe.Probe, error) {
	if m.probe == nil {
		return nil, nil
	}
	return m.probe(ctx, m, file, lines, seed)
}

// encode returns the tokens of a text of which a vector is made.
func (m *Model) encode(ctx context.Context, text string) (*tokenizer.Encoding, error) {
	e, cut, err := m.embedder.Encode(ctx, text)
	if cut {
		err = fmt.Errorf("the text has more than %d tokens, where the model truncates texts", m.embedder.MostTokens)
	}
	if err == nil {
		err = recording.Fits(m.Model, len(e.IDs))
	}
	return e, err
}

// Recorder returns the number of texts in the lines of the data, the number of records of each text, and
// a function that makes them, as recording.Parts does.
func (m *Model) Recorder() (texts, parts int, record func(ctx context.Context, i int) (*heads.Record, error), err error) {
	of, err := ofLines(m.Data, m.Lines, func(line train.Line) (of []probe.Reading, err error) {
		for _, t := range m.texts(line) {
			in, err := recording.Read(m.Model, t[0], t[1])
			if err != nil {
				return nil, err
			}
			of = append(of, in)
		}
		return of, nil
	})
	if err != nil {
		return 0, 0, nil, err
	}
	all := slices.Concat(of...)
	parts, record = recording.Parts(m.Model, all, recording.MaxWeights)
	return len(all), parts, record, nil
}
