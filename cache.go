package attn

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/flash"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/tensor"
)

// CacheConfig describes a KV cache.
type CacheConfig struct {
	Batch     int // sequences
	Heads     int // heads of keys and values, G
	KeySize   int // elements of a key, E
	ValueSize int // elements of a value, V; 0 means KeySize
	// Format is the number format of the stored keys and values: tensor.Float32, which is also meant by 0,
	// tensor.BFloat16 or tensor.Int8.
	Format tensor.Format
	// Score is the score that queries of this cache use. If it maps keys, as Additive and Cosine
	// do, the cache stores the mapped keys: each key is mapped once, when it is appended, instead
	// of at every step. Nil means that Options.Score selects the score.
	Score Score
	// Capacity is the maximum number of keys per sequence; their memory is allocated at once. 0
	// means no maximum: memory grows with the keys.
	Capacity int
	// Window, if positive, makes a rolling cache, whose memory stays bounded. A query attends to
	// Window keys before its own position and to the first Sinks keys, as with the mask
	// WindowWithSinks(Window, -1, Sinks); the cache discards all other keys. 0 keeps all keys.
	Window, Sinks int
	// Shared means that the values are the first ValueSize elements of the keys, which alone are stored: the keys and
	// values of all heads are maps of one vector, as in multi-head latent attention. Append then takes no values.
	Shared bool
}

// Cache is a KV cache: it stores the keys and values of the positions that a decoder has
// processed, so that later positions can attend to them. Its sequences may differ in length. A
// step appends its keys and values and copies no older ones, so generating n tokens costs as much
// as attention over n tokens.
//
// The queries of a step are at the last positions of their sequence; masks, biases and positions
// use the length of each sequence. With tensor.Float32, the results are bit for bit those of the
// whole sequence with a causal mask, however many positions each call appends.
//
// A position takes G·(Format.Bytes(E) + Format.Bytes(V)) bytes. V is rounded up to whole SIMD
// vectors, and above 64 to a multiple of 64; E is the size of a key after the mapping of the
// Score. With Shared, it takes G·Format.Bytes(E). Memory is allocated in pages of 512 positions for all
// heads of a sequence. The last page of a sequence starts with 16 positions and doubles when it is full.
//
// Gradients do not pass through a cache: it rejects a recording tape.
//
// A Cache is not safe for concurrent use, but other goroutines may use its forks at the same
// time.
type Cache struct {
	config CacheConfig
	shape  flash.PageShape
	keyMap keyMap // ψ of the score, applied to keys before they are stored; or nil
	seqs   []cached
}

// keyMap maps keys to the form in which a score compares them.
type keyMap = func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor

// cached is the state of one sequence.
type cached struct {
	pages []*flash.Page // nil where the window has passed; may extend beyond n
	n     int
	from  int // the first position whose queries still find all their keys
}

