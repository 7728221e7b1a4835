package models

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/stats"
)

// prunedHeads is the setting that lists removed heads: {"layer": [heads]}. Layers are their number
// from 0, or their name; heads are numbered from 0 as in the unpruned model.
const prunedHeads = "pruned_heads"

// HeadPruning is how a config.json describes layers with removed heads.
type HeadPruning uint8

// The supported ways.
const (
	// NoPruning means that files cannot have fewer heads: all layers have the number of heads in the
	// settings, or a norm spans all heads.
	NoPruning HeadPruning = iota
	// PrunedHeads is the setting "pruned_heads", which transformers before version 5 supports for
	// this family.
	PrunedHeads
	// HeadCounts uses num_attention_heads, num_key_value_heads and head_dim, and the like of layers with a state, if all
	// layers of a kind keep equally many heads: any program can load such a model. Otherwise it uses "pruned_heads", which
	// no version of transformers supports for this family.
	HeadCounts
	// NamedHeads is the setting "pruned_heads" with the names of layers in place of their numbers,
	// for models with several layers of the same number. Only attn supports it.
	NamedHeads
)

// lost records the removed heads that the layers of a model have read from "pruned_heads".
type lost struct {
	asked  *Settings            // the settings with pruned_heads, nil if no layer has read it
	keys   []string             // that belong to a layer
	layers map[string]lostLayer // by name
	kept   map[string][]int     // remaining heads, by the name of a layer with removed heads
}

// lostLayer is the key of a layer in "pruned_heads", and its number of heads before any was removed.
type lostLayer struct {
	key   string
	heads int
}

// Kept returns the attention configuration of layer i with the heads that remain after
// "pruned_heads": it sets Heads, KVHeads and HeadSize. c is the configuration with all heads. If
// heads share keys and values, only whole groups can be removed.
//
// If a family does not call Kept for a layer, a file that lists removed heads of that layer is
// rejected. See Family.Pruning.
func (b *Builder) Kept(i int, c attn.MultiHeadConfig) attn.MultiHeadConfig {
	return b.keptAs(strconv.Itoa(i), c)
}

// KeptByName is Kept for families with NamedHeads: the layer is c.Name.
func (b *Builder) KeptByName(c attn.MultiHeadConfig) attn.MultiHeadConfig { return b.keptAs(c.Name, c) }

func (b *Builder) keptAs(key string, c attn.MultiHeadConfig) attn.MultiHeadConfig {
	if b.lost.asked == nil {
		b.lost = lost{asked: b.Config, layers: map[string]lostLayer{}, kept: map[string][]int{}}
	}
	b.lost.keys = append(b.lost.keys, key)
	b.lost.layers[c.Name] = lostLayer{key, c.Heads}
	gone := b.Config.lostHeads()[key]
	if len(gone) == 0 {
		return c
	}
	c.KVHeads = cmp.Or(c.KVHeads, c.Heads)
	if c.HeadSize == 0 && c.Heads > 0 && c.Width%c.Heads == 0 {
		c.HeadSize = c.Width / c.Heads
	}
	if c.HeadSize == 0 || c.Heads%c.KVHeads != 0 {
		return c // NewMultiHead reports the error
	}
	size := c.Heads / c.KVHeads
	sorted := slices.Sorted(slices.Values(gone))
	for n, h := range sorted {
		if h < 0 || h >= c.Heads || n > 0 && h == sorted[n-1] {
			b.Config.Fail(prunedHeads, "of layer %s is %v, want numbers from 0 to %d, each once", key, gone, c.Heads-1)
			return c
		}
		if first := n - n%size; sorted[first]%size != 0 || h != sorted[first]+n%size || len(sorted)%size != 0 {
			b.Config.Fail(prunedHeads, "of layer %s is %v, want whole groups of %d heads that share keys and values", key, gone, size)
			return c
		}
	}
	left := others(sorted, c.Heads)
	b.lost.kept[c.Name] = left
	if c.Heads, c.KVHeads = len(left), len(left)/size; len(left) == 0 {
		c.Heads = attn.NoHeads
	}
	return c
}

// keptStates is Kept for heads with a state, of which some must remain, with the given key of the layer. It returns the
// numbers of heads and of heads of keys.
func (b *Builder) keptStates(key, name string, heads, keyHeads int) (int, int) {
	c := b.keptAs(key, attn.MultiHeadConfig{Name: name, Heads: heads, KVHeads: keyHeads, HeadSize: 1})
	if c.Heads == attn.NoHeads {
		b.Config.Fail(prunedHeads, "of layer %s is %v, want fewer than its %d heads", key, b.Config.lostHeads()[key], heads)
		return heads, keyHeads
	}
	return c.Heads, c.KVHeads
}

// lostHeads returns the removed heads by layer.
func (s *Settings) lostHeads() map[string][]int {
	return get[map[string][]int](s, prunedHeads, "an object of lists of heads, by layer", nil)
}

// checkLost records errors in "pruned_heads" after all layers have read it.
func (b *building) checkLost(s *Settings) {
	if b.lost.asked != s && len(s.lostHeads()) > 0 { // no layer has read it
		s.Fail(prunedHeads, "is %s, want {} or none", quote.JSON(s.values[prunedHeads]))
	}
	if b.lost.asked == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(b.lost.asked.lostHeads())) {
		if keys := b.lost.keys; !slices.Contains(keys, key) {
			if len(keys) > 7 {
				keys = []string{keys[0], "…", keys[len(keys)-1]}
			}
			b.lost.asked.Fail(prunedHeads, "has layer %s, want one of %s", quote.Text(key), strings.Join(keys, ", "))
		}
	}
}

// LeftHeads returns the numbers in the unpruned model of the heads of a layer from which config.json says that heads
// were removed; some is false for other layers.
func (m *Model) LeftHeads(layer string) (left []int, some bool) {
	left, some = m.lost.kept[layer]
	return slices.Clone(left), some
}

// HeadNumbers returns the numbers of a layer's heads. They count from 0; in a layer with removed
// heads, the remaining heads keep their numbers from the unpruned model, as in config.json.
func (m *Model) HeadNumbers(layer string) []int {
	if left, ok := m.lost.kept[layer]; ok {
		return slices.Clone(left)
	}
	for _, l := range m.HeadLayers() {
		if l.Name == layer {
			return stats.Numbers(l.Heads)
		}
	}
	return nil
}
