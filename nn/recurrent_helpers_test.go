package nn_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// recurrent is any of the recurrent layers. Its state is one tensor or two.
type recurrent struct {
	nn.Module
	states  []string // names
	forward func(t *tensor.Tape, x *tensor.Tensor, start []*tensor.Tensor, lens []int, dir nn.Direction) []*tensor.Tensor
}

// recurrentKinds are the names that newRecurrent accepts.
var recurrentKinds = []string{"gru", "lstm", "rnn", "rnn_relu"}

// newRecurrent returns a layer whose forward returns out and the last states.
func newRecurrent(kind string, in, hidden int, rng *rand.Rand) *recurrent {
	one := func(m nn.Module, f func(t *tensor.Tape, x, h0 *tensor.Tensor, lens []int, dir nn.Direction) (out, last *tensor.Tensor)) *recurrent {
		return &recurrent{m, []string{"h0"}, func(t *tensor.Tape, x *tensor.Tensor, start []*tensor.Tensor, lens []int, dir nn.Direction) []*tensor.Tensor {
			out, last := f(t, x, start[0], lens, dir)
			return []*tensor.Tensor{out, last}
		}}
	}
	switch kind {
	case "gru":
		g := nn.NewGRU(in, hidden, rng)
		return one(g, g.Forward)
	case "lstm":
		m := nn.NewLSTM(in, hidden, rng)
		return &recurrent{m, []string{"h0", "c0"}, func(t *tensor.Tape, x *tensor.Tensor, start []*tensor.Tensor, lens []int, dir nn.Direction) []*tensor.Tensor {
			out, h, c := m.Forward(t, x, start[0], start[1], lens, dir)
			return []*tensor.Tensor{out, h, c}
		}}
	}
	r := nn.NewRNN(in, hidden, rng)
	if kind == "rnn_relu" {
		r.Activation = nn.ReLU
	}
	return one(r, r.Forward)
}

// eachRecurrent runs a test for each kind of layer.
func eachRecurrent(t *testing.T, test func(t *testing.T, kind string)) {
	for _, kind := range recurrentKinds {
		t.Run(kind, func(t *testing.T) { test(t, kind) })
	}
}

// drawStates returns random states for each of the layer's.
func (r *recurrent) drawStates(rng *rand.Rand, b, h int) []*tensor.Tensor {
	var list []*tensor.Tensor
	for range r.states {
		list = append(list, tensor.Randn(rng, b, h))
	}
	return list
}

// recurrentRun is the result of a forward and backward run of a layer: out and the last states, and the gradients of
// x and of the initial states.
type recurrentRun struct {
	out, dx      *tensor.Tensor
	last, dstart []*tensor.Tensor
}

// each calls f with every result and its name.
func (r recurrentRun) each(f func(name string, x *tensor.Tensor)) {
	f("out", r.out)
	f("gradient of x", r.dx)
	for v := range r.last {
		f(fmt.Sprintf("last state %d", v), r.last[v])
		f(fmt.Sprintf("gradient of first state %d", v), r.dstart[v])
	}
}

func (r *recurrent) run(x *tensor.Tensor, start []*tensor.Tensor, lens []int, dir nn.Direction, dout *tensor.Tensor, dlast []*tensor.Tensor) recurrentRun {
	tape := tensortest.Tape(tensor.Train)
	x = x.Clone().Param()
	leaves := make([]*tensor.Tensor, len(start))
	for v, s := range start {
		leaves[v] = s.Clone().Param()
	}
	y := r.forward(tape, x, leaves, lens, dir)
	tape.BackwardAll(y, append([]*tensor.Tensor{dout}, dlast...))
	run := recurrentRun{out: y[0], dx: x.Grad(), last: y[1:]}
	for _, s := range leaves {
		run.dstart = append(run.dstart, s.Grad())
	}
	return run
}

// grads returns the gradients of a layer's parameters and clears them.
func grads(m nn.Module) map[string][]float32 {
	all := map[string][]float32{}
	for name, p := range m.Params() {
		all[name] = slices.Clone(p.Grad().Data())
	}
	optim.ZeroGrad(m)
	return all
}

// reversed returns x [B L D] with the steps of each sequence in reverse order and padding unchanged.
func reversed(x *tensor.Tensor, lens []int) *tensor.Tensor {
	y := x.Clone()
	b, l, d := x.Dim(0), x.Dim(1), x.Dim(2)
	for i := range b {
		n := l
		if lens != nil {
			n = lens[i]
		}
		for pos := range n {
			copy(y.Data()[(i*l+pos)*d:][:d], x.Data()[(i*l+n-1-pos)*d:][:d])
		}
	}
	return y
}

// same fails the test unless two runs have the same bits.
func same(t *testing.T, what string, got, want recurrentRun) {
	t.Helper()
	all := map[string][]float32{}
	want.each(func(name string, x *tensor.Tensor) { all[name] = x.Data() })
	got.each(func(name string, x *tensor.Tensor) { tensortest.Same(t, what+name, x.Data(), all[name]) })
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
