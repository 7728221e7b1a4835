package view

import (
	"fmt"
	"os"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// ReadScores reads a file with the importance of heads, as attn heads --json writes it, for the
// layers of the records and files.
func (o *Options) ReadScores(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	bad := func(format string, args ...any) error { return input.Errorf(path, format, args...) }
	var r reports.Importance
	if err := strictjson.Lenient(data, &r); err != nil {
		return bad("want the output of attn heads --json: %v", err)
	}
	if len(r.Scores) == 0 || len(r.Layers) == 0 {
		return bad("no scores of heads, want the output of attn heads --json")
	}
	for _, s := range r.Scores {
		if len(s.Values) != len(r.Layers) {
			return bad("scores of %d layers by %s, want %d", len(s.Values), quote.Name(s.Method), len(r.Layers))
		}
		scores := Scores{
			Name:   "importance: " + s.Method,
			Help:   fmt.Sprintf("importance of the head to %s, by %s on %d %s of %s", r.Model, s.Method, r.Texts, r.Items, r.Data),
			Values: map[string][]strictjson.Number{},
		}
		for i, l := range r.Layers {
			if len(s.Values[i]) != l.Heads {
				return bad("layer %.100q: %d scores by %s, want %d", l.Name, len(s.Values[i]), s.Method, l.Heads)
			}
			scores.Values[l.Name] = s.Values[i]
		}
		o.Scores = append(o.Scores, scores)
	}
	records := o.Records
	for _, f := range o.Files {
		records = append(records, f.Record)
	}
	if o.Film != nil {
		records = append(records, o.Film.Frames[0].Record)
	}
	shown := "" // a layer
	for _, record := range records {
		for _, l := range record.Layers {
			if shown = l.Name; o.Scores[0].Values[shown] != nil {
				return nil
			}
		}
	}
	if shown == "" { // no records yet, so nothing to compare with
		return nil
	}
	return bad("its scores are of layers such as %.100q, but %s has layers such as %.100q",
		r.Layers[0].Name, o.Name, shown)
}