// NewCache returns an empty cache, or an error if the configuration is invalid.
func NewCache(c CacheConfig) (*Cache, error) {
	if c.ValueSize == 0 {
		c.ValueSize = c.KeySize
	}
	if c.Format == 0 {
		c.Format = tensor.Float32
	}
	if err := c.Format.CheckStorage(); err != nil {
		return nil, fmt.Errorf("attn: NewCache: format is %w", err)
	}
	for _, f := range []struct {
		name        string
		size, least int
	}{
		{"batch", c.Batch, 0}, {"heads", c.Heads, 1}, {"key size", c.KeySize, 1}, {"value size", c.ValueSize, 1},
		{"capacity", c.Capacity, 0}, {"window", c.Window, 0}, {"sinks", c.Sinks, 0},
	} {
		if f.size < f.least {
			return nil, fmt.Errorf("attn: NewCache: %s %d, want at least %d", f.name, f.size, f.least)
		}
	}
	vectors := float64(c.Batch) * float64(c.Capacity) * float64(c.Heads)
	bytes := vectors * float64(c.Format.Bytes(c.KeySize)+c.Format.Bytes(c.ValueSize))
	if c.Window == 0 && bytes > 4*mostWeights {
		return nil, fmt.Errorf("attn: NewCache: capacity %d takes %.3g bytes, want at most %.3g", c.Capacity, bytes, float64(4*mostWeights))
	}
	if c.Sinks > 0 && c.Window == 0 {
		return nil, fmt.Errorf("attn: NewCache: %d sinks without a window, want 0: a cache without a window keeps all keys", c.Sinks)
	}
	var m keyMap
	size := c.KeySize
	if c.Shared && (c.Score != nil || c.ValueSize > c.KeySize) {
		return nil, fmt.Errorf("attn: NewCache: values of %d elements are shared with keys of %d and a score of type %T, want at most as many, and no score", c.ValueSize, c.KeySize, c.Score)
	}
	if c.Score != nil {
		if err := tensor.Catch(func() {
			f := c.Score.Form()
			if f.MappedKeys != nil {
				badValue("attn: NewCache", "score", "bound to the keys of one call by OnKeys", "one that also applies to keys appended later")
			}
			if m = f.Keys; m != nil {
				size = m(nil, tensor.Zeros(1, 1, 1, c.KeySize)).Dim(3)
			}
		}); err != nil {
			return nil, err
		}
	}
	return newCache(c, m, size), nil
}

// newCache returns a cache for keys that have size elements after mapping.
func newCache(c CacheConfig, m keyMap, size int) *Cache {
	x := &Cache{config: c, keyMap: m, seqs: make([]cached, c.Batch)}
	x.shape = flash.PageShape{G: c.Heads, E: size, EV: c.ValueSize, Format: simd.Format(c.Format), Shared: c.Shared}
	if c.Window > 0 {
		return x // a rolling cache may need less memory than its capacity
	}
	for i := range x.seqs {
		for at := 0; at < c.Capacity; at += flash.BlockKeys {
			x.seqs[i].pages = append(x.seqs[i].pages, flash.NewPage(&x.shape, pageCapacity(c.Capacity-at)))
		}
	}
	return x
}

// Config returns the configuration with defaults filled in. Batch is the current number of
// sequences, which Select may have changed.
func (c *Cache) Config() CacheConfig { return c.config }

// Len returns the number of keys of sequence b, including keys that the window has passed.
func (c *Cache) Len(b int) int { return c.seqs[b].n }

// Lens returns the number of keys of each sequence.
func (c *Cache) Lens() []int {
	lens := make([]int, len(c.seqs))
	for i, s := range c.seqs {
		lens[i] = s.n
	}
	return lens
}

// longest returns the length of the longest sequence.
func (c *Cache) longest() int {
	n := 0
	for _, s := range c.seqs {
		n = max(n, s.n)
	}
	return n
}

// Bytes returns the memory of the cache's keys and values. Pages shared with forks count in every
// fork.
func (c *Cache) Bytes() int {
	seen := map[*flash.Page]bool{nil: true}
	n := 0
	for _, s := range c.seqs {
		for _, p := range s.pages {
			if !seen[p] {
				seen[p] = true
				n += p.Bytes()
			}
		}
	}
	return n
}

