package attn_test

import (
	"fmt"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// A rolling cache equals the mask WindowWithSinks on the whole sequence, in bounded memory.
func TestRollingCache(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: long sequences; TestCacheCombinations rolls, too")
	}
	m, o := relativeLayer(t)
	lengths := []int{2711, 1900}
	rng := newRand(317)
	x := tensor.Randn(rng, len(lengths), 2711, 24)
	for _, sinks := range []int{0, 5, 700} {
		cache := mustCache(t, m, len(lengths), attn.CacheConfig{Window: 301, Sinks: sinks})
		out := chunks(rng, m, cache, x, lengths, o)
		own := o
		own.Mask = mask.WindowWithSinks(301, 0, sinks)
		for b, n := range lengths {
			tensortest.Same(t, fmt.Sprintf("%d sinks, sequence %d", sinks, b), out[b], alone(m, x, b, n, own))
		}
		// Two pages for the window, one page that the last chunk has begun, and the pages of the
		// sinks.
		page := mustCache(t, m, 1, attn.CacheConfig{Capacity: 512}).Bytes()
		if most := len(lengths) * page * (3 + (sinks+511)/512); cache.Bytes() > most {
			t.Errorf("%d sinks: %d bytes, want at most %d", sinks, cache.Bytes(), most)
		}
		wantError(t, tensor.Catch(func() { cache.Truncate(1000) }), `attn: Truncate: sequence 0 has length 1000, want 0, or 2\d+ to 2711`)
		wantError(t, tensor.Catch(func() { cache.Attend(nil, tensor.Zeros(2, 6, 1800, 4), o) }),
			`attn: Attend: sequence 0 has first query at position 911, want at least 2\d+: the rolling cache has discarded keys of earlier windows`)
		cache.Truncate(0)
		lengths := []int{17, 5}
		for b, y := range chunks(rng, m, cache, x, lengths, o) {
			tensortest.Same(t, "after a new start", y, alone(m, x, b, lengths[b], own))
		}
	}
}

// A rolling cache discards a page as soon as the next query does not attend to its last key, and
// not earlier.
func TestRollingCacheAtTheEndOfAPage(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: long sequences; TestCacheCombinations rolls, too")
	}
	const page, window = 512, 37
	m, o := relativeLayer(t)
	x := tensor.Randn(newRand(359), 1, 2*page+window+8, 24)
	for _, sinks := range []int{0, 1, page + 1} {
		own := o
		own.Mask = mask.WindowWithSinks(window, 0, sinks)
		for _, pages := range []int{1, 2} {
			for after := -2; after <= 2; after++ { // keys of the next page that the window has passed
				n := pages*page + window + after
				cache := mustCache(t, m, 1, attn.CacheConfig{Window: window, Sinks: sinks})
				m.Extend(nil, tensor.Slice(nil, x, 1, 0, n), cache, o)
				before := cache.Bytes()
				got := m.Extend(nil, tensor.Slice(nil, x, 1, n, n+3), cache, o).Out
				what := fmt.Sprintf("%d sinks, %d pages and %d keys", sinks, pages, after)
				want := alone(m, x, 0, n+3, own)
				tensortest.Same(t, what, got.Data(), want[n*24:])
				passed := (n-window)/page - (sinks+page-1)/page // pages without attended keys
				if gone := cache.Bytes() < before; gone != (passed > 0) {
					t.Errorf("%s: %d bytes, and %d before", what, cache.Bytes(), before)
				}

				// Use the most queries whose keys the cache still has, and one more.
				heads := func(lq int) func() {
					return func() { cache.Attend(nil, tensor.Zeros(1, 6, lq, 4), o) }
				}
				if err := tensor.Catch(heads(3)); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				wantError(t, tensor.Catch(heads(4)), fmt.Sprintf(`attn: Attend: sequence 0 has first query at position %d, want at least %d: the rolling cache has discarded keys of earlier windows`, n-1, n))
			}
		}
	}
}

// After truncation, queries may begin where the keys end; after truncation to nothing, anywhere.
func TestTruncatedRollingCache(t *testing.T) {
	const window = 37
	rng := newRand(367)
	k, v, q := tensor.Randn(rng, 1, 1, 700, 8), tensor.Randn(rng, 1, 1, 700, 8), tensor.Randn(rng, 1, 2, 3, 8)
	cache, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: 8, Window: window})
	if err != nil {
		t.Fatal(err)
	}
	part := func(x *tensor.Tensor, from, to int) *tensor.Tensor { return tensor.Slice(nil, x, 2, from, to) }
	cache.Append(part(k, 0, 690), part(v, 0, 690), nil)
	cache.Append(part(k, 690, 700), part(v, 690, 700), nil)
	cache.Truncate(693)
	got := cache.Attend(nil, q, attn.Options{Mask: mask.Causal()}).Out
	mask := attn.And(mask.Causal(), mask.Window(window, 0))
	want := attn.Attend(nil, q, part(k, 0, 693), part(v, 0, 693), attn.Options{Mask: mask}).Out
	tensortest.Same(t, "after a truncation", got.Data(), want.Data())
	wantError(t, tensor.Catch(func() { cache.Truncate(689) }), `attn: Truncate: sequence 0 has length 689, want 0, or 690 to 693`)

	cache.Truncate(0)
	tensortest.Same(t, "to nothing", cache.Attend(nil, q, attn.Options{}).Out.Data(), make([]float32, q.Len()))
	cache.Truncate(0)
}
