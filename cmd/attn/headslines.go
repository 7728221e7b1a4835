package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/filter"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/pruning"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/train"
)

// This file has attn heads --per-line, and what becomes of its lines when attn shards has
// added them up.

func (cmd *headsCommand) streams() error {
	if !cmd.PerLine || cmd.Data != "" {
		return errNotLines
	}
	return nil
}

func (cmd *headsCommand) modelDir() string { return cmd.Model }

func (cmd *headsCommand) modelFiles() ([]string, error) { return models.TranslatorFiles(), nil }

// perLine are the methods whose score is a quotient of sums over pairs. Taylor depends on
// which of them share a batch, and the other methods need none.
var perLine = []string{"leave-one-out", "gradient", "fisher", "confidence"}

// importanceKey has what a line adds to importance, beside the names of the layers.
const importanceKey = "importance"

// lineMeasures is what a line becomes with --per-line: by layer and measure, numbers of all
// heads; and by method, what the line adds to importance.
type lineMeasures map[string]any

// lineScores are the sums of prune.Scores, by layer.
type lineScores struct {
	Sums   map[string][]number `json:"sums"`
	Counts map[string][]number `json:"counts"`
}

func (cmd *headsCommand) stream(c console) (lineStream, error) {
	m, err := cmd.load()
	if err != nil {
		return nil, err
	}
	var methods []prune.Method
	if len(cmd.Method) > 0 {
		if methods, err = cmd.methods(); err != nil {
			return nil, err
		}
	}
	unknown := newUnknown(c.err)
	f := filter.Filter[lineMeasures]{MaxBytes: longestPair, Batch: 1, Strict: cmd.Strict, Write: filter.JSON[lineMeasures]}
	f.Work = func(ctx context.Context, batch []*filter.Line[lineMeasures]) error {
		pairs, of := pairsOf(batch)
		unknown.pairs(m, pairs)
		for i, p := range pairs {
			r, err := m.Record(p.Source, p.Target, heads.RecorderOptions{})
			if err != nil {
				of[i].Err = err
				continue
			}
			of[i].Value = measuresOf(r)
			if len(methods) == 0 {
				continue
			}
			probe, err := train.Probe(m, pairs[i:i+1])
			if err != nil {
				return err
			}
			list, err := prune.Importance(ctx, probe, prune.ImportanceOptions{Methods: methods})
			if err != nil {
				return err
			}
			of[i].Value[importanceKey], of[i].Err = scoresOf(list)
		}
		return nil
	}
	return newStream(f, c), nil
}

// measuresOf returns the measures of all heads of a record.
func measuresOf(r *heads.Record) lineMeasures {
	all := lineMeasures{}
	for i := range r.Layers {
		l := &r.Layers[i]
		layer := map[string][]number{}
		for h := range l.Heads {
			for _, v := range l.Measure(h, r.Special).List() {
				layer[v.Name] = append(layer[v.Name], number(v.Value))
			}
		}
		all[l.Name] = layer
	}
	return all
}

// scoresOf returns the sums of scores, by method.
func scoresOf(list []prune.Scores) (map[string]lineScores, error) {
	all := map[string]lineScores{}
	for _, s := range list {
		x := lineScores{map[string][]number{}, map[string][]number{}}
		for layer, sums := range s.Sums {
			for h, sum := range sums {
				if math.IsNaN(sum) || math.IsInf(sum, 0) { // in a sum it would be missing
					return nil, fmt.Errorf("%v of head %d of %s is not finite", s.Method, h, layer)
				}
				x.Sums[layer] = append(x.Sums[layer], number(sum))
				x.Counts[layer] = append(x.Counts[layer], number(s.Counts[layer][h]))
			}
		}
		all[s.Method.String()] = x
	}
	return all, nil
}

// added returns the report of lines that attn shards has added up: the one that their pairs
// would give if they were all measured at once.
func (cmd *headsCommand) added(methods []prune.Method) (r reports.Importance, err error) {
	bad := func(format string, args ...any) (reports.Importance, error) {
		return r, input.Errorf(cmd.Sums, format, args...)
	}
	m, err := cmd.load()
	if err != nil {
		return r, err
	}
	id, err := followsFrom(cmd, nil)
	if err != nil {
		return r, err
	}
	data, err := os.ReadFile(cmd.Sums)
	if err != nil {
		return r, err
	}
	var file struct {
		Model string
		Lines int
		Sums  map[string]json.RawMessage
		Means map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &file); err != nil || file.Model == "" || file.Means == nil {
		return bad("is not what attn shards --merge --sums writes")
	}
	if file.Model != id.Model {
		return bad("was made with model %.12s, not %.12s", file.Model, id.Model)
	}
	layers := m.Attention()
	r = reports.Importance{Model: cmd.Model, Data: cmd.Sums, Pairs: file.Lines, Layers: pruning.Layers(layers)}
	for i := range r.Layers {
		l := &r.Layers[i]
		if err := json.Unmarshal(file.Means[l.Name], &l.Measures); err != nil {
			return bad("has no measures of %s, want the lines of attn heads --per-line", l.Name)
		}
		for name, values := range l.Measures {
			if len(values) != l.Heads {
				return bad("has %s of %d heads of %s, want %d", name, len(values), l.Name, l.Heads)
			}
		}
	}
	var sums map[string]lineScores
	if raw := file.Sums[importanceKey]; raw != nil {
		if err := strictjson.Lenient(raw, &sums); err != nil {
			return bad("importance: %v", err)
		}
	}
	// What needs no data.
	free, err := prune.Importance(context.Background(), layersOnly(layers), prune.ImportanceOptions{
		Methods: []prune.Method{prune.WeightNorm, prune.Random}, Seed: cmd.Seed,
	})
	if err != nil {
		return r, err
	}
	var scores []prune.Scores
	for _, method := range methods {
		if i := slices.IndexFunc(free, func(s prune.Scores) bool { return s.Method == method }); i >= 0 {
			scores = append(scores, free[i])
			continue
		}
		x, there := sums[method.String()]
		switch {
		case there:
			s := prune.Scores{Method: method, Values: map[string][]float64{}}
			for _, l := range r.Layers {
				if n, counts := len(x.Sums[l.Name]), len(x.Counts[l.Name]); n != l.Heads || counts != l.Heads {
					return bad("has %v of %d heads of %s, and %d counts, want %d of both", method, n, l.Name, counts, l.Heads)
				}
				for h, sum := range x.Sums[l.Name] {
					s.Values[l.Name] = append(s.Values[l.Name], float64(sum/x.Counts[l.Name][h]))
				}
			}
			if cmd.Normalize {
				s.Normalize()
			}
			scores = append(scores, s)
		case len(cmd.Method) > 0:
			return bad("has no %v, want the lines of attn heads --per-line with --method %v", method, method)
		}
	}
	r.Scores = pruning.Tabulate(layers, scores)
	return r, nil
}

// layersOnly is a subject without data.
type layersOnly []*attn.MultiHead

func (l layersOnly) Layers() []*attn.MultiHead { return l }
func (l layersOnly) Batches() []int            { return nil }

func (l layersOnly) Run(*tensor.Tape, int, prune.Pass) prune.Outcome { panic("there are no data") }
