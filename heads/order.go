package heads

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn"
)

// Order returns heads in the order in which they may go, the least important
// first. The last head of each layer is left out, as it stays, unless emptyLayers
// lets layers lose all of them.
//
// Heads that share keys and values go together, and the score of such a group is
// the sum of its heads'. Groups of equal scores go by layer and number. Those with
// a NaN go last, by layer and number: one does not throw away what has not been
// measured.
func Order(layers []*attn.MultiHead, s Scores, emptyLayers bool) []Head {
	type group struct {
		layer, first, size int
		score              float64
	}
	var all []group
	left := make([]int, len(layers)) // groups
	for i, l := range layers {
		c, size := l.Config(), groupSize(l)
		for first := 0; first < c.Heads; first += size {
			sum := 0.
			for h := first; h < first+size; h++ {
				sum += s.of(c.Name, h)
			}
			all = append(all, group{i, first, size, sum})
			left[i]++
		}
	}
	slices.SortStableFunc(all, func(a, b group) int {
		if math.IsNaN(a.score) || math.IsNaN(b.score) {
			return cmp.Compare(b.score, a.score) // to which NaN is less than all numbers
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
			order = append(order, Head{layers[g.layer].Config().Name, h})
		}
	}
	return order
}

// groupSize returns the number of heads of a layer that share keys and values, 0
// for a layer without heads.
func groupSize(l *attn.MultiHead) int {
	c := l.Config()
	if c.Heads == 0 {
		return 0
	}
	return c.Heads / c.KVHeads
}

// groupsOf cuts an order into heads that go together, or says what is wrong with it.
func groupsOf(layers []*attn.MultiHead, order []Head) ([][]Head, error) {
	byName := map[string]*attn.MultiHead{}
	for _, l := range layers {
		byName[l.Config().Name] = l
	}
	fail := func(h Head, what string) error {
		return fmt.Errorf("heads: Prune: head %d of layer %.100q in the order %s", h.Number, h.Layer, what)
	}
	var groups [][]Head
	seen := map[Head]bool{} // first heads of groups
	for len(order) > 0 {
		h := order[0]
		l := byName[h.Layer]
		if l == nil || h.Number < 0 || h.Number >= l.Config().Heads {
			return nil, fail(h, "is none of the model")
		}
		size := groupSize(l)
		g := order[:min(size, len(order))]
		first := Head{h.Layer, h.Number / size * size}
		for other := first; other.Number < first.Number+size; other.Number++ {
			if !slices.Contains(g, other) {
				return nil, fail(h, "is apart from those that share its keys and values")
			}
		}
		if seen[first] {
			return nil, fail(h, "comes twice")
		}
		seen[first] = true
		groups, order = append(groups, g), order[size:]
	}
	return groups, nil
}
