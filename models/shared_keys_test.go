package models_test

import (
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// Layers of Gemma 4 that use the keys and values of earlier ones have no cache. Sequences of a cache that are chosen,
// or shortened continue with the same bits.
func TestSharedKeys(t *testing.T) {
	m, g := openDecoder(t, "gemma4")
	ids := g.Ints("in.ids")
	read := func(c *models.Cache, ids ...[]int) []float32 {
		return logitsOf(m, models.Batch{IDs: ids}, models.Run{State: c}).Data()
	}
	whole := logitsOf(m, models.Batch{IDs: [][]int{ids}}, models.Run{}).Data()
	tail := whole[6*m.Sizes().Vocabulary:]
	cache, err := models.NewCache(m, 2, attn.CacheConfig{})
	if err != nil {
		t.Fatal(err)
	}
	read(cache, ids[1:7], ids[:6])
	for i, layer := range cache.Layers {
		if has := layer.Bytes() > 0; has != (i < 2) {
			t.Errorf("layer %d has %d bytes", i, layer.Bytes())
		}
	}
	fork := cache.Select([]int{1, 0, 1}).(*models.Cache)
	read(cache, ids[:3], ids[:3])
	if got := read(fork, ids[6:], ids[6:], ids[6:]); !slices.Equal(got[:len(tail)], tail) || !slices.Equal(got[2*len(tail):], tail) {
		t.Error("a fork has other logits")
	}
	one, err := m.NewSession(attn.CacheConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, prompt := range [][]int{ids, ids[:8], append(slices.Clone(ids), ids...)} {
		want := generate(t, m, prompt, models.Generation{Tokens: 5, Ends: []int{}})
		tokens, err := one.Generate(t.Context(), prompt, models.Generation{Tokens: 5, Ends: []int{}})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Collect(tokens); !slices.Equal(got, want) {
			t.Errorf("a session writes %v, want %v", got, want)
		}
	}
	// Parts of a large batch have the bits of each sequence alone.
	x := models.Batch{IDs: slices.Repeat([][]int{ids[:7], ids}, 30)}
	all := logitsOf(m, x, models.Run{})
	for b := range x.IDs {
		if got := tensor.Slice(nil, all, 0, b, b+1).Data(); b%2 == 1 && !slices.Equal(got, whole) {
			t.Errorf("sequence %d of a batch has other logits", b)
		}
	}
}
