package tasks

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// Model is a model with its task and data.
type Model struct {
	*models.Model
	Task
	Dir   string // of the model
	Data  string // file of the lines, or a description of built-in data
	Lines []train.Line
	// Recipe is the recipe of a translator of attn train, nil if it has none.
	Recipe *train.Recipe
	// NewDates is the number of dates that were requested from Recipe; 0 if the data are from a file.
	NewDates int

	embedder *models.Embedder // of a pipeline
	// low and high are the smallest and the largest similarity of the data.
	low, high float64
}

// Limits are the numbers of examples that Open reads at most.
type Limits struct {
	Lines int // of a file
	Dates int // new dates for a dates model, if there is no file
}

// Open loads the model in a directory as parameters, with its data from a file. data may be empty for a model that was
// trained on the built-in dates.
//
// Errors: *flags.Error if there are no data; *input.Error for data that are wrong, and for a model
// without heads or without a task.
func Open(dir, data string, o models.Options, most Limits) (*Model, error) {
	task, err := taskOf(dir, data, o)
	if err != nil {
		return nil, err
	}
	o.Trainable = true
	return task.open(dir, data, nil, o, most)
}

// Unscored reports whether the model in a directory has no loss, or data is a file of plain texts and the loss needs
// more columns: then Open is an error, and OpenUnscored measures what heads attend to.
func Unscored(dir, data string, o models.Options) bool {
	if _, err := train.ReadLines(data, attention.data, 1); err != nil {
		return false
	}
	task, err := taskOf(dir, data, o)
	return err != nil || task.data.Least > 1
}

// OpenUnscored is Open of a model with heads that are measured and not scored: of any family, from lines in the format
// of its task or from plain texts. An encoder-decoder generates the targets of plain texts. text, if not nil, is the
// only line.
func OpenUnscored(dir, data string, text *string, o models.Options, most Limits) (m *Model, err error) {
	task := &attention
	if text == nil && !Unscored(dir, data, o) {
		if task, err = taskOf(dir, data, o); err != nil {
			return nil, err
		}
	}
	unscored := *task
	unscored.probe, unscored.pipeline = nil, false
	return unscored.open(dir, data, text, o, most)
}

// open loads the model in a directory, with its data, or with a text if it is not nil.
func (t Task) open(dir, data string, text *string, o models.Options, most Limits) (m *Model, err error) {
	m = &Model{Task: t, Data: data, Dir: dir}
	if m.Recipe, err = train.ReadRecipe(dir); err != nil {
		return nil, err
	}
	if m.Recipe != nil && m.Recipe.Units == seq2seq.Chars {
		m.Metrics = []string{"exact", "bleu", "loss"}
	}
	dated := data == "" && m.Recipe != nil && m.Recipe.Data == ""
	switch {
	case text != nil:
		m.Data, m.Lines = "the command line", []train.Line{{Columns: []string{*text}}}
	case dated:
		var pairs []seq2seq.Pair
		pairs, err = newDates(m.Recipe, most.Dates)
		m.Data, m.Lines, m.NewDates = "built-in dates", LinesOf(pairs), most.Dates
	case data == "":
		return nil, flags.Errorf("--data is needed: a file with %s on each line%s", t.data.Want, t.data.Tabs())
	default:
		m.Lines, err = train.ReadLines(data, t.data, most.Lines)
	}
	if err != nil {
		return nil, err
	}
	if !t.pipeline {
		if m.Model, err = models.Load(dir, o); err != nil {
			return nil, err
		}
		return m, WantHeads(dir, m.Model)
	}
	if m.embedder, err = models.LoadEmbedder(dir, o); err != nil {
		return nil, err
	}
	m.Model, m.low, m.high = m.embedder.Model, math.Inf(1), math.Inf(-1)
	if m.read != nil {
		if err := m.read(m, data, m.Lines); err != nil {
			return nil, err
		}
	}
	return m, WantHeads(dir, m.Model)
}

// WantHeads returns an error if the model of a directory has no attention heads or no tokenizer.
func WantHeads(dir string, m *models.Model) error {
	if _, err := m.Tokenizer(); err != nil {
		return err
	}
	for _, l := range m.HeadLayers() {
		if l.Heads > 0 {
			return nil
		}
	}
	return input.Errorf(dir, "the model has no attention heads")
}

// newDates returns about n built-in dates that the model was neither trained nor tested nor pruned with.
func newDates(r *train.Recipe, n int) ([]seq2seq.Pair, error) {
	used, err := r.Pairs()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, p := range slices.Concat(used.Learn, used.Test) {
		known[p.Source] = true
	}
	for i, n := range r.Pruned {
		for _, p := range r.MoreDates(i, n) {
			known[p.Source] = true
		}
	}
	dates := r.MoreDates(len(r.Pruned), n)
	return slices.DeleteFunc(dates, func(p seq2seq.Pair) bool { return known[p.Source] }), nil
}

