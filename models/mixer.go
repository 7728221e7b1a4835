package models

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/tensor"
)

// mixer is the part of a block in which tokens meet, where that is not softmax attention over keys and values of its
// own: linear attention, a convolution. In a hybrid, layer_types says which block has which.
type mixer interface {
	// kind is what layer_types calls it: "linear_attention".
	kind() string
	// mix returns what tokens h get from each other and from those before them, which kept has; it is nil for whole
	// sequences, and the tokens are added to it. lens are the lengths of the sequences, nil if they are equal. r has
	// observers, which get weights if there are some, and gates.
	//
	// Shapes: h and out [B L D].
	mix(t *tensor.Tape, h *tensor.Tensor, r *Run, kept LayerCache, lens []int) *tensor.Tensor
	// newCache returns the cache of batch sequences without tokens.
	newCache(batch int, c attn.CacheConfig) (LayerCache, error)
}

// LayerCache is what tokens have left in a layer of a decoder: keys and values, or a state. CacheOf makes one of an
// *attn.Cache or a *linear.LayerState.
type LayerCache interface {
	// Lens returns how many tokens of each sequence have been read.
	Lens() []int
	// Select returns the given sequences, which share memory with these until they differ.
	Select(sequences []int) LayerCache
	// Join returns the sequences of this cache and of others of its layer, as Select does.
	Join(others ...LayerCache) LayerCache
	// Truncate makes each sequence as short as lens, one length for all or one for each. It panics with an error of package
	// tensor if the tokens cannot be taken back, and then changes nothing.
	Truncate(lens ...int)
	// Bytes returns the memory that the cache takes. What is shared counts in each.
	Bytes() int
}

// CacheOf is a LayerCache of a cache whose methods have its own type.
type CacheOf[C interface {
	Lens() []int
	Select(sequences []int) C
	Join(others ...C) C
	Truncate(lens ...int)
	Bytes() int
}] struct{ Cache C }

// Lens returns how many tokens of each sequence have been read.
func (c CacheOf[C]) Lens() []int { return c.Cache.Lens() }

// Select returns the given sequences.
func (c CacheOf[C]) Select(sequences []int) LayerCache {
	return CacheOf[C]{c.Cache.Select(sequences)}
}

// Join returns the sequences of all caches.
func (c CacheOf[C]) Join(others ...LayerCache) LayerCache {
	all := make([]C, len(others))
	for i, o := range others {
		all[i] = o.(CacheOf[C]).Cache
	}
	return CacheOf[C]{c.Cache.Join(all...)}
}

// Truncate makes the sequences shorter.
func (c CacheOf[C]) Truncate(lens ...int) { c.Cache.Truncate(lens...) }

// Bytes returns the memory that the cache takes.
func (c CacheOf[C]) Bytes() int { return c.Cache.Bytes() }

// linearAttention mixes tokens with linear attention.
type linearAttention struct{ *linear.Layer }

func (linearAttention) kind() string { return linearKind }

func (l linearAttention) mix(t *tensor.Tape, h *tensor.Tensor, r *Run, kept LayerCache, lens []int) *tensor.Tensor {
	o := linear.Options{Lens: lens, Observers: r.Observers, Inspect: r.Inspect, Gates: r.gates(l.Config().Name), Edits: r.edits(l.Config().Name)}
	if kept != nil {
		return l.Extend(t, h, kept.(CacheOf[*linear.LayerState]).Cache, o).Out
	}
	return l.Forward(t, h, o).Out
}

func (l linearAttention) keep(heads []int) (cuttable, error) {
	less, err := l.Keep(heads)
	return linearAttention{less}, err
}

func (l linearAttention) counts(heads int) map[string]int {
	c := l.Config()
	return map[string]int{
		"linear_num_value_heads": heads, "linear_num_key_heads": heads * c.KeyHeads / c.Heads,
		"linear_key_head_dim": c.KeySize, "linear_value_head_dim": c.ValueSize,
	}
}

func (l linearAttention) newCache(batch int, _ attn.CacheConfig) (LayerCache, error) {
	s, err := l.NewState(batch)
	return CacheOf[*linear.LayerState]{s}, err
}

// keysAndValues returns the cache of an attention layer.
func keysAndValues(c *attn.Cache, err error) (LayerCache, error) { return CacheOf[*attn.Cache]{c}, err }

// caches is the LayerCache of a mixer that has several.
type caches []LayerCache

func (c caches) Lens() []int { return c[0].Lens() }

func (c caches) Select(sequences []int) LayerCache {
	all := make(caches, len(c))
	for i := range c {
		all[i] = c[i].Select(sequences)
	}
	return all
}

func (c caches) Join(others ...LayerCache) LayerCache {
	all := make(caches, len(c))
	for i := range c {
		var parts []LayerCache
		for _, o := range others {
			parts = append(parts, o.(caches)[i])
		}
		all[i] = c[i].Join(parts...)
	}
	return all
}

// Truncate may have changed the first parts when a later one panics, so Session then goes back to 0 tokens.
func (c caches) Truncate(lens ...int) {
	for _, part := range c {
		part.Truncate(lens...)
	}
}

func (c caches) Bytes() (n int) {
	for _, part := range c {
		n += part.Bytes()
	}
	return n
}
