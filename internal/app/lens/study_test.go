package lens

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/viz"
)

func study(t *testing.T, what ...string) *Study {
	t.Helper()
	m, err := models.Load("../../../models/testdata/decoders/llama3", models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	return &Study{
		Model: m, What: what, Parts: []lens.Part{lens.Residual}, Progress: func(string, int, int) {},
		Items: []Item{{IDs: [][]int{{3, 9, 4, 11}, {7, 1, 12, 5}}, Metric: "logit(#5) - logit(#7)"}},
	}
}

func measured(t *testing.T, s *Study) *Report {
	t.Helper()
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A patch puts what text A computes into text B: the residual stream of A at any layer makes of B what A is.
func TestPatchesAIntoB(t *testing.T) {
	r := measured(t, study(t, Patch))
	a, b := r.Bases[0].Metric, r.Bases[1].Metric
	if a == b || len(r.Effects) != 3 {
		t.Fatalf("%v and %v, %d effects", a, b, len(r.Effects))
	}
	for _, e := range r.Effects {
		if float64(e.Metric) != a || float64(e.Effect) != a-b || e.Head != nil || e.Position != nil {
			t.Errorf("layer %d: %v, effect %v, want %v, %v", e.Layer, e.Metric, e.Effect, a, a-b)
		}
	}
	s := study(t, Patch)
	s.Positions = true
	r = measured(t, s)
	if len(r.Effects) != 12 {
		t.Fatalf("%d effects", len(r.Effects))
	}
	for _, e := range r.Effects { // the state of the last token after the last layer is all that counts
		if e.Layer == 2 && (*e.Position == 3) != (e.Effect != 0) {
			t.Errorf("position %d: effect %v", *e.Position, e.Effect)
		}
	}
}

// Heads that are changed in all runs are part of the metric that effects are compared with.
func TestHeadsInAllRuns(t *testing.T) {
	heads := func(names ...string) []lens.Site {
		t.Helper()
		sites, err := ParseHeads(study(t).Model, names)
		if err != nil {
			t.Fatal(err)
		}
		return sites
	}
	s := study(t, Zero)
	s.Parts, s.Ablated = []lens.Part{lens.Head}, heads("0.1", "1.*")
	r := measured(t, s)
	if len(s.Ablated) != 5 || len(r.Effects) != 8 {
		t.Fatalf("%d heads, %d effects", len(s.Ablated), len(r.Effects))
	}
	less := r.Bases[2]
	for _, e := range r.Effects {
		silent := e.Layer == 1 || *e.Head == 1
		if silent != (e.Effect == 0) || float64(e.Metric-e.Effect) != less.Metric {
			t.Errorf("%d.%d: metric %v, effect %v beside %v", e.Layer, *e.Head, e.Metric, e.Effect, less.Metric)
		}
	}
	if less.Share != less.Metric/r.Bases[0].Metric {
		t.Errorf("%v is %v of %v", less.Metric, less.Share, r.Bases[0].Metric)
	}
	// The same as silencing them one after another, by a run that silences the first alone.
	s = study(t, Zero)
	s.Parts = []lens.Part{lens.Head}
	one := measured(t, s).Effects[1]
	s.Ablated = heads("0.1")
	if got := measured(t, s).Bases[2].Metric; got != float64(one.Metric) {
		t.Errorf("without 0.1: %v, want %v", got, one.Metric)
	}
	s = study(t, Patch)
	s.Parts, s.Patched = []lens.Part{lens.Head}, heads("*.*")
	r = measured(t, s)
	for _, e := range r.Effects {
		if e.Effect != 0 {
			t.Errorf("head %d.%d of A is there already: effect %v", e.Layer, *e.Head, e.Effect)
		}
	}
}

// Attribution estimates patch, whatever else is measured, in any order.
func TestAttributionOfPatch(t *testing.T) {
	want := measured(t, study(t, Attribution)).Effects
	for _, what := range [][]string{{Zero, Attribution}, {Patch, Zero, Attribution}} {
		r := measured(t, study(t, what...))
		got := r.Effects[len(r.Effects)-len(want):]
		for i := range want {
			if got[i].Effect != want[i].Effect || got[i].What != Attribution {
				t.Errorf("%v: %v, want %v", what, got[i].Effect, want[i].Effect)
			}
		}
	}
}

// Where a softmax is saturated, attribution is wrong, and the report names the head: keys of the induction head do not move.
func TestFarthestAttribution(t *testing.T) {
	m, err := models.Load("../../../lens/testdata/induction", models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &Study{
		Model: m, What: []string{Attribution, Patch}, Parts: []lens.Part{lens.Head, lens.Query}, Progress: func(string, int, int) {},
		Items: []Item{{Metric: "logit(#7) - logit(#8)", IDs: [][]int{{0, 5, 9, 3, 12, 7, 14, 5, 9, 3, 12}, {0, 8, 2, 15, 6, 11, 8, 2, 15, 6, 11}}}},
	}
	var out strings.Builder
	if err := measured(t, s).Text(&out, viz.Terminal{Width: 80}); err != nil || !strings.HasSuffix(out.String(), "\nthey differ most for head 0.0: 0.3096 beside 8.0921\n") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// Edges to grouped keys and values are drawn to the heads of queries that read them: those with another edge, or all.
func TestGraphOfGroupedHeads(t *testing.T) {
	m := study(t).Model // 4 heads, 2 of keys
	all, err := lens.NewCircuit(m)
	if err != nil {
		t.Fatal(err)
	}
	kept := []string{"input->a0.h1<v>", "a0.h2->logits", "a0.h2->a1.h0<k>", "m0->a1.h3<q>", "m0->m1"}
	c := &Circuit{Circuit: all.Keep(func(e lens.Edge) bool { return slices.Contains(kept, e.String()) }), sizes: m.Sizes()}
	g := c.Graph(300)
	var got []string
	for _, e := range g.Edges {
		from, to := g.Nodes[e.From], g.Nodes[e.To]
		got = append(got, fmt.Sprintf("%s %d.%d %s %d.%d %d", from.Name, from.Row, from.Column, to.Name, to.Row, to.Column, e.Port))
	}
	want := []string{
		"input 0.4 a0.h2 1.2 2", "a0.h2 1.2 a1.h0 3.0 1", "a0.h2 1.2 a1.h1 3.1 1", "a0.h2 1.2 logits 5.4 -1", "m0 2.4 a1.h3 3.3 0", "m0 2.4 m1 4.4 -1",
	}
	if !slices.Equal(got, want) || g.Note != "5 edges, upwards" {
		t.Errorf("%s: %q, want %q", g.Note, got, want)
	}
	if g := c.Graph(2); g.Note != "the strongest 2 of 5 edges, upwards" || len(g.Edges) != 3 {
		t.Errorf("%s: %v", g.Note, g.Edges)
	}
	if err := g.SVG(io.Discard); err != nil {
		t.Error(err)
	}
}

// Layers of self-attention and cross-attention take turns in a decoder; each kind is one panel.
func TestPanelsOfKinds(t *testing.T) {
	m, err := models.Load("../../../models/testdata/seq2seq/t5", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &Study{
		Model: m, What: []string{Zero}, Parts: []lens.Part{lens.Head}, Progress: func(string, int, int) {},
		Items: []Item{{IDs: [][]int{{3, 9, 4}}, Metric: "logit(#5)"}},
	}
	var got []string
	for _, p := range measured(t, s).Figure().Panels {
		got = append(got, fmt.Sprint(p.Kind, " ", p.Rows))
	}
	if want := []string{"encoder [0 1 2]", "decoder [0 1]", "cross [0 1]"}; !slices.Equal(got, want) {
		t.Errorf("panels %q, want %q", got, want)
	}
}

// Effects of several pairs are their means, and intervals contain them.
func TestPairs(t *testing.T) {
	s := study(t, Patch, Attribution)
	s.Parts = []lens.Part{lens.Head}
	one := measured(t, s)
	swapped := s.Items[0]
	swapped.IDs = [][]int{{7, 1, 12, 5}, {3, 9, 4, 11}}
	s.Items = []Item{swapped}
	two := measured(t, s)
	s.Items = []Item{study(t).Items[0], swapped}
	r := measured(t, s)
	if r.Items != 2 || len(r.Effects) != 16 {
		t.Fatalf("%d pairs, %d effects", r.Items, len(r.Effects))
	}
	for i, e := range r.Effects {
		x, y := one.Effects[i].Effect, two.Effects[i].Effect
		if want := (x + y) / 2; math.Abs(float64(e.Effect-want)) > 1e-12 || *e.Low != min(x, y) || *e.High != max(x, y) {
			t.Errorf("%v (%v to %v), want the mean of %v and %v", e.Effect, *e.Low, *e.High, x, y)
		}
	}
	var out strings.Builder
	if err := r.JSON(&out); err != nil || strings.Count(out.String(), "\n") != 16 || strings.Contains(out.String(), "kind") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// If the context ends, what has been measured stays.
func TestStops(t *testing.T) {
	s := study(t, Zero, Patch)
	ctx, cancel := context.WithCancel(t.Context())
	s.Progress = func(stage string, _, _ int) {
		if stage == "patch of each residual" {
			cancel()
		}
	}
	r, err := s.Run(ctx)
	if !errors.Is(err, context.Canceled) || len(r.Effects) != 3 || slices.ContainsFunc(r.Effects, func(e Effect) bool { return e.What != Zero }) {
		t.Errorf("%d effects (%v)", len(r.Effects), err)
	}
	var out strings.Builder
	if err := r.Text(&out, viz.Terminal{Width: 80}); err != nil || !strings.Contains(out.String(), "residual 2") {
		t.Errorf("%v: %s", err, out.String())
	}
}
