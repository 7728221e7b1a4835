// Package lens measures what the heads and layers of a model cause, and reports it: it is what attn lens computes.
package lens

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
)

// Names of what is done to a part of a model.
const (
	Zero        = "zero"
	Mean        = "mean"
	Patch       = "patch"
	Attribution = "attribution"
)

// Whats returns the names of what can be done to parts.
func Whats() []string { return []string{Zero, Mean, Patch, Attribution} }

// Study is what to measure.
type Study struct {
	Model    *models.Model
	Embedder *models.Embedder // for the metric similarity
	Items    []Item
	Target   *string // what the decoder of an encoder–decoder has written; nil means what the model writes
	What     []string
	Parts    []lens.Part
	Ablated  []lens.Site // without these in all runs
	Patched  []lens.Site // of text A in all runs of text B
	Means    string      // file of texts
	// Positions is whether each position of a text is changed alone.
	Positions bool
	// Progress is called with the progress of a stage.
	Progress func(stage string, done, all int)

	means lens.Means
}

// Run measures. If ctx ends, the report has what was measured so far, and the error is that of ctx.
//
// Errors: *flags.Error for what the model or the texts do not allow; *input.Error for texts.
func (s *Study) Run(ctx context.Context) (*Report, error) {
	r := &Report{Kinds: kindsOf(s.Model)}
	if s.Means != "" {
		if err := s.readMeans(ctx); err != nil {
			return r, err
		}
	}
	var all [][]Effect // by item
	for i := range s.Items {
		it := &s.Items[i]
		effects, err := s.item(ctx, it, r)
		if err != nil {
			r.average(all)
			if len(all) == 0 {
				r.Effects = effects
			}
			return r, it.failed(err)
		}
		if slices.ContainsFunc(s.Items, func(other Item) bool { return other.Metric != it.Metric }) {
			r.Metric = "the metric of each pair"
		}
		if all = append(all, effects); len(s.Items) > 1 {
			s.Progress("measuring pairs of texts", i+1, len(s.Items))
		}
	}
	r.average(all)
	return r, nil
}