// Append adds keys and values after the existing ones. lens is the number of positions to append
// per sequence: the first ones of k and v, because the rest is padding. Nil means all positions.
//
// Shapes: k [B G L E], v [B G L V], or nil if the configuration has Shared.
//
// Append panics with a *tensor.ShapeError if k, v or lens do not match the cache or a sequence
// would exceed the capacity, and with a *tensor.ValueError if k is nil, or v is without Shared. A panic leaves the
// cache unchanged. k and v are copied.
func (c *Cache) Append(k, v *tensor.Tensor, lens []int) {
	const op = "attn: Append"
	s := &c.shape
	tensor.Want(op, "key", k)
	switch {
	case !s.Shared:
		tensor.Want(op, "value", v)
	case v != nil:
		badValue(op, "value", "given", "nil: the values are elements of the keys")
	}
	if e := c.config.KeySize; k.Rank() != 4 || k.Dim(0) != len(c.seqs) || k.Dim(1) != s.G || k.Dim(3) != e {
		badShape(op, "key", "", k.Shape(), "[B=%d G=%d L E=%d]", len(c.seqs), s.G, e)
	}
	if want := []int{len(c.seqs), s.G, k.Dim(2), s.EV}; v == nil {
		v = k // which is not read
	} else if !slices.Equal(v.Shape(), want) {
		badShape(op, "value", "", v.Shape(), "[B=%d G=%d L=%d V=%d]", want[0], want[1], want[2], want[3])
	}
	panicAs(op, "lengths", checkCounts("number of positions", lens, "L", len(c.seqs), k.Dim(2)))
	c.wantCapacity(op, k.Dim(2), lens)
	c.append(headFirst(k), headFirst(v), lens)
}

// wantCapacity panics unless the capacity has room for length more positions, or for lens if not
// nil.
func (c *Cache) wantCapacity(op string, length int, lens []int) {
	for b, s := range c.seqs {
		if n := s.n + count(lens, b, length); c.config.Capacity > 0 && n > c.config.Capacity {
			badShape(op, "cache", "number of keys", []int{n}, "at most its capacity of %d", c.config.Capacity)
		}
	}
}

// append is Append without its checks.
func (c *Cache) append(k, v heads, lens []int) {
	k = k.mapped(nil, c.keyMap)
	length, s := k.length(), &c.shape
	starts := c.Lens()
	for b := range c.seqs {
		c.seqs[b].roll(&c.config)
		c.seqs[b].grow(s, count(lens, b, length))
	}
	n := len(starts) * length
	par.For(n, par.Chunk(n, s.G*(s.E+s.EV)), func(lo, hi int) {
		for z := lo; z < hi; z++ {
			b, i := z/length, z%length
			at := starts[b] + i
			if at >= c.seqs[b].n { // padding
				continue
			}
			c.seqs[b].pages[at/flash.BlockKeys].Put(at%flash.BlockKeys,
				k.Data[b*k.Batch+i*k.Row:], k.Head, v.Data[b*v.Batch+i*v.Row:], v.Head)
		}
	})
}

// roll discards the pages that no later query attends to.
func (s *cached) roll(c *CacheConfig) {
	if c.Window == 0 {
		return
	}
	s.from = s.n
	for i := range s.pages {
		if at := i * flash.BlockKeys; at >= c.Sinks && at+flash.BlockKeys <= s.n-c.Window {
			s.pages[i] = nil
		}
	}
}

// grow reserves n more positions for the sequence.
func (s *cached) grow(shape *flash.PageShape, n int) {
	for end := s.n + n; s.n < end; {
		i, at := s.n/flash.BlockKeys, s.n%flash.BlockKeys
		n := min(flash.BlockKeys-at, end-s.n)
		if i == len(s.pages) {
			s.pages = append(s.pages, flash.NewPage(shape, pageCapacity(at+n)))
		}
		if !s.pages[i].Claim(at, n) { // the page is full, or a fork uses its next position
			s.pages[i] = s.pages[i].Copy(at, pageCapacity(at+n))
			s.pages[i].Claim(at, n)
		}
		s.n += n
	}
}

// pageCapacity returns the capacity of a new page for at least n positions.
func pageCapacity(n int) int {
	room := 16
	for room < min(n, flash.BlockKeys) {
		room *= 2
	}
	return room
}

// Fork returns a cache with the same keys and values without copying them: both caches share
// their common pages (copy-on-write). Appending to one does not change the other.
func (c *Cache) Fork() *Cache {
	return c.Select(stats.Numbers(len(c.seqs)))
}

