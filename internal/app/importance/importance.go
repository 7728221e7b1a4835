// Package importance measures the importance of heads and what they attend to, for attn heads.
package importance

import (
	"context"
	"math"
	"slices"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/app/tasks"
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
	r.Layers, r.Scores = Layers(m.Attention()), []reports.Scores{}
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
