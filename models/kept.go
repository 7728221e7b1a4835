package models

import (
	"maps"
	"slices"
	"strconv"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
)

// prunedHeads is the setting of the heads that a model has lost: {"layer": [heads]}, both
// counted from 0, heads as there were before any had gone.
const prunedHeads = "pruned_heads"

// FewerHeads is how a config.json says that layers have lost heads.
type FewerHeads uint8

// The ways that there are.
const (
	// AllHeads means that it cannot: layers have as many heads as the settings say.
	AllHeads FewerHeads = iota
	// PrunedHeads is "pruned_heads", which versions of transformers before 5 follow in this
	// family.
	PrunedHeads
	// HeadCounts is num_attention_heads and num_key_value_heads beside a head_dim of its own,
	// where layers have equally many: then a model without some heads is one like any other.
	// Else it is "pruned_heads", which no version of transformers follows in this family.
	HeadCounts
)

// lost is what the layers of a model have asked of "pruned_heads".
type lost struct {
	asked  *Settings        // where the setting is, nil if no layer has asked
	layers map[string]bool  // keys that belong to a layer
	kept   map[string][]int // by the name of a layer that has lost heads, those that are left
}

// Kept returns the configuration of the attention of layer number i with the heads that
// "pruned_heads" leaves it: Heads, KVHeads and HeadSize are the layer's own. c is that of a
// layer with all heads. Where heads share keys and values, whole groups are lost.
//
// A family that does not call it for each of its layers has all heads in all of them, and
// a file that says otherwise is refused. See Family.Fewer.
func (b *Builder) Kept(i int, c attn.MultiHeadConfig) attn.MultiHeadConfig {
	lists := get[map[string][]int](b.Config, prunedHeads, "an object of lists of heads, by layer", nil)
	key := strconv.Itoa(i)
	if b.lost.asked == nil {
		b.lost = lost{b.Config, map[string]bool{}, map[string][]int{}}
	}
	b.lost.layers[key] = true
	gone := lists[key]
	if len(gone) == 0 {
		return c
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadSize == 0 && c.Heads > 0 && c.Width%c.Heads == 0 {
		c.HeadSize = c.Width / c.Heads
	}
	if c.HeadSize == 0 || c.Heads%c.KVHeads != 0 {
		return c // of which NewMultiHead tells
	}
	size := c.Heads / c.KVHeads
	sorted := slices.Sorted(slices.Values(gone))
	for n, h := range sorted {
		if h < 0 || h >= c.Heads || n > 0 && h == sorted[n-1] {
			b.Config.Fail(prunedHeads, "of layer %d is %v, want numbers from 0 to %d, each once", i, gone, c.Heads-1)
			return c
		}
		if first := n - n%size; sorted[first]%size != 0 || h != sorted[first]+n%size || len(sorted)%size != 0 {
			b.Config.Fail(prunedHeads, "of layer %d is %v, want whole groups of %d heads that share keys and values", i, gone, size)
			return c
		}
	}
	left := []int{}
	for h := range c.Heads {
		if !slices.Contains(sorted, h) {
			left = append(left, h)
		}
	}
	b.lost.kept[c.Name] = left
	if c.Heads, c.KVHeads = len(left), len(left)/size; len(left) == 0 {
		c.Heads = attn.NoHeads
	}
	return c
}

// settleLost says what is wrong with "pruned_heads" once all layers have asked for it.
func (b *building) settleLost(s *Settings) {
	if b.lost.asked == nil {
		s.Only(prunedHeads, map[string]any{})
		return
	}
	if b.lost.asked != s { // of a part
		s.Only(prunedHeads, map[string]any{})
	}
	for _, key := range slices.Sorted(maps.Keys(get[map[string][]int](b.lost.asked, prunedHeads, "an object", nil))) {
		if !b.lost.layers[key] {
			b.lost.asked.Fail(prunedHeads, "has layer %s, want 0 to %d", quote.Text(key), len(b.lost.layers)-1)
		}
	}
}

// HeadNumbers returns the numbers of the heads of a layer, by its name: from 0, or in a
// layer that has lost heads those that the others had before, as config.json counts them.
func (m *Model) HeadNumbers(layer string) []int {
	if left, ok := m.kept[layer]; ok {
		return slices.Clone(left)
	}
	var all []int
	for _, l := range m.Attention() {
		if c := l.Config(); c.Name == layer {
			for h := range c.Heads {
				all = append(all, h)
			}
		}
	}
	return all
}
