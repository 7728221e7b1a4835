// Package nn provides the layers around attention: linear layers, embeddings, sinusoidal positional encodings, layer
// norm, feed-forward blocks, recurrent layers (RNN, LSTM, GRU), causal convolutions and losses (cross-entropy, mean
// squared error). Package optim trains them.
//
// A layer is a struct of parameters. It keeps no state between calls; the tape, random numbers and lengths are
// arguments.
package nn

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn/tensor"
)

// Params is a sequence of parameters with their names, always in the same order. A name is the path of fields to the
// parameter, joined by dots: "encoder.0.self.q.weight".
type Params = iter.Seq2[string, *tensor.Tensor]

// Module is anything with parameters.
type Module interface {
	// Params returns the parameters. Training changes the parameters that gradients flow to.
	Params() Params
}

// Join returns the parameters of several modules one after another, each name preceded by the module's name and a
// dot. Nil modules are left out; an empty module name adds no prefix.
func Join(modules ...Named) Params {
	return func(yield func(string, *tensor.Tensor) bool) {
		for _, m := range modules {
			if m.Module == nil {
				continue
			}
			for name, p := range m.Module.Params() {
				if m.Name != "" {
					name = m.Name + "." + name
				}
				if !yield(name, p) {
					return
				}
			}
		}
	}
}

// Named is a module with a name, for Join.
type Named struct {
	Name   string
	Module Module
}

// Numbered names the modules of a list "prefix.0", "prefix.1" and so on.
func Numbered[M Module](prefix string, list []M) []Named {
	named := make([]Named, len(list))
	for i, m := range list {
		named[i] = Named{fmt.Sprintf("%s.%d", prefix, i), m}
	}
	return named
}

// Vars is a module of single parameters: pairs of a name and a tensor, which Save writes to a file. A nil tensor is an
// absent parameter, such as a bias.
type Vars []Var

// Var is a parameter with its name.
type Var struct {
	Name   string
	Tensor *tensor.Tensor
}

// Params returns the parameters that are present.
func (vs Vars) Params() Params {
	return func(yield func(string, *tensor.Tensor) bool) {
		for _, v := range vs {
			if v.Tensor != nil && !yield(v.Name, v.Tensor) {
				return
			}
		}
	}
}

// Count returns the number of trainable parameters of a module: the elements of all tensors that gradients flow to.
func Count(m Module) int {
	n := 0
	for _, p := range m.Params() {
		if p.NeedsGrad() {
			n += p.Len()
		}
	}
	return n
}

// Init returns a new affine map, as NewLinear does.
type Init func(in, out int, bias bool, rng *rand.Rand) *Linear

// Xavier draws a parameter of the given shape, [out in] for a matrix, uniformly from ±√(6/(in+out)).
//
// Source: Glorot and Bengio, "Understanding the difficulty of training deep
// feedforward neural networks", AISTATS 2010.
func Xavier(rng *rand.Rand, shape ...int) *tensor.Tensor {
	in, out := fans(shape)
	bound := float32(math.Sqrt(6 / float64(in+out)))
	return tensor.Uniform(rng, -bound, bound, shape...).Param()
}

// Torch draws a parameter of the given shape, [out in] for a matrix, uniformly from ±1/√in, as PyTorch initialises
// the weight of Linear.
func Torch(rng *rand.Rand, shape ...int) *tensor.Tensor {
	in, _ := fans(shape)
	return torchInit(rng, in, shape...)
}

// torchInit draws uniformly from ±1/√in for a parameter of any shape.
func torchInit(rng *rand.Rand, in int, shape ...int) *tensor.Tensor {
	bound := float32(1 / math.Sqrt(float64(max(in, 1))))
	return tensor.Uniform(rng, -bound, bound, shape...).Param()
}

// fans returns the number of inputs and outputs of a weight of the given shape.
func fans(shape []int) (in, out int) {
	if len(shape) == 0 {
		panic(&tensor.ShapeError{Op: "nn: Init", Arg: "shape", Got: shape, Want: "at least one axis"})
	}
	last := len(shape) - 1
	return max(shape[last], 1), max(shape[0], 1)
}

// Layer maps each vector [… D] of x independently: a norm, a feed-forward network.
type Layer interface {
	Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor
}

// Norm normalises vectors [… E] one by one: LayerNorm, RMSNorm, L2Norm, or a user-defined type.
type Norm interface {
	Module
	Layer
}
