package probe

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/attn-go/attn/heads"
)

// TestFindExamples compares the examples of a batch of pairs with the records of single pairs.
func TestFindExamples(t *testing.T) {
	for _, c := range toyConfigs() {
		m := newShaken(t, c, toyBatch)
		var list []Reading
		for _, p := range toyBatch {
			r, err := Read(m, p.Source, p.Target)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, r)
		}
		e := heads.NewExamples(heads.To(heads.Where(func(string, bool) bool { return true })), len(list), nil)
		if err := FindExamples(t.Context(), e, []int{3, 2, 1, 0}, list...); err != nil {
			t.Fatal(err)
		}
		for i, p := range toyBatch {
			record, err := RecordTexts(t.Context(), m, p.Source, p.Target, heads.RecorderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range record.Layers {
				for h := range l.Heads {
					best := e.Of(l.Name, h)
					at := slices.IndexFunc(best, func(x *heads.Example) bool { return x.Number == 3-i })
					if at < 0 {
						if lk := len(l.Keys); lk > 1 || !l.Kind.Causal() { // the first key does not count
							t.Errorf("%s: %s, head %d has no example in pair %d", titleOf(c), l.Name, h, i)
						}
						continue
					}
					x, n := best[at], len(l.Keys)
					if want := l.Head(h)[x.Query*n : (x.Query+1)*n]; !slices.Equal(x.Weights, want) {
						t.Errorf("%s: %s, head %d, pair %d, query %d: weights %v, want %v", titleOf(c), l.Name, h, i, x.Query, x.Weights, want)
					}
					if x.Texts.Source != p.Source || x.Texts.Target != p.Target || !slices.Equal(x.Queries, l.Queries) || !slices.Equal(x.Keys, l.Keys) {
						t.Errorf("%s: %s, pair %d: texts %+v", titleOf(c), l.Name, i, x.Texts)
					}
				}
			}
		}
	}
}

// TestFindExamplesStopped: a context that ends leaves the examples of the layers before.
func TestFindExamplesStopped(t *testing.T) {
	m := newShaken(t, toyConfigs()[0], toyBatch)
	r, err := Read(m, "abc", "cba")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	rated := 0
	e := heads.NewExamples(func(*heads.Layer, []string) func(int, []float32) (float64, int) {
		if rated++; rated == 3 {
			cancel()
		}
		return func(query int, _ []float32) (float64, int) { return float64(query), 0 }
	}, 1, nil)
	if err := FindExamples(ctx, e, []int{0}, r); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want that of the context", err)
	}
	if got := e.Of("encoder.0.self", 0); len(got) != 1 || got[0].Score != 3 {
		t.Errorf("examples of the first layer: %v, want one of the last query", got)
	}
	if err := FindExamples(t.Context(), e, nil); err != nil {
		t.Errorf("no texts: %v", err)
	}
}