// Select returns a fork that consists of the given sequences, in the given order, for example the
// hypotheses that a beam search keeps. A sequence may be selected more than once. Select panics
// with a *tensor.ValueError if a sequence does not exist.
func (c *Cache) Select(sequences []int) *Cache {
	f := &Cache{config: c.config, shape: c.shape, keyMap: c.keyMap, seqs: make([]cached, len(sequences))}
	f.config.Batch = len(sequences)
	for i, b := range sequences {
		if b < 0 || b >= len(c.seqs) {
			badValue("attn: Select", "sequence", fmt.Sprint(b), fmt.Sprintf("0 to %d", len(c.seqs)-1))
		}
		f.seqs[i] = c.seqs[b]
		f.seqs[i].pages = slices.Clone(c.seqs[b].pages)
		for _, p := range f.seqs[i].pages {
			if p != nil {
				p.Share()
			}
		}
	}
	return f
}

// Join returns a fork that consists of the sequences of c followed by those of the others, for example
// to read the next tokens of several texts together. Join panics with a *tensor.ValueError if a cache
// is configured differently, except for its batch.
func (c *Cache) Join(others ...*Cache) *Cache {
	joined := c.Fork()
	for i, o := range others {
		own, other := c.config, o.config
		if same := sameScore(own.Score, other.Score); same {
			own.Score, other.Score = nil, nil
		}
		if other.Batch = own.Batch; own != other {
			badValue("attn: Join", fmt.Sprintf("cache %d", i+1), fmt.Sprintf("one of %+v", other), fmt.Sprintf("one of %+v", own))
		}
		joined.seqs = append(joined.seqs, o.Fork().seqs...)
	}
	joined.config.Batch = len(joined.seqs)
	return joined
}

// Truncate keeps the first keys of each sequence and discards the rest. lens is one length for
// all sequences or one for each. The cache reuses the memory of the discarded keys. Truncate
// panics with a *tensor.ShapeError if a sequence has fewer keys, or if a rolling cache has
// already discarded keys that the next query would attend to.
func (c *Cache) Truncate(lens ...int) {
	const op = "attn: Truncate"
	if len(lens) != 1 && len(lens) != len(c.seqs) {
		badShape(op, "lengths", "number of values", []int{len(lens)}, "one, or one for each of B=%d sequences", len(c.seqs))
	}
	for b, s := range c.seqs {
		if n := lens[min(b, len(lens)-1)]; n < 0 || n > s.n || n < s.from && n > 0 {
			badShape(op, fmt.Sprintf("sequence %d", b), "length", []int{n}, "0, or %d to %d", s.from, s.n)
		}
	}
	for b := range c.seqs {
		s := &c.seqs[b]
		s.n = lens[min(b, len(lens)-1)]
		s.from = min(s.from, s.n)
		if c.config.Window > 0 { // the window may have discarded the pages of these positions
			s.pages = s.pages[:(s.n+flash.BlockKeys-1)/flash.BlockKeys]
		}
	}
}

// checkCounts returns an error unless lens is nil or has a number from 0 to most for each
// sequence.
func checkCounts(what string, lens []int, letter string, batch, most int) error {
	if lens == nil {
		return nil
	}
	if len(lens) != batch {
		want := fmt.Sprintf("one for each of B=%d sequences", batch)
		return &tensor.ShapeError{Arg: "lengths", What: "number of values", Got: []int{len(lens)}, Want: want}
	}
	for _, n := range lens {
		if n < 0 || n > most {
			want := fmt.Sprintf("0 to %s=%d", letter, most)
			return &tensor.ShapeError{Arg: "lengths", What: what, Got: []int{n}, Want: want}
		}
	}
	return nil
}

// count returns the length of sequence b: lens[b], or all if lens is nil.
func count(lens []int, b, all int) int {
	if lens == nil {
		return all
	}
	return lens[b]
}
