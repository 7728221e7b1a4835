package models

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Layer maps each vector of a sequence independently: a feed-forward network, a norm.
type Layer = nn.Layer

// block is attention and a feed-forward network with their residual connections: one layer of a
// transformer. Most models normalise before each branch, and some also after it. Norms that are
// nil are left out:
//
//	x ← x + selfAfter(self(selfNorm(x)))
//	x ← x + cross(crossNorm(x), source)    in the decoder of an encoder–decoder
//	x ← x + ffAfter(ff(ffNorm(x)))         unless ff is nil
//
// In a parallel block both parts read the input:
//
//	x ← x + self(selfNorm(x)) + ff(ffNorm(x))
//
// The transformer of 2017 and BERT normalise each sum (postNorm):
//
//	x ← selfNorm(x + self(x))
//	x ← crossNorm(x + cross(x, source))
//	x ← ffNorm(x + ff(x))
type block struct {
	self, cross                 *attn.MultiHead
	from                        *block  // an earlier one, whose keys and values self attends to; nil for its own
	lends                       bool    // keys and values to later blocks
	mixer                       mixer   // in place of self; their outputs are added if the block has both
	selfFactor                  float32 // of the output of self beside a mixer
	ff                          Layer
	selfNorm, crossNorm, ffNorm Layer
	selfAfter, ffAfter          Layer
	postNorm, parallel          bool
	dropout                     float32      // of each branch, in training
	window                      int          // keys that a query attends to, 0 for all
	options                     attn.Options // masks, biases, soft-cap; a Run adds to them
	// end, if not nil, changes the output of the block after forward.
	end func(t *tensor.Tape, x *tensor.Tensor, r *Run) *tensor.Tensor
	// changes, if not nil, returns Options.Changes for sequences of at most l tokens.
	changes func(t *tensor.Tape, l int) []attn.ScoreChange
}

// forward returns the next hidden states, and their norm by after unless it is nil. number is the index of the block.
// h is the norm of x by input, or nil. lens are the lengths of the sequences, nil if they are equal. m is the source,
// for the decoder of an encoder–decoder. Shapes: x, h and out [B L D].
func (b *block) forward(
	t *tensor.Tape, x, h *tensor.Tensor, r *Run, number int, lens []int, m *memory, after Layer,
) (out, normed *tensor.Tensor) {
	if h == nil {
		h = optional(t, b.input(), x)
	}
	if b.ff == nil {
		return b.add(t, x, b.attend(t, h, r, number, lens), nil, after)
	}
	if b.parallel {
		sum := tensor.Add(t, b.attend(t, h, r, number, lens), edited(t, r.now.FeedForward, b.ff.Forward(t, b.ffNorm.Forward(t, edited(t, r.now.Read, x)))))
		return b.add(t, x, sum, nil, after)
	}
	next := b.ffNorm
	if b.cross != nil {
		next = b.crossNorm
	}
	x, h = b.add(t, x, optional(t, b.selfAfter, b.attend(t, h, r, number, lens)), b.selfNorm, next)
	if b.cross != nil {
		o := r.options(attn.Options{}, b.cross.Config().Name, lens)
		o.KeyLens = m.lens
		x, h = b.add(t, x, b.cross.Query(t, h, m.kv[number], o).Out, b.crossNorm, b.ffNorm)
	}
	if r.now.Read != nil {
		if h = edited(t, r.now.Read, x); !b.postNorm {
			h = optional(t, b.ffNorm, h)
		}
	}
	return b.add(t, x, edited(t, r.now.FeedForward, optional(t, b.ffAfter, b.ff.Forward(t, h))), b.ffNorm, after)
}

// input returns the norm of the block's input, or nil.
func (b *block) input() Layer {
	if b.postNorm {
		return nil
	}
	return b.selfNorm
}

// attend returns what the tokens of h get from each other: self-attention, or what mixer computes.
func (b *block) attend(t *tensor.Tape, h *tensor.Tensor, r *Run, number int, lens []int) *tensor.Tensor {
	var kept LayerCache
	if r.State != nil {
		kept = r.State.(*Cache).Layers[number]
	}
	r.wantMasks(b.mixer)
	if b.mixer == nil {
		return b.attendSelf(t, h, r, kept, lens)
	}
	if b.self == nil {
		return b.mixer.mix(t, h, r, kept, lens)
	}
	both := caches{nil, nil}
	if kept != nil {
		both = kept.(caches)
	}
	return tensor.Add(t, b.mixer.mix(t, h, r, both[1], lens), scaled(t, b.attendSelf(t, h, r, both[0], lens), b.selfFactor))
}

// attendSelf returns self-attention of h.
func (b *block) attendSelf(t *tensor.Tape, h *tensor.Tensor, r *Run, kept LayerCache, lens []int) *tensor.Tensor {
	o := r.options(b.options, b.self.Config().Name, lens)
	if b.changes != nil {
		o.Changes = b.changes(t, h.Dim(1))
	}
	switch {
	case b.from != nil:
		return b.self.Query(t, h, r.shared[b.from], o).Out
	case kept != nil:
		cache := kept.(CacheOf[*attn.Cache]).Cache
		if b.lends {
			r.shared[b] = cache.KV()
		}
		return b.self.Extend(t, h, cache, o).Out
	case b.lends:
		own := t
		if !t.Recording() { // run releases what a block makes
			own = lasting(t)
		}
		r.shared[b] = b.self.Project(own, h, h)
		return b.self.Query(t, h, r.shared[b], o).Out
	}
	return b.self.Forward(t, h, h, h, o).Out
}

// add returns x plus the output y of a branch, normalised by own if norms follow the branches, and the input of the
// next branch, normalised by next unless it is nil.
func (b *block) add(t *tensor.Tape, x, y *tensor.Tensor, own, next Layer) (sum, h *tensor.Tensor) {
	switch {
	case b.postNorm:
		_, h = nn.AddNorm(t, own, x, y, b.dropout)
		return h, h
	case next == nil:
		sum = tensor.AddDropout(t, x, y, b.dropout)
		return sum, sum
	}
	return nn.AddNorm(t, next, x, y, b.dropout)
}

// optional applies a layer unless it is nil.
func optional(t *tensor.Tape, l Layer, x *tensor.Tensor) *tensor.Tensor {
	if l == nil {
		return x
	}
	return l.Forward(t, x)
}

// GatedFeedForward is Down(Activation(Gate(x))·Up(x)): SwiGLU with SiLU, or GeGLU with GELU.
//
// Source: Shazeer, "GLU Variants Improve Transformer", 2020, https://arxiv.org/abs/2002.05202.
type GatedFeedForward struct {
	Gate, Up, Down *nn.Linear
	Activation     Activation
}

// newGated makes the maps of gates, of what they gate, and of their product, which have the given names.
func newGated(b *Builder, linear newMap, gate, up, down string, width, hidden int, act Activation) *GatedFeedForward {
	return &GatedFeedForward{linear(b, gate, width, hidden), linear(b, up, width, hidden), linear(b, down, hidden, width), act}
}

// Forward applies the network to each position. Shapes: x and out [… D].
func (f *GatedFeedForward) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	y := nn.Linears(t, x, f.Gate, f.Up)
	return f.Down.Forward(t, tensor.GateOver(t, f.Activation, y[0], y[1]))
}
