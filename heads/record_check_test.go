package heads

import (
	"math"
	"slices"
	"testing"
)

func TestCheck(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	l := Layer{Heads: 3, Queries: named("q", 4), Keys: named("k", 2), Weights: []float32{
		0.5, 0.5, 0, 0, 0.498, 0.5, 1, 0, // correct: a query may attend to no key, weights may be rounded
		0.5, 0.25, -0.5, 1.5, 0.5, 0.495, 2, 0,
		nan, 1, 0.5, 0.5, -1, 0, inf, 0,
	}}
	want := []string{
		"head 1: row 0 has the sum 0.75, which is not 1, and so have 3 rows in all",
		"head 1: row 1 has the weight -0.5, which is negative",
		"head 2: row 0 has the weight NaN, which is not finite, and so have 2 rows in all",
		"head 2: row 2 has the weight -1, which is negative",
	}
	var got []string
	for _, p := range l.Check() {
		got = append(got, p.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems %q\nwant %q", got, want)
	}
	good := Layer{Heads: 1, Queries: named("q", 2), Keys: named("k", 2), Weights: l.Weights[:4]}
	if p := good.Check(); p != nil {
		t.Errorf("problems %v", p)
	}
}

// Weights on request are computed once for each head.
func TestCheckOnRequest(t *testing.T) {
	computed := 0
	l := Layer{Heads: 2, Queries: named("q", 5), Keys: named("k", 1), again: func(int) []float32 {
		computed++
		return []float32{1, 1, 0.5, 1, 1}
	}}
	if got := l.Check(); len(got) != 2 || got[0].Row != 2 || computed != 2 {
		t.Errorf("problems %v, %d heads computed, want 2", got, computed)
	}
}

func TestValidate(t *testing.T) {
	good := func() Record {
		return Record{Layers: []Layer{
			{Name: "a", Heads: 2, Queries: named("q", 3), Keys: named("k", 5), Weights: make([]float32, 30)},
			{Name: "b", Heads: 1, Queries: named("q", 1), Keys: named("k", 1), Weights: make([]float32, 1)},
		}}
	}
	r := good()
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*Layer)
		want   string
	}{
		{func(l *Layer) { l.Kind = 9 }, `layer "b": unknown kind 9`},
		{func(l *Layer) { l.Index = -1 }, `layer "b": index -1, want 0 to 1048576`},
		{func(l *Layer) { l.Heads = 0 }, `layer "b": 0 heads, 1 queries, 1 keys: want at least one of each`},
		{func(l *Layer) { l.Keys = nil }, `layer "b": 1 heads, 1 queries, 0 keys: want at least one of each`},
		{func(l *Layer) { l.Keys = make([]string, 1<<17+1) }, `layer "b": 1 queries and 131073 keys, want at most 131072`},
		{func(l *Layer) { l.Weights = make([]float32, 2) }, `layer "b": 2 weights, want 1 heads · 1 queries · 1 keys`},
		{func(l *Layer) { l.Heads = 2 }, `layer "b": 1 weights, want 2 heads · 1 queries · 1 keys`},
		{func(l *Layer) { l.Chosen = []int{1, 2} }, `layer "b": 2 head numbers, want 1`},
		{func(l *Layer) { l.Chosen = []int{-1} }, `layer "b": head number -1 is negative`},
		{func(l *Layer) { l.KeyHeads = []int{1, 2} }, `layer "b": 2 key/value head numbers, want 1`},
		{func(l *Layer) { l.KeyHeads = []int{-1} }, `layer "b": key/value head number -1 is negative`},
		{func(l *Layer) { l.Keys = []string{"\xff"} }, `layer "b": key 0, "\xff", is not UTF-8`},
		{func(l *Layer) { l.KeyPlaces = []int{1, 2} }, `layer "b": places of 2 key tokens, want 1`},
		{func(l *Layer) {
			l.Queries, l.Weights, l.QueryPlaces = named("q", 2), make([]float32, 2), []int{1, 0}
		}, `layer "b": places of query tokens descend from 1 to 0`},
		{func(l *Layer) { l.Name = "a" }, `layer "a": duplicate name`},
	} {
		r := good()
		c.change(&r.Layers[1])
		wantError(t, c.want, r.Validate(), c.want)
	}
	wantError(t, "empty", new(Record).Validate(), "no layers")
}

func TestKinds(t *testing.T) {
	for _, k := range []Kind{Encoder, Decoder, Cross, Mamba} {
		if got, err := ParseKind(k.String()); err != nil || got != k {
			t.Errorf("%v is read as %v, %v", k, got, err)
		}
	}
	_, err := ParseKind("both")
	wantError(t, "both", err, `unknown kind "both", want encoder, decoder, cross, mamba or alignment`)
	if got := Kind(9).String(); got != "Kind(9)" {
		t.Errorf("got %q", got)
	}
}
