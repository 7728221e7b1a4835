package prune

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// Head is one head of a model.
type Head struct {
	Layer  string `json:"layer"`  // the name in the layer's configuration
	Number int    `json:"number"` // from 0
}

// Subject is a model, together with the data on which the importance of its heads is measured.
type Subject interface {
	// Layers describes the attention layers, in the order of the model: see function Layers. Their names must differ.
	Layers() []attn.LayerHeads
	// Batches returns the number of examples in each batch of the data.
	Batches() []int
	// Run runs batch i, without dropout. Gradients flow from the loss to the
	// parameters and the gates.
	Run(t *tensor.Tape, i int, p Pass) Outcome
}

// Layers describes layers of a kind, such as *attn.MultiHead or *linear.Layer.
func Layers[L interface{ Heads() attn.LayerHeads }](layers []L) []attn.LayerHeads {
	all := make([]attn.LayerHeads, len(layers))
	for i, l := range layers {
		all[i] = l.Heads()
	}
	return all
}

// Pass has the gates and the observer for one run of a batch.
type Pass struct {
	// Gates returns the gates of a layer as attn.Options expects them: nil, [H], or [B H] for a batch of B
	// examples. A nil function means no gates.
	Gates func(layer string) *tensor.Tensor
	// Observe, if not nil, is called with the weights of each layer.
	Observe func(layer string, weights *tensor.Tensor)
	// Kept, if not nil, has what an earlier pass has kept for later passes over the same batch, which have gates in
	// Kept.Layer only. A subject may ignore it; one that begins there saves the layers before.
	Kept *Kept
}

// Kept connects passes that differ in the gates of one layer. The first pass has none, and may set Input; the others may
// begin with it.
type Kept struct {
	Layer string
	Input *tensor.Tensor // what the layer's block reads, or nil
}

// Outcome is the result of running a batch.
type Outcome struct {
	// Loss is the sum of the losses of all examples, one number, in nats. The loss of an example must not
	// depend on the other examples.
	Loss *tensor.Tensor
	// Losses returns the loss of each example, bit for bit independent of the other examples. It is called
	// before the tape's next Reset. If Losses is nil, only the sum is known.
	Losses func() []float64
	// Terms is the number of terms of the loss: the number of tokens to predict.
	Terms int
	// Queries returns for each example the number of a layer's queries that are not padding, which come
	// first. Nil means all.
	Queries func(layer string) []int
}

// Prunable is a Subject that can return a copy of itself without some heads. S is the subject's own type.
type Prunable[S any] interface {
	Subject
	// Without returns the subject without the given heads, on the same data. It does not change the
	// original subject.
	Without(heads []Head) (S, error)
}