// taskOf returns the task of the model in a directory, whose weights are not loaded, with a file of data.
func taskOf(dir, data string, o models.Options) (*Task, error) {
	if _, err := os.Stat(filepath.Join(dir, models.PipelineFile)); err == nil {
		if _, err := train.ReadLines(data, vectors.data, 1); err == nil {
			return &vectors, nil
		}
		return &similarity, nil
	}
	d, err := models.Describe(dir, o)
	if err != nil {
		return nil, err
	}
	if d.TokenizerError != nil {
		return nil, d.TokenizerError
	}
	task := words
	switch {
	case d.Sizes.Decoder != nil:
		return &translation, nil
	case d.Task == models.MaskedWords, d.Task == models.NextWord:
	case d.Task == models.TextClasses, d.Task == models.NextSentence:
		task = classes
	default:
		got := "has no head and no " + models.PipelineFile
		if d.Task != "" {
			got = fmt.Sprintf("has a head for the %s", d.Task)
		}
		return nil, input.Errorf(dir, "%s, want a head for %s, %s, %s or %s, an encoder-decoder, "+
			"or a pipeline of sentence-transformers: heads are scored by its loss", got,
			models.MaskedWords, models.NextWord, models.TextClasses, models.NextSentence)
	}
	task.Name = string(d.Task)
	return &task, nil
}

// Scored reads pairs of texts with a number, how similar they are.
func Scored(file string) ([]train.Line, error) {
	lines, err := train.ReadLines(file, train.LineFormat{Want: "two texts and a number, how similar they are", Least: 3, Most: 3}, math.MaxInt)
	if err == nil {
		err = scores(file, lines)
	}
	return lines, err
}

// scores reads the last column of lines.
func scores(file string, lines []train.Line) error {
	for i, line := range lines {
		v, err := strconv.ParseFloat(line.Columns[2], 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			err := fmt.Errorf("similarity %.40q, want a number", line.Columns[2])
			return &input.Error{Name: file, Line: line.Number, Err: err}
		}
		lines[i].Value = v
	}
	return nil
}

// similarities reads the scores of lines and extends the range of similarities.
func (m *Model) similarities(file string, lines []train.Line) error {
	if err := scores(file, lines); err != nil {
		return err
	}
	for _, line := range lines {
		m.low, m.high = min(m.low, line.Value), max(m.high, line.Value)
	}
	if m.low == m.high {
		return input.Errorf(file, "every pair has similarity %g, want different ones", m.low)
	}
	return nil
}

// cosine returns the target cosine for a similarity: 0 for the smallest and 1 for the largest of the data,
// because the scale differs between files.
func (m *Model) cosine(similarity float64) float64 { return (similarity - m.low) / (m.high - m.low) }

// Files returns the paths of all files that the model was read from.
func (m *Model) Files() []string {
	if m.embedder != nil {
		return m.embedder.Files()
	}
	return m.Model.Files()
}

// ReadTraining reads a file of training data in the format of the task's data, without the lines whose
// source is in one of the given parts.
func (m *Model) ReadTraining(file string, without ...[]train.Line) (lines []train.Line, err error) {
	lines, err = train.ReadLines(file, m.data, math.MaxInt)
	if err == nil && m.read != nil {
		err = m.read(m, file, lines)
	}
	if err != nil {
		return nil, err
	}
	measured := map[string]bool{}
	for _, line := range slices.Concat(without...) {
		measured[m.Source(line)] = true
	}
	lines = slices.DeleteFunc(lines, func(line train.Line) bool { return measured[m.Source(line)] })
	if len(lines) == 0 {
		return nil, input.Errorf(file, "every %s is also among those that are measured on", m.line)
	}
	return lines, nil
}

// Limit drops the lines of all sources but the first n.
func (m *Model) Limit(n int) {
	all := stats.GroupBy(m.Lines, m.Source)
	kept := slices.Concat(all[:min(n, len(all))]...)
	slices.Sort(kept)
	m.Lines = stats.Pick(m.Lines, kept)
}

// LinesOf returns pairs as lines.
func LinesOf(pairs []seq2seq.Pair) []train.Line {
	lines := make([]train.Line, len(pairs))
	for i, p := range pairs {
		lines[i] = train.Line{Number: i + 1, Columns: []string{p.Source, p.Target}}
	}
	return lines
}

// PairsOf is the inverse of LinesOf.
func PairsOf(lines []train.Line) []seq2seq.Pair {
	pairs := make([]seq2seq.Pair, len(lines))
	for i, line := range lines {
		pairs[i] = seq2seq.Pair{Source: line.Columns[0], Target: line.Columns[1]}
	}
	return pairs
}
