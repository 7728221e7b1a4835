package seq2seq

import (
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// network is an encoder–decoder. Training and decoding differ only in how many
// tokens the decoder is given at a time.
type network interface {
	nn.Module
	// encode reads a batch of sources and returns the state of a decoder that
	// has written nothing yet.
	encode(t *tensor.Tape, src batch, h hooks) state
	// read reads l more tokens of each sequence, given in row-major order, and
	// returns for each a vector [B l D] that tells what follows, and the state
	// after them.
	read(t *tensor.Tape, s state, tokens []int, l int, h hooks) (*tensor.Tensor, state)
	// logits turns such vectors [… D] into the logits [… TargetVocab] of the
	// tokens that follow.
	logits(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor
	// layers returns the attention layers in the order of Config.layers.
	layers() []*attn.MultiHead
	// graph returns the network as graphs for ONNX.
	graph() graphs
}

// hooks is what somebody else has to do with a run: nothing, in the zero value.
type hooks struct {
	observe attn.WeightsFunc
	inspect attn.Inspector
	gates   func(layer string) *tensor.Tensor // as prune.Pass has it
}

// options returns how a layer attends.
func (h hooks) options(layer string, mask attn.Mask) attn.Options {
	o := attn.Options{Mask: mask, Observe: h.observe, Inspect: h.inspect, Layer: layer}
	if h.gates != nil {
		o.Gates = h.gates(layer)
	}
	return o
}

// decode reads l more tokens of each sequence, and returns the logits
// [B l TargetVocab] of all tokens that follow and the state after them.
func decode(n network, t *tensor.Tape, s state, tokens []int, l int, h hooks) (*tensor.Tensor, state) {
	x, next := n.read(t, s, tokens, l, h)
	return n.logits(t, x), next
}

// state is what a decoder has read so far. It is a value: read returns a new
// one and leaves the old one as it was.
type state interface {
	// choose returns the state of the given sequences of the batch, in that
	// order; a sequence may be chosen more than once.
	choose(t *tensor.Tape, sequences []int) state
}

// newNetwork returns a network with fresh parameters; c must be valid.
func newNetwork(c Config, rng *rand.Rand) network {
	if c.Arch == GRU {
		return newRecurrent(c, rng)
	}
	return newTransformer(c, rng)
}

// batch is a rectangle of token ids, filled up with Pad, and the length of each
// sequence.
type batch struct {
	ids  []int // row-major, len(lens)·l
	lens []int
	l    int
}

// newBatch puts sequences into a rectangle.
func newBatch(sequences [][]int) batch {
	b := batch{lens: make([]int, len(sequences))}
	for i, s := range sequences {
		b.lens[i] = len(s)
		b.l = max(b.l, len(s))
	}
	b.ids = make([]int, len(sequences)*b.l) // Pad is 0
	for i, s := range sequences {
		copy(b.ids[i*b.l:], s)
	}
	return b
}

// newEmbeddings returns tables for source and target whose vectors, multiplied
// by √D, have unit variance. The target's table is used twice, as embedding and
// as the last linear map: it maps unit states to unit logits.
//
// Source: Press and Wolf, "Using the Output Embedding to Improve Language
// Models", 2017, https://arxiv.org/abs/1608.05859; Vaswani et al. 2017,
// section 3.4.
func newEmbeddings(c Config, rng *rand.Rand) (source, target *nn.Embedding) {
	std := float32(1 / math.Sqrt(float64(c.Width)))
	return nn.NewEmbedding(c.SourceVocab, c.Width, std, rng), nn.NewEmbedding(c.TargetVocab, c.Width, std, rng)
}

// embed returns √D times the vectors of b·l tokens, [B L D].
func embed(t *tensor.Tape, e *nn.Embedding, ids []int, b, l int) *tensor.Tensor {
	return tensor.Scale(t, e.Forward(t, ids, b, l), float32(math.Sqrt(float64(e.Weight.Dim(1)))))
}