// item measures a text, or two. After an error it returns what it has measured.
func (s *Study) item(ctx context.Context, it *Item, r *Report) (all []Effect, err error) {
	in, err := s.read(ctx, it)
	if err != nil {
		return nil, err
	}
	l, err := lens.New(s.Model, in.metric)
	if err != nil {
		return nil, usage(err)
	}
	own, err := l.Record(ctx, in.a, s.recorded(in)...)
	if err != nil {
		return nil, err
	}
	r.Metric, r.Tokens, r.Bases = in.name, in.labels, nil
	r.base(Base{Name: "text A", Text: it.A, Metric: own.Metric})
	estimated, with := in.a, lens.Source(lens.Zero)
	r.Exact = Zero
	if in.b != nil {
		other, err := l.Record(ctx, *in.b)
		if err != nil {
			return nil, err
		}
		r.base(Base{Name: "text B", Text: it.B, Metric: other.Metric})
		estimated, with, r.Exact = *in.b, own.Value, Patch
	}
	sites := s.sites(in)
	for _, what := range s.What {
		on, from := in.a, lens.Source(lens.Zero)
		switch what {
		case Attribution:
			_, some, err := l.Attribute(ctx, estimated, with, slices.Concat(sites...))
			if all = append(all, s.effects(what, some)...); err != nil {
				return all, err
			}
			continue
		case Patch:
			on, from = *in.b, own.Value
		case Mean:
			from = s.means.Value
		}
		for _, list := range sites {
			if len(s.Items) == 1 && len(list) > 0 {
				l.Progress = func(done, all int) { s.Progress(fmt.Sprintf("%s of each %s", what, list[0].Part), done, all) }
			}
			some, err := s.measure(ctx, l, what, on, from, own, list, r)
			if all = append(all, s.effects(what, some)...); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// measure measures the effect of each site, beside the changes in all runs.
func (s *Study) measure(
	ctx context.Context, l *lens.Lens, what string, x models.Batch, from lens.Source, own *lens.Record, sites []lens.Site, r *Report,
) ([]lens.Effect, error) {
	silent := lens.Source(lens.Zero)
	if s.means != nil {
		silent = s.means.Value
	}
	var fixed []lens.Change
	var names []string
	changes := func(from lens.Source, sites []lens.Site) (all []lens.Change, err error) {
		for _, at := range sites {
			c, err := from.Change(at)
			if err != nil {
				return nil, usage(err)
			}
			all = append(all, c)
		}
		return all, nil
	}
	add := func(did string, from lens.Source, sites []lens.Site) error {
		if len(sites) > 0 {
			names = append(names, did)
		}
		more, err := changes(from, sites)
		fixed = append(fixed, more...)
		return err
	}
	err := add("without "+quote.Counted(len(s.Ablated), "head", "heads"), silent, s.Ablated)
	if err == nil && what == Patch {
		err = add("with "+quote.Counted(len(s.Patched), "head", "heads")+" of text A", own.Value, s.Patched)
	}
	if err != nil {
		return nil, err
	}
	sets := [][]lens.Change{fixed}
	list, err := changes(from, sites)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		sets = append(sets, append(slices.Clone(fixed), c))
	}
	_, metrics, err := l.Measure(ctx, x, sets)
	if err != nil {
		return nil, err
	}
	base := metrics[0]
	switch a := r.Bases[0].Metric; {
	case len(fixed) > 0 && what == Patch:
		b := r.Bases[1].Metric
		r.base(Base{Name: "text B " + strings.Join(names, ", "), Metric: base, Share: (base - b) / (a - b), Of: "the way to text A"})
	case len(fixed) > 0:
		r.base(Base{Name: "text A " + names[0], Metric: base, Share: base / a, Of: "the metric"})
	}
	var all []lens.Effect
	for i, m := range metrics[1:] {
		all = append(all, lens.Effect{Site: sites[i], What: what, Metric: m, Effect: m - base})
	}
	return all, nil
}

// recorded returns the parts of text A that are put into text B.
func (s *Study) recorded(in *reading) []lens.Part {
	if in.b == nil {
		return nil
	}
	parts := slices.Clone(s.Parts)
	if len(s.Patched) > 0 && !slices.Contains(parts, lens.Head) {
		parts = append(parts, lens.Head)
	}
	return parts
}

// sites returns the sites of each part.
func (s *Study) sites(in *reading) (all [][]lens.Site) {
	for _, p := range s.Parts {
		list := lens.Sites(s.Model, p)
		if s.Positions {
			var each []lens.Site
			for _, at := range list {
				for i := range in.length(at) {
					at.Position = i
					each = append(each, at)
				}
			}
			list = each
		}
		all = append(all, list)
	}
	return all
}

// effects returns effects for the report.
func (s *Study) effects(what string, list []lens.Effect) (all []Effect) {
	for _, e := range list {
		kind, layer := heads.Place(e.Layer)
		y := Effect{What: what, Part: e.Part, Kind: kind.String(), Layer: layer, Metric: number(e.Metric), Effect: number(e.Effect)}
		if !e.Part.OfBlock() {
			y.Head = &e.Head
		}
		if e.Position != lens.All {
			y.Position = &e.Position
		}
		all = append(all, y)
	}
	return all
}

// readMeans computes the means over the texts of a file.
func (s *Study) readMeans(ctx context.Context) error {
	lines, err := columnsOf(s.Means, 1)
	if err != nil {
		return err
	}
	parts := slices.Clone(s.Parts)
	if len(s.Ablated) > 0 {
		parts = append(parts, lens.Head)
	}
	s.means = lens.Means{}
	l, err := lens.New(s.Model, nil)
	if err != nil {
		return err
	}
	var texts []models.Batch
	for _, line := range lines {
		x, err := s.tokens(ctx, &Item{A: line.Columns[0], Metric: s.Items[0].Metric}, 0, nil)
		if err != nil {
			return &input.Error{Name: s.Means, Line: line.Number, Err: err}
		}
		texts = append(texts, x)
	}
	s.Progress("means of texts", 0, len(texts))
	s.means, err = l.Means(ctx, texts, slices.Compact(slices.Sorted(slices.Values(parts)))...)
	return err
}

// kindsOf returns the kinds of attention of a model.
func kindsOf(m *models.Model) (kinds []string) {
	for _, l := range m.HeadLayers() {
		if kind, _ := heads.Place(l.Name); !slices.Contains(kinds, kind.String()) {
			kinds = append(kinds, kind.String())
		}
	}
	return kinds
}

// ParseHeads returns the sites of the heads that heads.Select selects, in the order of the model.
//
// Errors: *flags.Error for a head that does not exist.
func ParseHeads(m *models.Model, names []string) (all []lens.Site, err error) {
	selected, err := heads.Select(m.HeadLayers(), names...)
	if err != nil {
		return nil, usage(err)
	}
	for _, at := range lens.Sites(m, lens.Head) {
		if slices.Contains(selected[at.Layer], at.Head) {
			all = append(all, at)
		}
	}
	return all, nil
}

func usage(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return flags.Errorf("%v", err)
}

// average sets the effects to their means over items, with 95% intervals if there are several.
func (r *Report) average(all [][]Effect) {
	if len(all) == 0 {
		return
	}
	r.Items, r.Effects = len(all), all[0]
	if len(all) == 1 {
		return
	}
	r.Effects = slices.Clone(all[0])
	for i := range r.Effects {
		mean := func(of func(Effect) float64) func(sample []int) float64 {
			return func(sample []int) float64 {
				sum := 0.
				for _, n := range sample {
					sum += of(all[n][i])
				}
				return sum / float64(len(sample))
			}
		}
		effect := mean(func(e Effect) float64 { return float64(e.Effect) })
		every := stats.Numbers(len(all))
		low, high := stats.Interval(len(all), 1000, 1, effect)
		e := &r.Effects[i]
		e.Metric, e.Effect = number(mean(func(e Effect) float64 { return float64(e.Metric) })(every)), number(effect(every))
		e.Low, e.High = new(number(low)), new(number(high))
	}
}
