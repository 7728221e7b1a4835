package prune

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
)

// Order returns the heads in the order in which Heads removes them: the least important
// first. It leaves out the most important head of each layer, which must stay, unless
// emptyLayers allows a layer to lose all its heads.
//
// The heads of a group share keys and values and are removed together. The score of a group is the sum of
// its heads' scores. Groups with equal scores are ordered by layer and number. Groups with a NaN score come
// last, by layer and number, because their importance is unknown.
func Order(layers []attn.LayerHeads, s Scores, emptyLayers bool) []Head {
	type group struct {
		layer, first, size int
		score              float64
	}
	var all []group
	left := make([]int, len(layers)) // number of groups
	for i, l := range layers {
		for first := 0; first < l.Heads; first += l.Group {
			sum := 0.
			for h := first; h < first+l.Group; h++ {
				sum += s.score(l.Name, h)
			}
			all = append(all, group{i, first, l.Group, sum})
			left[i]++
		}
	}
	slices.SortStableFunc(all, func(a, b group) int {
		if math.IsNaN(a.score) || math.IsNaN(b.score) {
			return cmp.Compare(b.score, a.score) // Compare orders NaN before all numbers
		}
		return cmp.Compare(a.score, b.score)
	})
	var order []Head
	for _, g := range all {
		if left[g.layer] == 1 && !emptyLayers {
			continue
		}
		left[g.layer]--
		for h := g.first; h < g.first+g.size; h++ {
			order = append(order, Head{layers[g.layer].Name, h})
		}
	}
	return order
}

// groupsOf splits an order into groups that are removed together, or returns an error.
func groupsOf(layers []attn.LayerHeads, order []Head) ([][]Head, error) {
	byName := map[string]attn.LayerHeads{}
	for _, l := range layers {
		byName[l.Name] = l
	}
	fail := func(h Head, what string) error {
		return fmt.Errorf("prune: Heads: head %d of layer %s in the order %s", h.Number, quote.Text(h.Layer), what)
	}
	var groups [][]Head
	seen := map[Head]bool{} // first heads of groups
	for len(order) > 0 {
		h := order[0]
		l := byName[h.Layer]
		if h.Number < 0 || h.Number >= l.Heads {
			return nil, fail(h, "is not in the model")
		}
		size := l.Group
		g := order[:min(size, len(order))]
		first := Head{h.Layer, h.Number / size * size}
		for other := first; other.Number < first.Number+size; other.Number++ {
			if !slices.Contains(g, other) {
				return nil, fail(h, "is separated from the heads that share its keys and values")
			}
		}
		if seen[first] {
			return nil, fail(h, "is listed twice")
		}
		seen[first] = true
		groups, order = append(groups, g), order[size:]
	}
	return groups, nil
}
