package models

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn/heads"
)

// TestReference compares a probe with itself and with one of fewer heads, whether the states
// of the reference are kept or computed again: the same to the bit.
func TestReference(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"bert_words", "bert_text", "decoders/llama3"} {
		m, err := Load("testdata/"+name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var examples []Example
		for i := range 67 { // of different lengths, in two batches
			var e Example
			for j := range 2 + i*5%7 {
				e.IDs, e.Targets = append(e.IDs, (i*11+j*7)%31), append(e.Targets, (i+j)%29)
			}
			if !m.Head().Task.PerToken() {
				e.Targets = []int{i % len(m.Head().Labels)}
			}
			examples = append(examples, e)
		}
		p, err := NewProbe(m, examples)
		if err != nil {
			t.Fatal(err)
		}
		layer := m.Attention()[0].Config()
		gone := []heads.Head{{Layer: layer.Name}}
		for h := 1; h < layer.Heads/layer.KVHeads; h++ {
			gone = append(gone, heads.Head{Layer: layer.Name, Number: h})
		}
		less, err := p.Without(gone)
		if err != nil {
			t.Fatal(err)
		}
		var first []Predicted
		for _, room := range []int{mostStates, 0} {
			r, err := newReference(ctx, p, room)
			if err != nil {
				t.Fatal(err)
			}
			if (len(r.states) == 0) != (room == 0) || len(p.batches) < 2 {
				t.Fatalf("%s: states of %d of %d batches are kept", name, len(r.states), len(p.batches))
			}
			same, err := r.Compare(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			list, err := r.Compare(ctx, less)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = list
			} else if !slices.EqualFunc(first, list, func(a, b Predicted) bool { return a.Loss == b.Loss && a.KL == b.KL && a.Right == b.Right }) {
				t.Errorf("%s: states that are computed again give other predictions", name)
			}
			for i, e := range examples {
				alone, err := NewProbe(m, []Example{e})
				if err != nil {
					t.Fatal(err)
				}
				want, err := alone.Loss(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if got := same[i]; got.KL != 0 || got.Terms != len(e.Targets) || math.Abs(got.Loss/float64(got.Terms)-want) > 1e-5 || !math.IsNaN(got.Cosine) {
					t.Fatalf("%s: example %d is said to be %+v, its loss is %v", name, i, got, want)
				}
				if !(list[i].KL > 0) && list[i].Loss != same[i].Loss {
					t.Errorf("%s: example %d without heads: %+v", name, i, list[i])
				}
			}
			if d, _, err := r.Difference(ctx, p); d != 0 || err != nil {
				t.Errorf("%s: it differs from itself by %v (%v)", name, d, err)
			}
			if d, scale, err := r.Difference(ctx, less); !(d > 0 && d < 2*scale) || err != nil {
				t.Errorf("%s: without heads it differs by %v of %v (%v)", name, d, scale, err)
			}
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := NewReference(ended, p); err != context.Canceled {
			t.Errorf("error %v, want that of the context", err)
		}
	}
}
