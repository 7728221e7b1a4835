package prune

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
)

// Head is one head of a model.
type Head struct {
	Layer  string `json:"layer"`  // its name in the layer's configuration
	Number int    `json:"number"` // from 0
}

// Subject is a model and data on which the importance of its heads is measured.
type Subject interface {
	// Layers returns the attention layers, in the order of the model. The names
	// in their configurations differ.
	Layers() []*attn.MultiHead
	// Batches returns the number of examples in each of the batches into which
	// the data are cut.
	Batches() []int
	// Run runs batch i, without dropout. Gradients flow from the loss to the
	// parameters and the gates.
	Run(t *tensor.Tape, i int, p Pass) Outcome
}

// Pass says what a Subject does besides running.
type Pass struct {
	// Gates returns the gates of a layer as attn.Options takes them: nil, [H],
	// or [B H] for a batch of B examples. Nil means no gates at all.
	Gates func(layer string) *tensor.Tensor
	// Observe, if not nil, is told of the weights of each layer.
	Observe attn.WeightsFunc
}

// Outcome is what came of a batch.
type Outcome struct {
	// Loss is the sum of the losses of all examples, one number, in nats. That
	// of an example does not depend on the others.
	Loss *tensor.Tensor
	// Losses returns the loss of each example, which does not depend on the others by
	// a bit. It is called before the tape's next Reset. Nil means that only their sum is
	// known.
	Losses func() []float64
	// Terms is the number of terms of the loss: of the tokens that are to be
	// predicted.
	Terms int
	// Queries returns for each example how many of a layer's queries are no
	// padding; they come first. Nil means all.
	Queries func(layer string) []int
}

// Prunable is a Subject of which heads can be taken away. S is its own type.
type Prunable[S any] interface {
	Subject
	// Without returns the subject without the given heads, on the same data.
	// It leaves the subject as it is.
	Without(heads []Head) (S, error)
}
