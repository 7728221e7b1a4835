package lens_test

import (
	"context"

	"path/filepath"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

var every = []lens.Part{lens.Head, lens.Query, lens.Key, lens.Value, lens.Pattern, lens.Residual, lens.FeedForward}

// decoders returns the models of package models' tests that write text.
func decoders(t *testing.T) (dirs []string) {
	t.Helper()
	return found(t, 20, "decoders/*")
}

// found returns models of package models' tests.
func found(t *testing.T, least int, patterns ...string) (dirs []string) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob("../models/testdata/" + pattern + "/config.json")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			dirs = append(dirs, filepath.Dir(file))
		}
	}
	if len(dirs) < least {
		t.Fatalf("%d models %v, want at least %d", len(dirs), patterns, least)
	}
	return dirs
}

// logits is a metric that every model with a vocabulary has.
var logits = lens.Logits{Terms: []lens.Logit{{Token: 5, Factor: 1}, {Token: 7, Factor: -1}}, At: lens.All}

// sitesOf returns sites of each part: at all positions, and at one.
func sitesOf(m *models.Model, positions ...int) (all []lens.Site) {
	for _, p := range every {
		sites := lens.Sites(m, p)
		for i := range sites {
			if len(sites) > 6 && i%(len(sites)/6) != 0 {
				continue
			}
			all = append(all, sites[i])
			for _, p := range positions {
				one := sites[i]
				one.Position = p
				all = append(all, one)
			}
		}
	}
	return all
}

// TestMeasure compares what Measure computes from kept states, caches and batches with whole runs that have one change, to
// the bit, for every family.
func TestMeasure(t *testing.T) {
	a, b := lens.Text(3, 9, 4, 11, 2, 8), lens.Text(7, 1, 12, 5, 6, 10)
	masked := logits
	masked.At = 2
	for _, dir := range decoders(t) {
		compareMeasure(t, dir, logits, a, b)
	}
	for _, dir := range found(t, 10, "*_words") {
		compareMeasure(t, dir, masked, a, b)
	}
	a.Targets, b.Targets = [][]int{{2, 4, 9, 5}}, [][]int{{2, 8, 3, 7}}
	for _, dir := range found(t, 5, "seq2seq/*") {
		compareMeasure(t, dir, lens.Probability{}, a, b)
	}
}

func compareMeasure(t *testing.T, dir string, metric lens.Metric, a, b models.Batch) {
	t.Run(filepath.Base(dir), func(t *testing.T) {
		t.Parallel()
		m, err := models.Load(dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if m.Sizes().Causal { // later positions change no earlier one
			metric = logits
		}
		l, err := lens.New(m, metric)
		if err != nil {
			t.Skip(err)
		}
		ctx := context.Background()
		own, err := l.Record(ctx, a, every...)
		if err != nil {
			t.Fatal(err)
		}
		other, err := l.Record(ctx, b, every...)
		if err != nil {
			t.Fatal(err)
		}
		positions := []int{5, 3}
		if a.Targets != nil {
			positions = []int{3}
		}
		sites := sitesOf(m, positions...)
		l.Memory = 1
		small := measure(t, l, a, other.Value, sites)
		l.Memory = 0
		large := measure(t, l, a, other.Value, sites)
		if !slices.Equal(small, large) {
			t.Error("effects depend on the limit of memory")
		}
		for i, y := range measure(t, l, a, own.Value, sites) {
			if y != own.Metric {
				t.Errorf("%v: %v with the run's own value, want %v", sites[i], y, own.Metric)
			}
		}
		changed := 0
		for i, site := range sites {
			v, err := other.Value(site)
			if err != nil {
				t.Fatal(err)
			}
			if want := whole(m, metric, a, site, v); large[i] != want {
				t.Errorf("%v: %v, want %v as in a whole run", site, large[i], want)
			}
			if large[i] != own.Metric {
				changed++
			}
		}
		if changed < len(sites)/2 {
			t.Errorf("only %d of %d changes had an effect", changed, len(sites))
		}
	})
}

func measure(t *testing.T, l *lens.Lens, x models.Batch, from lens.Source, sites []lens.Site) (all []float64) {
	t.Helper()
	_, effects, err := l.Effects(context.Background(), x, "patch", from, sites)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range effects {
		all = append(all, e.Metric)
	}
	return all
}

// whole returns the metric of a run over the whole text, with a value in one site.
func whole(m *models.Model, metric lens.Metric, x models.Batch, at lens.Site, v *tensor.Tensor) float64 {
	put := func(_ *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
		y := x.Clone()
		n, l := x.Dim(-1), x.Dim(-2)
		for i := range l {
			if at.Position == lens.All || at.Position == i {
				copy(y.Data()[(at.Head*l+i)*n:][:n], v.Data()[i*n:])
			}
		}
		return y
	}
	return float64(metric.Values(nil, m, m.Hidden(nil, x, runWith(at, put)), x).Data()[0])
}

// runWith is a run with one edit.
func runWith(at lens.Site, put attn.Edit) models.Run {
	when := func(p lens.Part) attn.Edit {
		if at.Part == p {
			return put
		}
		return nil
	}
	return models.Run{
		Edits: func(layer string) attn.Edits {
			if layer != at.Layer {
				return attn.Edits{}
			}
			return attn.Edits{
				Queries: when(lens.Query), Keys: when(lens.Key), Values: when(lens.Value), Weights: when(lens.Pattern), Outputs: when(lens.Head),
			}
		},
		Blocks: func(block string) models.BlockEdits {
			if block != at.Layer {
				return models.BlockEdits{}
			}
			return models.BlockEdits{Input: when(lens.Residual), FeedForward: when(lens.FeedForward)}
		},
	}
}
