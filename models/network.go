package models

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Network is the computation of a model. A Family builds it.
type Network interface {
	// Hidden returns a vector for each token: the output of the last layer and its norm.
	//
	// Shapes: out [B L D], where L is the length of the longest sequence (the longest target in
	// an encoder–decoder). Values after the end of a shorter sequence are arbitrary.
	//
	// Gradients flow to every parameter that it uses, if the model was loaded with
	// Options.Trainable. Hidden panics with a *tensor.ShapeError if
	// an id is not in the vocabulary or a sequence is too long for the model; Sizes.Check reports
	// this as an error beforehand. It also panics when the context of t ends, see
	// tensor.Tape.SetContext.
	Hidden(t *tensor.Tape, x Batch, r Run) *tensor.Tensor
	// Attention returns the attention layers, from the first to the last: fewer than Sizes.Layers in a hybrid, some of
	// whose layers have another mechanism. In an encoder–decoder, the encoder's layers come first, then self-attention and
	// cross-attention of each decoder layer.
	Attention() []*attn.MultiHead
	// Sizes returns the sizes of the model.
	Sizes() Sizes
	// Head returns the head that maps hidden states to logits, nil if there is none.
	Head() *TaskHead
	// FinalNorm returns the norm after the last layer, of the decoder in an encoder–decoder, nil if there is none. Of
	// Run.States, only the last has passed it: a logit lens applies it to the others, and then Head.
	FinalNorm() Layer
}

// Sizes are the sizes of a model.
type Sizes struct {
	Causal     bool // a query attends to itself and to keys before it, as in a decoder
	Layers     int
	Heads      int // H, of a layer
	KVHeads    int // G, of a layer
	HeadSize   int // E
	Width      int // D
	Hidden     int // inner width of feed-forward networks
	Vocabulary int // number of token ids
	Positions  int // maximum length of a sequence in tokens, 0 if unlimited
	Types      int // number of token types, 0 if there are none
	// Decoder are the sizes of the decoder in an encoder–decoder, whose other fields describe the
	// encoder. It is nil in other models.
	Decoder *Sizes
}

// Output returns the sizes of the part that produces the output: the decoder of an
// encoder–decoder, otherwise z itself.
func (z Sizes) Output() Sizes {
	if z.Decoder != nil {
		return *z.Decoder
	}
	return z
}

// Run configures a run of a network. The zero value runs all layers over whole sequences.
type Run struct {
	// State is the state of a decoder after the tokens that it has read; the tokens of x continue
	// them and are added to it. Nil means that x is the whole input. NewState makes a state. In
	// an encoder–decoder, it also stores the encoded source, which is read once: x.IDs is nil
	// from the second run on.
	State State
	// Observers are called with the weights of each layer and the layer's name in Config:
	// "encoder.0.self".
	Observers []attn.Observer
	// Inspect, if not nil, is called with the intermediate values of the weights and the same
	// names.
	Inspect attn.Inspector
	// States, if not nil, is called with the hidden states [B L D]: number 0 is the embeddings,
	// followed by the output of each layer. The last is the output of FinalNorm if there is
	// one.
	States func(number int, x *tensor.Tensor)
	// SourceStates is called like States for the encoder of an encoder–decoder; States is then
	// called for its decoder.
	SourceStates func(number int, x *tensor.Tensor)
	// Gates, if not nil, returns the gates of a layer's heads, [H] or [B H], or nil for none.
	Gates func(layer string) *tensor.Tensor
	// Masks, if not nil, returns a mask of a layer of attention, by its name, which hides keys beside those that the layer
	// hides. mask.Allow hides a token from all queries in this way: its own state is still computed. Hidden panics with a
	// *tensor.ValueError if the network also mixes tokens by other means, such as a convolution or a state; the encoder of a
	// recurrent translator, which has no attention, is left as it is.
	Masks func(layer string) attn.Mask
	// Edits, if not nil, returns the edits of a layer of attention, by its name: "encoder.0.self". A recurrent translator
	// calls them for each token that it writes.
	Edits func(layer string) attn.Edits
	// Blocks, if not nil, returns the edits of a block: "encoder.0" or "decoder.0".
	Blocks func(block string) BlockEdits

	// From and To, if not 0, are the first block that runs and the one after the last: the result is then what block To
	// would read, and has not passed the final norm. Input [B L D] is what block From reads, in place of embeddings; it
	// may have more sequences than an earlier run. Hidden panics with a *tensor.ValueError for a network that cannot
	// begin there, see Resumes.
	From, To int
	Input    *tensor.Tensor

	alone  bool               // the batch is not cut
	keys   []int              // of each sequence that are attended to, nil for all
	inputs *tensor.Tensor     // of stack.inputs
	now    BlockEdits         // those of the block that runs
	shared map[*block]attn.KV // keys and values that later blocks use, too
}

