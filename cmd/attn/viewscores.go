package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/internal/view"
)

// readScores reads what attn heads --json has written.
func readScores(path string) ([]view.Scores, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	bad := func(format string, args ...any) error {
		return input.Errorf(path, format, args...)
	}
	var r reports.Importance
	if err := strictjson.Lenient(data, &r); err != nil {
		return nil, bad("want what attn heads --json writes: %v", err)
	}
	if len(r.Scores) == 0 || len(r.Layers) == 0 {
		return nil, bad("no scores of heads, want what attn heads --json writes")
	}
	var list []view.Scores
	for _, s := range r.Scores {
		if len(s.Values) != len(r.Layers) {
			return nil, bad("scores of %d layers by %s, want %d", len(s.Values), quote.Name(s.Method), len(r.Layers))
		}
		scores := view.Scores{
			Name: "importance: " + s.Method, Help: fmt.Sprintf("importance of the head to %s, by %s on %d pairs of %s", r.Model, s.Method, r.Pairs, r.Data),
			Values: map[string][]float64{},
		}
		for i, l := range r.Layers {
			if len(s.Values[i]) != l.Heads {
				return nil, bad("layer %.100q: %d scores by %s, want %d", l.Name, len(s.Values[i]), s.Method, l.Heads)
			}
			for _, x := range s.Values[i] {
				scores.Values[l.Name] = append(scores.Values[l.Name], float64(x))
			}
		}
		list = append(list, scores)
	}
	return list, nil
}

// scoresFit returns an error if scores are of none of the layers that are shown from the
// start.
func scoresFit(path string, o view.Options) error {
	var names []string
	for _, r := range o.Records {
		for _, l := range r.Layers {
			names = append(names, l.Name)
		}
	}
	for _, f := range o.Files {
		for _, l := range f.Record.Layers {
			names = append(names, l.Name)
		}
	}
	if len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return o.Scores[0].Values[name] != nil }) {
		return nil
	}
	return input.Errorf(path, "its scores are of layers such as %.100q, but %s has layers such as %.100q", slices.Sorted(maps.Keys(o.Scores[0].Values))[0], o.Name, names[0])
}
