package attn

import (
	"cmp"
	"fmt"
	"reflect"

	"github.com/attn-go/attn/tensor"
)

// NewCache returns an empty cache for the keys and values of this layer, for batch sequences. c
// configures the format; its heads, sizes and score must be zero or equal to those of the layer.
// Format 0 means the layer's format.
// NewCache returns an error if c is invalid.
func (m *MultiHead) NewCache(batch int, c CacheConfig) (*Cache, error) {
	m.wantMade()
	own := m.Config()
	if own.extra() > 0 {
		return nil, fmt.Errorf("attn: NewCache: a layer with BiasKV or ZeroKV cannot use a cache, want a layer without them")
	}
	for _, f := range []struct {
		name string
		to   *int
		size int
	}{
		{"batch", &c.Batch, batch}, {"heads", &c.Heads, own.KVHeads},
		{"key size", &c.KeySize, own.HeadSize}, {"value size", &c.ValueSize, own.ValueSize},
	} {
		if *f.to != 0 && *f.to != f.size {
			return nil, fmt.Errorf("attn: NewCache: %s %d, want 0 or %d", f.name, *f.to, f.size)
		}
		*f.to = f.size
	}
	if c.Shared {
		return nil, fmt.Errorf("attn: NewCache: the cache has Shared, want a cache without it: the layer has values")
	}
	if c.Score != nil && !sameScore(c.Score, own.Score) {
		return nil, fmt.Errorf("attn: NewCache: score has type %T, want nil or the layer's score", c.Score)
	}
	c.Format = cmp.Or(c.Format, own.Format)
	if own.Heads > 0 {
		c.Score = keyMapping(own.Score)
		return NewCache(c)
	}
	c.Score = nil
	c.Heads, c.KeySize, c.ValueSize = 1, max(c.KeySize, 1), max(c.ValueSize, 1) // placeholders that pass the checks
	cache, err := NewCache(c)
	if err != nil {
		return nil, err
	}
	c = cache.config
	c.Heads = 0
	return newCache(c, nil, c.KeySize), nil
}

// keyMapping returns the score if it maps keys, which the cache then does once per key, and nil
// otherwise.
func keyMapping(s Score) Score {
	if s != nil && s.Form().Keys != nil {
		return s
	}
	return nil
}

// sameScore reports whether two scores are the same value.
func sameScore(a, b Score) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && (a == nil || reflect.TypeOf(a).Comparable() && a == b)
}

// Extend appends the keys and values of x to a cache and attends from x to all keys of the cache:
// a step of a decoder, or a part of its prompt. The cache comes from NewCache. x is [B L Width],
// or [L B Width] in layout SequenceFirst. If some sequences of x are padded, Options.QueryLens
// has the number of real positions; only these are appended. If the layer has a Position, the new
// keys continue the positions of each sequence unless Options.KeyPositions sets others. If the
// layer's score maps keys, the cache stores mapped keys, and Options.Score must be nil.
//
// Extend panics under the same conditions as Forward, with a *tensor.ShapeError if the cache has
// other sizes or no room, and with a *tensor.ValueError if the tape records. A panic leaves the
// cache unchanged.
func (m *MultiHead) Extend(t *tensor.Tape, x *tensor.Tensor, cache *Cache, o Options) Output {
	m.wantBuilt()
	m.wantCache(cache)
	wantNoRecord(opMultiHead, t)
	for _, width := range m.widths() {
		wantInput("query", x, m.config.Layout, "L", len(cache.seqs), Infer, width)
	}
	before, at := cache.Lens(), o.KeyPositions
	if !at.given() {
		at = Positions{Offsets: before}
	}
	if m.config.Position != nil && !o.KeyPositions.given() && !o.QueryPositions.given() {
		o.QueryPositions = at // where Positions.ends would put the queries
	}
	queries, next := m.self(t, x)
	next = m.placed(t, next, at, &o.Edits)
	err := checkCounts("number of queries", o.QueryLens, "L", len(cache.seqs), queries.heads.length())
	panicAs(opMultiHead, "query lengths", err)
	cache.wantCapacity(opMultiHead, queries.heads.length(), o.QueryLens)
	done := false
	defer func() {
		for b := range before {
			if !done { // later calls overwrite the appended keys
				cache.seqs[b].n = before[b]
			}
		}
	}()
	cache.append(next.keys, next.values, o.QueryLens)
	y := m.attend(t, queries, KV{cache: cache}, o)
	done = true
	return y
}

// KV returns the keys and values of the cache for MultiHead.Query of another layer, as in models whose layers share them.
// It has the tokens that the cache has at the time of the call of Query.
func (c *Cache) KV() KV { return KV{cache: c} }

// wantCache panics unless the cache fits the keys and values of the layer.
func (m *MultiHead) wantCache(cache *Cache) {
	if m.config.extra() > 0 {
		badValue(opMultiHead, "cache", "for a layer with BiasKV or ZeroKV", "a layer without them")
	}
	if cache == nil {
		badValue(opMultiHead, "cache", "nil", "a cache from NewCache")
	}
	c, s := &m.config, &cache.shape
	if s.Shared {
		badValue(opMultiHead, "cache", "one with Shared", "one from this layer's NewCache")
	}
	if c.Heads == 0 && s.G == 0 {
		return
	}
	if !sameScore(cache.config.Score, keyMapping(c.Score)) {
		got := fmt.Sprintf("one that stores keys for a score of type %T", cache.config.Score)
		badValue(opMultiHead, "cache", got, "one from this layer's NewCache")
	}
	if got, want := [3]int{s.G, cache.config.KeySize, s.EV}, [3]int{c.KVHeads, c.HeadSize, c.ValueSize}; got != want {
		badShape(opMultiHead, "cache", "heads and sizes", []int{got[0], got[1], got[2]}, "[G=%d E=%d V=%d]", c.KVHeads, c.HeadSize, c.ValueSize)
	}
}