// BlockEdits are interventions in a block of a transformer. Nil leaves a value.
type BlockEdits struct {
	// Input [B L D] is what the block reads: the residual stream, which begins with the embeddings. The block after the
	// last one has an Input only: what the final norm reads, or the result of a model without one.
	Input attn.Edit
	// Read [B L D] is what the norm of the feed-forward network reads: the residual stream, which continues without the edit.
	Read attn.Edit
	// FeedForward [B L D] is what the feed-forward network adds to the residual stream.
	FeedForward attn.Edit
}

// BranchNorm returns the norm with which attention of a block reads the residual stream, and whether the block is parallel:
// its feed-forward network reads the stream without what attention adds. ok is false unless the stream is a
// sum of what the heads and the feed-forward networks of the blocks before have added to the embeddings: if norms follow
// the sums or the branches, if a block has another mechanism or an output gate, and in an encoder–decoder.
func (m *Model) BranchNorm(block int) (norm Layer, parallel, ok bool) {
	s, ok := m.Network.(*stack)
	if !ok || block < 0 || block >= len(s.blocks) || !Resumes(s) {
		return nil, false, false
	}
	b := s.blocks[block]
	if b.self == nil || b.mixer != nil || b.postNorm || b.selfAfter != nil || b.ffAfter != nil || b.end != nil || b.self.Gate != nil {
		return nil, false, false
	}
	if b.selfNorm == nil {
		return Activation(func(_ *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return x }), b.parallel, true
	}
	return b.selfNorm, b.parallel, true
}

// NormGain returns the factors [D] of a norm of a model, its eps, and whether it subtracts the mean; ok is false for a layer
// that is neither a LayerNorm nor an RMSNorm. Those of Gemma are 1 + weight.
func NormGain(norm Layer) (gain *tensor.Tensor, eps float32, centred, ok bool) {
	switch n := norm.(type) {
	case *nn.LayerNorm:
		return n.Weight, n.Eps, true, true
	case *nn.RMSNorm:
		return n.Weight, n.Eps, false, true
	case plusOne:
		return tensor.Shift(nil, n.Weight, 1), n.Eps, false, true
	}
	return nil, 0, false, false
}

// TokenMaps returns the embeddings of tokens, and the map from states behind the final norm to their logits: both [V D]. ok
// is false if the model does not have both as matrices, or is packed for inference.
func (m *Model) TokenMaps() (embeddings, logits *tensor.Tensor, ok bool) {
	s, ok := m.Network.(*stack)
	if !ok || s.logits == nil || s.wordsNorm != nil {
		return nil, nil, false
	}
	e, ok := s.words.(*nn.Embedding)
	if !ok {
		return nil, nil, false
	}
	return e.Weight, s.logits.Weight, true
}

// block returns the edits of a block.
func (r *Run) block(name string) BlockEdits {
	if r.Blocks == nil {
		return BlockEdits{}
	}
	return r.Blocks(name)
}

// Resumes reports whether a run can begin at any block, Run.From, and end behind any, Run.To: whether a block reads nothing
// of earlier ones but their output. It is false for encoder–decoders and for decoders whose blocks share keys and values.
func Resumes(n Network) bool {
	s, ok := inside(n).(*stack)
	return ok && s.inputs == nil && !slices.ContainsFunc(s.blocks, func(b *block) bool { return b.lends })
}

// edits returns the edits of a layer.
func (r *Run) edits(layer string) attn.Edits {
	if r.Edits == nil {
		return attn.Edits{}
	}
	return r.Edits(layer)
}

// edited applies e to x, [B L D], unless e is nil.
func edited(t *tensor.Tape, e attn.Edit, x *tensor.Tensor) *tensor.Tensor {
	if e == nil {
		return x
	}
	y := e(t, x)
	if err := tensor.CheckShape("edit of a block", y, fmt.Sprint(x.Shape()), x.Shape()...); err != nil {
		panic(err)
	}
	return y
}

// part reports whether a run is only a part of one: From, To or Input is set.
func (r *Run) part() bool { return r.From != 0 || r.To != 0 || r.Input != nil }

// wantWhole panics if a run is only a part of one.
func (r *Run) wantWhole() {
	if r.part() {
		panic(&tensor.ValueError{Op: "models: Hidden", Arg: "run", Got: "from or to a block", Want: "a whole run: the network does not resume"})
	}
}

// together reports whether the sequences of a batch must run together: callbacks know them by their number.
func (r *Run) together() bool {
	return r.Observers != nil || r.Inspect != nil || r.States != nil || r.Gates != nil || r.Edits != nil || r.Blocks != nil || r.Masks != nil ||
		r.part()
}

// state calls States.
func (r *Run) state(number int, x *tensor.Tensor) {
	if r.States != nil {
		r.States(number, x)
	}
}

// gates returns the gates of a layer's heads, or nil.
func (r *Run) gates(layer string) *tensor.Tensor {
	if r.Gates == nil {
		return nil
	}
	return r.Gates(layer)
}

// mask returns the mask of a layer with those of the run.
func (r *Run) mask(own attn.Mask, layer string) attn.Mask {
	if r.Masks == nil {
		return own
	}
	return attn.And(own, r.Masks(layer))
}

