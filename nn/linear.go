package nn

import (
	"fmt"
	"math/rand/v2"

	"github.com/attn-go/attn/tensor"
)

// Linear is an affine map y = x·Wᵀ + b.
type Linear struct {
	Weight *tensor.Tensor // [Out In], PyTorch's layout
	Bias   *tensor.Tensor // [Out], or nil for none
	// Packed is an alternative to Weight, which is then nil: [Out In], for inference only. It is not a parameter.
	Packed *tensor.Packed
}

// NewLinear returns a map from in to out features, initialised as in PyTorch: weight and bias uniform in ±1/√in.
func NewLinear(in, out int, bias bool, rng *rand.Rand) *Linear {
	l := &Linear{Weight: Torch(rng, out, in)}
	if bias {
		l.Bias = torchInit(rng, in, out)
	}
	return l
}

// ZeroLinear is NewLinear with weight and bias 0, for maps whose weights are then read from a file.
func ZeroLinear(in, out int, bias bool, _ *rand.Rand) *Linear {
	l := &Linear{Weight: tensor.Zeros(out, in).Param()}
	if bias {
		l.Bias = tensor.Zeros(out).Param()
	}
	return l
}

// Forward returns x·Wᵀ + b.
//
// Shapes: x [… In], out [… Out]. Gradients flow to x and, unless the weights are packed, to Weight and Bias.
//
// It panics with a *tensor.ShapeError if the last axis of x is not In.
func (l *Linear) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	if l.packed() {
		return l.Packed.Linear(t, x, l.Bias)
	}
	return tensor.Linear(t, x, l.Weight, l.Bias)
}

func (l *Linear) packed() bool { return l.Packed != nil && l.Weight == nil }

// Linears applies several maps to the same x, and returns one result per map. If the weights of all maps are packed,
// it computes a single matrix product.
//
// Shapes: x [… In], out [… Out] for each map.
func Linears(t *tensor.Tape, x *tensor.Tensor, maps ...*Linear) []*tensor.Tensor {
	var few [4]tensor.Affine // avoids an allocation
	packed := few[:0]
	for _, l := range maps {
		if l.packed() {
			packed = append(packed, tensor.Affine{Weight: l.Packed, Bias: l.Bias})
		}
	}
	if len(packed) == len(maps) {
		return tensor.Linears(t, x, packed)
	}
	out := make([]*tensor.Tensor, len(maps))
	for i, l := range maps {
		out[i] = l.Forward(t, x)
	}
	return out
}

// Params returns "weight" and, if there is a bias, "bias".
//
// It panics with a *tensor.ValueError if the weights are packed: training or saving the bias alone would be a mistake.
func (l *Linear) Params() Params {
	if l.packed() {
		panic(&tensor.ValueError{
			Op: "nn: Linear", Arg: "weight", Got: "packed for inference",
			Want: "a parameter; models.Options{Trainable: true} loads parameters",
		})
	}
	return Vars{{"weight", l.Weight}, {"bias", l.Bias}}.Params()
}

// Embedding is a table of one vector for each token, or for each position. For learned absolute positions, use an
// Embedding as long as the longest sequence, look up positions 0, 1, 2, … and add the result to the token embedding.
// For positions that are not learned, see Sinusoids.
type Embedding struct {
	Weight *tensor.Tensor // [N D]
}

// NewEmbedding returns n vectors of the given width, normally distributed with
// standard deviation std.
func NewEmbedding(n, width int, std float32, rng *rand.Rand) *Embedding {
	w := tensor.Randn(rng, n, width)
	for i := range w.Data() {
		w.Data()[i] *= std
	}
	return &Embedding{Weight: w.Param()}
}

// Forward looks up a batch of token IDs in row-major order.
//
// Shapes:
//
//	ids  B·L numbers
//	out  [B L D]
//
// Gradients flow to Weight.
//
// It panics with a *tensor.ShapeError if an id is not in the table, or if len(ids) is not B·L.
func (e *Embedding) Forward(t *tensor.Tape, ids []int, b, l int) *tensor.Tensor {
	e.check(ids, b, l)
	return tensor.Reshape(t, tensor.Gather(t, e.Weight, ids), b, l, e.Weight.Dim(1))
}

