package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// This file has what attn heads and attn prune share: their flags for the model, the data
// and the methods.

// scoredFlags are the flags of the commands that score heads: the model, the data and
// the methods.
type scoredFlags struct {
	Model     string   `required:"" help:"Directory of the model." placeholder:"DIR"`
	Data      string   `help:"Tab-separated pairs that the model was not trained on, one per line; for a pretrained model, the columns that attn heads --help lists (default new dates, for a dates model)." placeholder:"FILE"`
	Method    []string `enum:"${methods}" help:"${methods_or}, or several, comma-separated (default all but random)." placeholder:"NAME" group:"Importance"`
	Normalize bool     `help:"Divide the scores of gradient, taylor and fisher by their norm over the layer." group:"Importance"`
	Limit     int      `default:"1000" help:"Use at most N sources of the data, or of each of its parts." placeholder:"N"`
	Seed      uint64   `default:"1" help:"Random seed." placeholder:"N"`

	recipe *train.Recipe // the model's, if it has one
}

// methods returns the methods asked for, each once.
func (f *scoredFlags) methods() ([]prune.Method, error) {
	if len(f.Method) == 0 {
		return slices.DeleteFunc(prune.Methods(), func(m prune.Method) bool { return m == prune.Random }), nil
	}
	var list []prune.Method
	for _, name := range f.Method {
		m, err := prune.ParseMethod(name)
		if err != nil {
			return nil, usage("%w", err)
		}
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list, nil
}

// scored is a model with the data on which its heads are scored.
type scored struct {
	subject prune.Subject
	report  reports.Importance // what is known of it before anything is measured
	// records is how many texts can be recorded, and parts how many records there are of
	// each, of some layers each, so that a record does not get too large. record returns
	// them one after the other.
	records, parts int
	record         func(i int) (*heads.Record, error)
}

// scored returns the model with the data.
func (f *scoredFlags) scored(c console) (*scored, error) {
	l, lines, err := f.loadTask(c, f.Limit)
	if err != nil {
		return nil, err
	}
	if l.Translator != nil {
		lines = firstSources(lines, f.Limit)
	}
	probe, err := l.task.probe(l, lines, f.Seed)
	if err != nil {
		return nil, err
	}
	var texts [][2]string
	for _, line := range lines {
		texts = append(texts, l.task.texts(line)...)
	}
	s := &scored{subject: probe, records: len(texts), report: reports.Importance{Model: f.Model, Data: l.data}}
	if l.Translator != nil {
		s.report.Pairs = len(lines)
	} else {
		s.report.Task, s.report.Items, s.report.Texts = l.task.name, l.task.items, len(lines)
	}
	s.parts, s.record, err = l.recorder(texts, mostPretrained)
	return s, err
}

// firstSources returns the lines of the first n sources.
func firstSources(lines []train.Line, n int) []train.Line {
	seen := map[string]bool{}
	return slices.DeleteFunc(lines, func(l train.Line) bool {
		known := seen[l.Columns[0]]
		if !known && len(seen) < n {
			seen[l.Columns[0]], known = true, true
		}
		return !known
	})
}

// load returns the translator, or an error if it has no attention heads.
func (f *scoredFlags) load() (*models.Model, error) {
	m, err := loadTranslator(f.Model)
	if err != nil {
		return nil, err
	}
	if f.recipe, err = train.ReadRecipe(f.Model); err != nil {
		return nil, err
	}
	return m, wantHeads(f.Model, m.Attention())
}

// pairs returns the pairs of --data and the name of that file. Without --data, a model that
// was trained on the built-in dates gets up to most new ones, none of which was used to
// train, test or prune it.
func (f *scoredFlags) pairs(most int) (pairs []seq2seq.Pair, name string, err error) {
	if f.Data != "" {
		pairs, err = train.LoadTest(f.Data)
		return pairs, f.Data, err
	}
	if f.recipe == nil || f.recipe.Data != "" {
		return nil, "", usage("--data is needed: %s was not trained on the built-in dates", f.Model)
	}
	learnt, err := f.recipe.Pairs()
	if err != nil {
		return nil, "", err
	}
	known := map[string]bool{}
	for _, p := range slices.Concat(learnt.Learn, learnt.Test) {
		known[p.Source] = true
	}
	for i, n := range f.recipe.Pruned {
		for _, p := range f.recipe.MoreDates(i, n) {
			known[p.Source] = true
		}
	}
	pairs = f.recipe.MoreDates(len(f.recipe.Pruned), most)
	return slices.DeleteFunc(pairs, func(p seq2seq.Pair) bool { return known[p.Source] }), "built-in dates", nil
}

// touches returns what is read.
func (f *scoredFlags) touches() touched {
	return touched{models: []place{{"--model", f.Model}}, reads: []place{{"--data", f.Data}}}
}

// Validate is called by the parser.
func (f *scoredFlags) Validate() error {
	if f.Limit < 1 || f.Limit > train.MaxDates/4 {
		return fmt.Errorf("--limit %d, want 1 to %d", f.Limit, train.MaxDates/4)
	}
	gradients := func(name string) bool { return slices.Contains([]string{"gradient", "taylor", "fisher"}, name) }
	if f.Normalize && len(f.Method) > 0 && !slices.ContainsFunc(f.Method, gradients) {
		return errors.New("--normalize requires gradient, taylor or fisher")
	}
	return nil
}
