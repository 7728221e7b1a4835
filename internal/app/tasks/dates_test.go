package tasks

import (
	"testing"

	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// Each scoring of a dates model uses new dates: fine-tuning may have trained on the dates of an earlier
// pruning.
func TestDatesAreNewEachTime(t *testing.T) {
	r := train.DatesRecipe()
	learnt, err := r.Pairs()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	see := func(what string, pairs []seq2seq.Pair) {
		for _, p := range pairs {
			if seen[p.Source] {
				t.Errorf("%s: %s has been seen", what, p.Source)
			}
		}
		for _, p := range pairs {
			seen[p.Source] = true
		}
	}
	see("learnt", learnt.Learn)
	see("tested", learnt.Test)
	for _, n := range []int{30_000, 301, 30_000} {
		pairs, err := newDates(&r, n)
		if err != nil {
			t.Fatal(err)
		}
		if len(pairs) > n || len(pairs) < n*9/10 {
			t.Errorf("%d pairs, want about %d", len(pairs), n)
		}
		see("pruned", pairs)
		r.Pruned = append(r.Pruned, n)
	}
}