// check panics unless ids are a batch of token IDs.
func (e *Embedding) check(ids []int, b, l int) {
	if b < 0 || l < 0 || len(ids) != b*l {
		panic(&tensor.ShapeError{Op: "nn: Embedding", Arg: "ids", What: "number of values", Got: []int{len(ids)}, Want: fmt.Sprintf("B·L=%d·%d", b, l)})
	}
	if e.Weight == nil {
		panic(&tensor.ValueError{Op: "nn: Embedding", Arg: "weight", Got: "nil", Want: "a tensor"})
	}
	for _, id := range ids {
		if n := e.Weight.Dim(0); id < 0 || id >= n {
			panic(&tensor.ShapeError{Op: "nn: Embedding", Arg: "ids", What: "id", Got: []int{id}, Want: fmt.Sprintf("0 to %d", n-1)})
		}
	}
}

// EmbeddingSum returns the sum of several embeddings, such as those of tokens and of positions, in one pass.
//
// Shapes:
//
//	ids  B·L numbers for each table
//	out  [B L D]
//
// Gradients flow to the weights.
//
// It panics with a *tensor.ShapeError under the conditions of Embedding.Forward, and if the widths differ.
func EmbeddingSum(t *tensor.Tape, tables []*Embedding, ids [][]int, b, l int) *tensor.Tensor {
	if len(tables) == 0 || len(ids) != len(tables) {
		panic(&tensor.ShapeError{
			Op: "nn: EmbeddingSum", Arg: "ids", What: "number of lists", Got: []int{len(ids)},
			Want: fmt.Sprintf("one for each of at least one table, %d", len(tables)),
		})
	}
	weights := make([]*tensor.Tensor, len(tables))
	for i, e := range tables {
		e.check(ids[i], b, l)
		weights[i] = e.Weight
	}
	y := tensor.GatherSum(t, weights, ids)
	return tensor.Reshape(t, y, b, l, y.Dim(1))
}

// Params returns "weight".
func (e *Embedding) Params() Params { return Vars{{"weight", e.Weight}}.Params() }

// LayerNorm normalises each vector along the last axis; see tensor.LayerNorm.
type LayerNorm struct {
	Weight *tensor.Tensor // [D], the gain
	Bias   *tensor.Tensor // [D], the shift
	Eps    float32
}

// NewLayerNorm returns a normalisation with gain 1, shift 0 and eps 1e-5.
func NewLayerNorm(width int) *LayerNorm {
	return &LayerNorm{
		Weight: tensor.Full(1, width).Param(),
		Bias:   tensor.Zeros(width).Param(),
		Eps:    1e-5,
	}
}

// Forward normalises x. Shapes: x and out [… D].
func (n *LayerNorm) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.LayerNorm(t, x, n.Weight, n.Bias, n.Eps)
}

// Params returns "weight" and "bias".
func (n *LayerNorm) Params() Params {
	return Vars{{"weight", n.Weight}, {"bias", n.Bias}}.Params()
}

// FeedForward is the two-layer network (MLP) that a transformer applies to each position:
// out(dropout(activation(in(x)))).
type FeedForward struct {
	In, Out    *Linear
	Activation func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor // such as tensor.ReLU
	Dropout    float32
}

// NewFeedForward returns a network of the given width with a hidden layer and ReLU, as in Vaswani et al. 2017,
// section 3.3.
func NewFeedForward(width, hidden int, dropout float32, rng *rand.Rand) *FeedForward {
	return &FeedForward{
		In:         NewLinear(width, hidden, true, rng),
		Out:        NewLinear(hidden, width, true, rng),
		Activation: tensor.ReLU,
		Dropout:    dropout,
	}
}

// Forward applies the network to each position. Dropout applies only with a tape of mode tensor.Train.
//
// Shapes: x and out [… D]. Gradients flow to x and all parameters.
//
// It panics with a *tensor.ValueError if Activation is nil.
func (f *FeedForward) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	if f.Activation == nil {
		panic(&tensor.ValueError{Op: "nn: FeedForward", Arg: "activation", Got: "nil", Want: "a function such as tensor.ReLU"})
	}
	h := f.Activation(t, f.In.Forward(t, x))
	return f.Out.Forward(t, tensor.Dropout(t, h, f.Dropout))
}

// Params returns the parameters of "in" and "out".
func (f *FeedForward) Params() Params {
	return Join(Named{"in", f.In}, Named{"out", f.Out})
}
