// Package importance measures the importance of heads and what they attend to, for attn heads.
package importance

import (
	"context"
	"math"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/internal/exact"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
)

// Options configures Measure.
type Options struct {
	Methods   []prune.Method // by default all but random
	Normalize bool           // as in prune.ImportanceOptions
	Seed      uint64
	Texts     int // maximum number of texts on which to measure what heads attend to
	// Progress is called with the progress of a stage.
	Progress func(stage string, done, all int)
}

// Measure scores the heads of a model on its data, unless it is unscored, and measures what they attend to. If ctx
// ends, the error is that of ctx, and the report has the results so far: methods without a score are missing.
func Measure(ctx context.Context, m *tasks.Model, o Options) (reports.Importance, error) {
	r := reports.Importance{Model: m.Dir, Data: m.Data, Task: m.Name, Items: m.OfLines, Texts: len(m.Lines)}
	var err error
	if o.Methods, err = m.Methods(o.Methods); err != nil {
		return r, err
	}
	p, err := m.Probe(ctx, m.Data, m.Lines, o.Seed)
	if err != nil {
		return r, err
	}
	texts, parts, record, err := m.Recorder()
	if err != nil {
		return r, err
	}
	r.Layers, r.Scores = Layers(m.HeadLayers()), []reports.Scores{}
	if p != nil {
		if r.Scores, err = score(ctx, p, o); err != nil {
			return r, err
		}
	}
	tell := func(done, all int) { o.Progress("measuring attention", done, all) }
	return r, measure(ctx, parts*min(o.Texts, texts), record, r.Layers, tell)
}

// score scores the heads of a probe. If ctx ends, it also returns the methods that have scores.
func score(ctx context.Context, p *probe.Probe, o Options) ([]reports.Scores, error) {
	layers := p.Layers()
	scores, err := prune.Importance(ctx, p, prune.ImportanceOptions{
		Methods: o.Methods, Normalize: o.Normalize, Seed: o.Seed,
		Progress: func(done, all int) { o.Progress("scoring heads", done, all) },
	})
	if err != nil {
		scores = slices.DeleteFunc(scores, func(s prune.Scores) bool {
			return !slices.ContainsFunc(s.Flat(layers), func(v float64) bool { return !math.IsNaN(v) })
		})
	}
	return Tabulate(layers, scores), err
}

// measure sets the measures of all heads to their means over n records. Sums are exact, so the order of the
// records does not matter.
func measure(
	ctx context.Context, n int, record func(ctx context.Context, i int) (*heads.Record, error), layers []reports.Layer,
	tell func(done, all int),
) error {
	type mean struct {
		sum   exact.Sum
		count int64
	}
	sums := map[string]map[string][]mean{} // by layer and measure, one per head
	for i := range n {
		tell(i, n)
		record, err := record(ctx, i)
		if err != nil {
			return err
		}
		for layer, list := range measures(record) {
			if sums[layer] == nil {
				sums[layer] = map[string][]mean{}
			}
			for name, values := range list {
				if sums[layer][name] == nil {
					sums[layer][name] = make([]mean, len(values))
				}
				for h, v := range values {
					if m := &sums[layer][name][h]; !math.IsNaN(float64(v)) {
						m.sum.Add(float64(v))
						m.count++
					}
				}
			}
		}
	}
	tell(n, n)
	for i := range layers {
		l := &layers[i]
		l.Measures = map[string][]reports.Number{}
		for name, list := range sums[l.Name] {
			for h := range list {
				l.Measures[name] = append(l.Measures[name], reports.Number(list[h].sum.Mean(list[h].count)))
			}
		}
	}
	return nil
}

// Layers describes the attention layers of a model with all heads kept.
func Layers(layers []attn.LayerHeads) []reports.Layer {
	var list []reports.Layer
	for _, l := range layers {
		kind, index := heads.Place(l.Name)
		list = append(list, reports.Layer{Name: l.Name, Kind: kind.String(), Index: index, Heads: l.Heads, Kept: stats.Numbers(l.Heads)})
	}
	return list
}

// Tabulate returns scores by layer and head, with their rank correlations.
func Tabulate(layers []attn.LayerHeads, scores []prune.Scores) []reports.Scores {
	var reference []float64
	for _, s := range scores {
		if s.Method == prune.LeaveOneOut {
			reference = s.Flat(layers)
		}
	}
	var list []reports.Scores
	for _, s := range scores {
		row := reports.Scores{Method: s.Method.String(), Passes: s.Passes, Seconds: s.Time.Seconds(), Rank: reports.NaN}
		for _, l := range layers {
			values := []reports.Number{}
			for _, v := range s.Values[l.Name] {
				values = append(values, reports.Number(v))
			}
			row.Values = append(row.Values, values)
		}
		if reference != nil {
			row.Rank = reports.Number(prune.Spearman(s.Flat(layers), reference))
		}
		list = append(list, row)
	}
	return list
}
