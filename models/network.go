package models

import (
	"errors"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/tensor"
)

// Network is the computation of a model: what a Family builds.
type Network interface {
	// Hidden returns a vector for each token, behind the last layer and its norm.
	//
	// Shapes: out [B L D], where L is the length of the longest sequence, of the targets
	// in an encoder–decoder. What stands behind the end of a shorter one is arbitrary.
	//
	// Gradients flow to every parameter that it uses. It panics with a
	// *tensor.ShapeError if an id is none of the vocabulary, or a sequence longer than
	// the model takes; Sizes.Check says so as an error before.
	Hidden(t *tensor.Tape, x Batch, r Run) *tensor.Tensor
	// Attention returns the attention layers, from the first to the last. In an
	// encoder–decoder those of the encoder come first, and then, of each layer of the
	// decoder, that to the target and that to the source.
	Attention() []*attn.MultiHead
	// Sizes returns the sizes of the model.
	Sizes() Sizes
	// Head returns what makes logits of hidden states, nil if there is nothing.
	Head() *TaskHead
}

// Sizes are those of a model.
type Sizes struct {
	Kind       heads.Kind // of its layers: Encoder, or Decoder if they are causal
	Layers     int
	Heads      int // H of a layer
	KVHeads    int // G of a layer
	HeadSize   int // E
	Width      int // D
	Hidden     int // within feed-forward networks
	Vocabulary int // number of token ids
	Positions  int // most tokens of a sequence, 0 if the model has no limit
	Types      int // number of token types, 0 if there are none
	// Decoder are the sizes of the decoder behind an encoder, which the others are then of.
	// Nil in models that are one or the other.
	Decoder *Sizes
}

// output returns the sizes of what writes: of the decoder, if there is one behind an encoder.
func (z Sizes) output() Sizes {
	if z.Decoder != nil {
		return *z.Decoder
	}
	return z
}

// Run says how a network is run. The zero value is all layers over whole sequences.
type Run struct {
	// State is what a decoder has read before; x goes on behind it, and is added to it. Nil
	// means that x is all there is. NewState makes one. In an encoder–decoder it also holds
	// what the decoder attends to of the source, which is read once: x.IDs is nil from the
	// second run on.
	State State
	// Observe, if not nil, is told of the weights of each layer, under the name that the
	// layer has in Config: "encoder.0.self".
	Observe attn.WeightsFunc
	// Inspect, if not nil, is told of what the weights are made of, under the same names.
	Inspect attn.Inspector
	// States, if not nil, is told of the hidden states [B L D]: of number 0, which are the
	// embeddings, and of each layer, the last behind the final norm where there is one.
	States func(number int, x *tensor.Tensor)
	// SourceStates is States of the encoder of an encoder–decoder, whose decoder States
	// is then told of.
	SourceStates func(number int, x *tensor.Tensor)
	// Gates, if not nil, returns the gates of a layer's heads, [H] or [B H], or nil.
	Gates func(layer string) *tensor.Tensor
}

// state tells of hidden states.
func (r *Run) state(number int, x *tensor.Tensor) {
	if r.States != nil {
		r.States(number, x)
	}
}

// cache returns the cache of a layer, nil if there is none.
func (r *Run) cache(layer int) *attn.Cache {
	if r.State == nil {
		return nil
	}
	return r.State.(*Cache).Layers[layer]
}

// options adds what a run wants of a layer to how the layer attends. lens are the lengths of
// the sequences, nil where all are equally long.
func (r *Run) options(o attn.Options, self *attn.MultiHead, lens []int) attn.Options {
	name := self.Config().Name
	o.Observe, o.Inspect = r.Observe, r.Inspect
	if r.Gates != nil {
		o.Gates = r.Gates(name)
	}
	if o.QueryLens = lens; r.State == nil {
		o.KeyLens = lens
	}
	return o
}

// State is what a decoder has read: the keys and values of its layers, which are a Cache, or
// the vectors of a recurrent network. A run changes it.
type State interface {
	// Lens returns how many tokens of each sequence have been read.
	Lens() []int
	// Select returns the state of the given sequences, which go on differently from there:
	// those of a beam.
	Select(sequences []int) State
}

// Stateful is a Network with a State of its own, in place of a Cache.
type Stateful interface {
	// NewState returns the state of a decoder that has read nothing.
	NewState() State
}

// NewState returns the state of a network that has read nothing of a number of sequences: one
// of its own, or a Cache as NewCache makes it.
func NewState(n Network, batch int, c attn.CacheConfig) (State, error) {
	own := n
	if m, ok := n.(*Model); ok {
		own = m.Network
	}
	if s, ok := own.(Stateful); ok {
		return s.NewState(), nil
	}
	cache, err := NewCache(n, batch, c)
	if err != nil {
		return nil, err
	}
	return cache, nil
}

// Windowed is a Network with layers that attend to a sliding window: NewCache makes rolling
// caches for them.
type Windowed interface {
	// Window returns how many keys a query of a layer attends to, its own included; 0 for all.
	Window(layer int) int
}

// Cache is the keys and values that the layers of a decoder have read.
type Cache struct {
	Layers []*attn.Cache
	memory *memory // of the source, nil until it is read
}

// NewCache returns an empty cache for a number of sequences. c says how keys and values
// are held; unless it has a window, a layer with a sliding window gets a rolling cache, whose
// memory does not grow. It returns an error if the network is no decoder, or c is not
// possible.
func NewCache(n Network, batch int, c attn.CacheConfig) (*Cache, error) {
	layers, z := n.Attention(), n.Sizes()
	switch {
	case z.Decoder != nil:
		var own []*attn.MultiHead // without those that attend to the source
		for i := z.Layers; i < len(layers); i += 2 {
			own = append(own, layers[i])
		}
		layers = own
	case z.Kind != heads.Decoder:
		return nil, errors.New("models: NewCache: the layers are not causal, want a decoder")
	}
	all := new(Cache)
	if m, ok := n.(*Model); ok {
		n = m.Network
	}
	sliding, slides := n.(Windowed)
	for i, layer := range layers {
		own := c
		if slides && c.Window == 0 && sliding.Window(i) > 1 {
			own.Window = sliding.Window(i) - 1 // without the query's own key
		}
		one, err := layer.NewCache(batch, own)
		if err != nil {
			return nil, err
		}
		all.Layers = append(all.Layers, one)
	}
	return all, nil
}

// Lens returns how many tokens of each sequence have been read.
func (c *Cache) Lens() []int { return c.Layers[0].Lens() }

// Select returns a cache with the given sequences, which share memory until they go on
// differently.
func (c *Cache) Select(sequences []int) State {
	all := &Cache{memory: c.memory.choose(sequences)}
	for _, one := range c.Layers {
		all.Layers = append(all.Layers, one.Select(sequences))
	}
	return all
}
