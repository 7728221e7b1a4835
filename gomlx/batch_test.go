package main

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/models"
)

// batchesOf returns batches of one pair.
func batchesOf(all []lengths) (batches [][]models.Example) {
	for _, l := range all {
		batches = append(batches, []models.Example{{IDs: make([]int, l.source), Targets: make([]int, l.target)}})
	}
	return batches
}

// tokens returns the number of tokens if each batch is padded to the first lengths that it fits, or false if one fits
// none.
func tokens(all, to []lengths) (sum int, ok bool) {
	for _, l := range all {
		at := slices.IndexFunc(to, l.within)
		if at < 0 {
			return 0, false
		}
		sum += to[at].sum()
	}
	return sum, true
}

func TestCut(t *testing.T) {
	for _, c := range []struct{ all, want []lengths }{
		{[]lengths{{3, 5}}, []lengths{{8, 8}}},
		{[]lengths{{3, 5}, {8, 8}, {9, 8}}, []lengths{{8, 8}, {16, 8}}},
		{[]lengths{{1, 8}, {16, 1}}, []lengths{{8, 8}, {16, 8}}},
		// A program for 8 tokens would save 16, each of the others saves 32 or more.
		{
			[]lengths{{8, 8}, {16, 16}, {16, 16}, {24, 24}, {24, 24}, {32, 32}, {32, 32}, {32, 32}, {40, 40}},
			[]lengths{{16, 16}, {24, 24}, {32, 32}, {40, 40}},
		},
		// A grid of at most mostCuts × mostCuts lengths.
		{[]lengths{{1, 1}, {1000, 10}}, []lengths{{16, 16}, {1008, 16}}},
	} {
		if got := cut(slices.Values(batchesOf(c.all))); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.all, got, c.want)
		}
	}
}

// No ascending lengths need fewer tokens: all are tried.
func TestCutIsBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		grid := lengths{1 + rng.IntN(5), 1 + rng.IntN(3)} // in units of roundTo
		all := []lengths{{grid.source * roundTo, grid.target * roundTo}}
		for range rng.IntN(12) {
			all = append(all, lengths{1 + rng.IntN(all[0].source), 1 + rng.IntN(all[0].target)})
		}
		got := cut(slices.Values(batchesOf(all)))
		if len(got) > mostPrograms {
			t.Fatalf("%v: %v, want at most %d", all, got, mostPrograms)
		}
		least, _ := tokens(all, all[:1])
		var try func(larger []lengths)
		try = func(larger []lengths) { // and smaller ones before them
			if n, ok := tokens(all, larger); ok {
				least = min(least, n)
			}
			for s := range larger[0].source / roundTo {
				for u := range larger[0].target / roundTo {
					if l := (lengths{(s + 1) * roundTo, (u + 1) * roundTo}); l != larger[0] && len(larger) < mostPrograms {
						try(slices.Insert(slices.Clone(larger), 0, l))
					}
				}
			}
		}
		try(all[:1])
		if n, ok := tokens(all, got); !ok || n != least {
			t.Fatalf("%v: %v need %d tokens, want %d", all, got, n, least)
		}
	}
}