// wantMasks panics if a mask cannot hide tokens from a mixer.
func (r *Run) wantMasks(m mixer) {
	switch m.(type) {
	case nil, *altUp, *latentAttention, *differential:
		return
	}
	if r.Masks != nil {
		panic(&tensor.ValueError{Op: "models: Hidden", Arg: "masks", Got: "a layer of " + m.kind(), Want: "attention with a softmax in each layer, which can hide tokens"})
	}
}

// options adds the settings of a run to a layer's attention options. lens are the lengths of the
// sequences, nil if all are equal.
func (r *Run) options(o attn.Options, layer string, lens []int) attn.Options {
	o.Observers, o.Inspect, o.Gates, o.Edits = r.Observers, r.Inspect, r.gates(layer), r.edits(layer)
	o.Mask = r.mask(o.Mask, layer)
	if o.QueryLens = lens; r.State == nil {
		if o.KeyLens = lens; r.keys != nil {
			o.KeyLens = r.keys
		}
	}
	return o
}

// State is the state of a decoder after the tokens that it has read: a Cache of keys and values,
// or the state vectors of a recurrent network. A run changes it.
type State interface {
	// Lens returns how many tokens of each sequence have been read.
	Lens() []int
	// Select returns the state of the given sequences, which then continue independently. Beam
	// search uses it.
	Select(sequences []int) State
}

// Stateful is a Network with a custom State instead of a Cache.
type Stateful interface {
	// NewState returns the state of a decoder that has read nothing.
	NewState() State
}

// NewState returns the initial state of a network for batch sequences: the state of a Stateful
// network, or a Cache made by NewCache.
func NewState(n Network, batch int, c attn.CacheConfig) (State, error) {
	if s, ok := inside(n).(Stateful); ok {
		return s.NewState(), nil
	}
	cache, err := NewCache(n, batch, c)
	if err != nil {
		return nil, err
	}
	return cache, nil
}

// inside returns the network of a Model, or n.
func inside(n Network) Network {
	if m, ok := n.(*Model); ok {
		return m.Network
	}
	return n
}

// Caching is a Network that makes the caches of its layers itself: of layers that attend to a sliding window, or that
// keep a state in place of keys and values. NewCache asks it for them.
type Caching interface {
	// NewLayerCache returns the empty cache of a layer for batch sequences; Sizes.Layers counts the layers. c configures how
	// keys and values are stored.
	NewLayerCache(layer, batch int, c attn.CacheConfig) (LayerCache, error)
}

// Cache is the State of most decoders: what the tokens that it has read have left in its layers.
type Cache struct {
	Layers []LayerCache
	memory *memory // of the source, nil until it is read
}

// NewCache returns an empty cache for batch sequences. c configures how keys and values are
// stored. Unless c has a window, layers with a sliding window get a rolling cache, whose memory
// does not grow. NewCache returns an error if the network is not a decoder or c is invalid.
func NewCache(n Network, batch int, c attn.CacheConfig) (*Cache, error) {
	z, layer := n.Sizes(), attentionCache(n.Attention())
	switch own, ok := inside(n).(Caching); {
	case z.Decoder != nil:
		self := n.Attention()[z.Layers:] // and cross-attention, which has no cache
		z, layer = *z.Decoder, func(i, batch int, c attn.CacheConfig) (LayerCache, error) { return attentionCache(self)(2*i, batch, c) }
	case !z.Causal:
		return nil, errors.New("models: NewCache: the layers are not causal, want a decoder")
	case ok:
		layer = own.NewLayerCache
	}
	all := new(Cache)
	for i := range z.Layers {
		one, err := layer(i, batch, c)
		if err != nil {
			return nil, err
		}
		all.Layers = append(all.Layers, one)
	}
	return all, nil
}

// attentionCache makes the caches of layers.
func attentionCache(layers []*attn.MultiHead) func(layer, batch int, c attn.CacheConfig) (LayerCache, error) {
	return func(layer, batch int, c attn.CacheConfig) (LayerCache, error) {
		return keysAndValues(layers[layer].NewCache(batch, c))
	}
}

// Lens returns how many tokens of each sequence have been read.
func (c *Cache) Lens() []int { return c.Layers[0].Lens() }

// Select returns a cache with the given sequences, which share memory until they differ.
func (c *Cache) Select(sequences []int) State {
	all := &Cache{memory: c.memory.choose(sequences)}
	for _, one := range c.Layers {
		all.Layers = append(all.Layers, one.Select(sequences))
	}
	return all
}

// join returns a cache with the sequences of several caches of one decoder, which share memory until they differ.
func join(caches []*Cache) *Cache {
	all := new(Cache)
	for i, first := range caches[0].Layers {
		var others []LayerCache
		for _, c := range caches[1:] {
			others = append(others, c.Layers[i])
		}
		all.Layers = append(all.Layers, first.Join(others...))
	}
	return all
}
