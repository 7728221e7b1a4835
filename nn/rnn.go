package nn

import (
	"math/rand/v2"

	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// RNN is one layer of plain recurrent units. For each step, with input x and previous state h,
//
//	h' = f(W_ih x + b_ih + W_hh h + b_hh),   f = tanh or ReLU
//
// Weights and biases have the layout of PyTorch's RNN.
//
// Source: Elman, "Finding Structure in Time", 1990, Cognitive Science 14.
type RNN struct {
	CellWeights
	Activation Activation // f; the zero value is Tanh
}

// Activation is the nonlinearity of an RNN.
type Activation uint8

// The nonlinearities of an RNN.
const (
	Tanh Activation = iota
	ReLU            // max(0, x); its derivative at 0 is 0
)

// NewRNN returns a layer with tanh from in features to hidden units, initialised as in PyTorch: all parameters
// uniform in ±1/√hidden.
func NewRNN(in, hidden int, rng *rand.Rand) *RNN {
	return &RNN{CellWeights: newCellWeights(in, hidden, 1, rng)}
}

// Forward runs the layer over a batch of sequences. Arguments, shapes, gradients and panics are as in [GRU.Forward]. It
// also panics with a *tensor.ShapeError if Activation is neither Tanh nor ReLU.
func (r *RNN) Forward(t *tensor.Tape, x, h0 *tensor.Tensor, lens []int, dir Direction) (out, last *tensor.Tensor) {
	if r.Activation > ReLU {
		panic(&tensor.ShapeError{Op: "nn: RNN", Arg: "Activation", What: "value", Got: []int{int(r.Activation)}, Want: "Tanh or ReLU"})
	}
	c := cell{op: "nn: RNN", gates: 1, states: 1, forward: r.Activation.forward, backward: r.Activation.backward}
	out, states := r.unroll(t, c, x, []Var{{"h0", h0}}, lens, dir)
	return out, states[0]
}

// forward keeps nothing: both derivatives can be computed from the result.
func (a Activation) forward(s cellStep) {
	simd.Add(s.after, s.in, s.rec)
	if a == ReLU {
		simd.ReLU(s.after, s.after)
	} else {
		simd.Tanh(s.after, s.after)
	}
}

func (a Activation) backward(s cellStep, d, drec, din []float32) {
	for j, y := range s.after {
		switch {
		case a == Tanh:
			drec[j] = times(d[j], 1-float32(y*y))
		case y > 0:
			drec[j] = d[j]
		default:
			drec[j] = 0
		}
	}
	copy(din, drec)
	clear(d)
}
