package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// Running backward equals running forward over the reversed sequence, bit for bit. Only the gradients of the
// parameters differ, because their sums have another order.
func TestRecurrentBackwardReadsInReverse(t *testing.T) {
	const b, l, d, h = 3, 7, 5, 11
	eachRecurrent(t, func(t *testing.T, kind string) {
		rng := rand.New(rand.NewPCG(7, 1))
		r := newRecurrent(kind, d, h, rng)
		x, start := tensor.Randn(rng, b, l, d), r.drawStates(rng, b, h)
		dout, dlast := tensor.Randn(rng, b, l, h), r.drawStates(rng, b, h)
		for _, lens := range [][]int{nil, {4, 7, 0}} {
			got := r.run(x, start, lens, nn.Backward, dout, dlast)
			gotGrads := grads(r)
			want := r.run(reversed(x, lens), start, lens, nn.Forward, reversed(dout, lens), dlast)
			want.out, want.dx = reversed(want.out, lens), reversed(want.dx, lens)
			same(t, fmt.Sprintf("lens %v: ", lens), got, want)
			for param, w := range grads(r) {
				tensortest.Close(t, fmt.Sprintf("lens %v: gradient of %s", lens, param), gotGrads[param], widen(w), 1e-6)
			}
		}
	})
}

// Neither padding, even NaN, nor the other sequences of the batch change a sequence's results.
func TestRecurrentPaddingAndCompany(t *testing.T) {
	const b, l, d, h = 3, 7, 5, 11
	lens := []int{4, 7, 0}
	eachRecurrent(t, func(t *testing.T, kind string) {
		rng := rand.New(rand.NewPCG(7, 2))
		r := newRecurrent(kind, d, h, rng)
		x, start := tensor.Randn(rng, b, l, d), r.drawStates(rng, b, h)
		dout, dlast := tensor.Randn(rng, b, l, h), r.drawStates(rng, b, h)
		for _, dir := range []nn.Direction{nn.Forward, nn.Backward} {
			want := r.run(x, start, lens, dir, dout, dlast)
			wantGrads := grads(r)

			bad := x.Clone()
			for i, n := range lens {
				for j := n * d; j < l*d; j++ {
					bad.Data()[i*l*d+j] = float32(math.NaN())
				}
			}
			same(t, "with NaN behind the lengths: ", r.run(bad, start, lens, dir, dout, dlast), want)
			for name, grad := range grads(r) {
				tensortest.Same(t, "gradient of "+name+" with NaN behind the lengths", grad, wantGrads[name])
			}

			for i, n := range lens { // each sequence alone, without padding
				alone := func(x *tensor.Tensor) *tensor.Tensor {
					x = tensor.Slice(nil, x, 0, i, i+1)
					if x.Rank() == 3 {
						x = tensor.Slice(nil, x, 1, 0, n)
					}
					return x
				}
				all := func(list []*tensor.Tensor) (one []*tensor.Tensor) {
					for _, x := range list {
						one = append(one, alone(x))
					}
					return one
				}
				got := r.run(alone(x), all(start), nil, dir, alone(dout), all(dlast))
				grads(r)
				name := fmt.Sprintf("sequence %d of %d steps alone: ", i, n)
				same(t, name, got, recurrentRun{alone(want.out), alone(want.dx), all(want.last), all(want.dstart)})
				for j, v := range want.out.Data()[(i*l+n)*h : (i+1)*l*h] {
					if v != 0 {
						t.Errorf("%soutput %d behind the length is %v, want 0", name, j, v)
					}
				}
			}
		}
	})
}

// A gradient of zero contributes nothing, even if a sequence is full of NaN.
func TestRecurrentZeroGradientCarriesNothing(t *testing.T) {
	const b, l, d, h = 2, 5, 3, 7
	eachRecurrent(t, func(t *testing.T, kind string) {
		rng := rand.New(rand.NewPCG(7, 8))
		r := newRecurrent(kind, d, h, rng)
		x, start := tensor.Randn(rng, b, l, d), r.drawStates(rng, b, h)
		dout, dlast := tensor.Randn(rng, b, l, h), r.drawStates(rng, b, h)
		for _, dy := range append([]*tensor.Tensor{dout}, dlast...) { // of the second sequence
			clear(dy.Data()[dy.Len()/2:])
		}
		want := r.run(x, start, nil, nn.Forward, dout, dlast)
		wantGrads := grads(r)
		x.Data()[l*d] = float32(math.NaN())
		got := r.run(x, start, nil, nn.Forward, dout, dlast)
		tensortest.Same(t, "gradient of x", got.dx.Data(), want.dx.Data())
		for v := range start {
			tensortest.Same(t, "gradient of a first state", got.dstart[v].Data(), want.dstart[v].Data())
		}
		for name, grad := range grads(r) {
			tensortest.Same(t, "gradient of "+name, grad, wantGrads[name])
		}
	})
}

// A tape may run backward several times, from different results.
func TestRecurrentBackwardTwice(t *testing.T) {
	const b, l, d, h = 2, 5, 3, 7
	eachRecurrent(t, func(t *testing.T, kind string) {
		rng := rand.New(rand.NewPCG(7, 10))
		r := newRecurrent(kind, d, h, rng)
		x, start := tensor.Randn(rng, b, l, d).Param(), r.drawStates(rng, b, h)
		dout, dlast := tensor.Randn(rng, b, l, h), r.drawStates(rng, b, h)
		tape := tensortest.Tape(tensor.Train)
		y := r.forward(tape, x, start, nil, nn.Forward)
		tape.Backward(y[0], dout)
		want, wantX := grads(r), x.Grad().Clone()
		x.ZeroGrad()
		tape.BackwardAll(y[1:], dlast)
		grads(r)
		x.ZeroGrad()
		tape.Backward(y[0], dout)
		tensortest.Same(t, "gradient of x", x.Grad().Data(), wantX.Data())
		for name, grad := range grads(r) {
			tensortest.Same(t, "gradient of "+name, grad, want[name])
		}
	})
}

// A decoder takes one step at a time.
func TestRecurrentStepByStep(t *testing.T) {
	const b, l, d, h = 2, 7, 5, 11
	eachRecurrent(t, func(t *testing.T, kind string) {
		rng := rand.New(rand.NewPCG(7, 3))
		r := newRecurrent(kind, d, h, rng)
		x, state := tensor.Randn(rng, b, l, d), r.drawStates(rng, b, h)
		want := r.forward(nil, x, state, nil, nn.Forward)
		for s := range l {
			y := r.forward(nil, tensor.Slice(nil, x, 1, s, s+1), state, nil, nn.Forward)
			state = y[1:]
			tensortest.Same(t, fmt.Sprintf("output %d", s), y[0].Data(), tensor.Slice(nil, want[0], 1, s, s+1).Data())
			tensortest.Same(t, "state", state[0].Data(), y[0].Data())
		}
		for v := range state {
			tensortest.Same(t, fmt.Sprintf("last state %d", v), state[v].Data(), want[1+v].Data())
		}
	})
}

func TestRecurrentOnAnyNumberOfThreads(t *testing.T) {
	const b, l, d, h = 61, 5, 67, 71
	eachRecurrent(t, func(t *testing.T, kind string) {
		rng := rand.New(rand.NewPCG(7, 4))
		r := newRecurrent(kind, d, h, rng)
		x, start := tensor.Randn(rng, b, l, d), r.drawStates(rng, b, h)
		dout, dlast := tensor.Randn(rng, b, l, h), r.drawStates(rng, b, h)
		run := func(procs int) (recurrentRun, map[string][]float32) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			return r.run(x, start, nil, nn.Forward, dout, dlast), grads(r)
		}
		want, wantGrads := run(1)
		for _, procs := range []int{2, 3} {
			got, gotGrads := run(procs)
			same(t, fmt.Sprintf("on %d threads: ", procs), got, want)
			for name, w := range wantGrads {
				tensortest.Same(t, fmt.Sprintf("gradient of %s on %d threads", name, procs), gotGrads[name], w)
			}
		}
	})
}

func TestRecurrentOfNoSteps(t *testing.T) {
	eachRecurrent(t, func(t *testing.T, kind string) {
		rng := rand.New(rand.NewPCG(7, 5))
		r := newRecurrent(kind, 2, 3, rng)
		start, dlast := r.drawStates(rng, 5, 3), r.drawStates(rng, 5, 3)
		got := r.run(tensor.Zeros(5, 0, 2), start, nil, nn.Forward, tensor.Zeros(5, 0, 3), dlast)
		for v := range start {
			tensortest.Same(t, "last", got.last[v].Data(), start[v].Data())
			tensortest.Same(t, "gradient of the first state", got.dstart[v].Data(), dlast[v].Data())
		}
	})
}

// A layer without biases equals a layer whose biases are zero.
func TestRecurrentWithoutBiases(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	x, dout := tensor.Randn(rng, 2, 5, 3), tensor.Randn(rng, 2, 5, 7)
	m := nn.NewLSTM(3, 7, rng)
	run := func() (*tensor.Tensor, []float32) {
		tape := tensortest.Tape(tensor.Train)
		out, _, _ := m.Forward(tape, x, nil, nil, nil, nn.Forward)
		tape.Backward(out, dout)
		defer optim.ZeroGrad(m)
		return out, slices.Clone(m.WeightHH.Grad().Data())
	}
	clear(m.BiasIH.Data())
	clear(m.BiasHH.Data())
	want, wantGrad := run()
	m.BiasIH, m.BiasHH = nil, nil
	got, gotGrad := run()
	tensortest.Same(t, "out", got.Data(), want.Data())
	tensortest.Same(t, "gradient", gotGrad, wantGrad)
	for name := range m.Params() {
		if strings.HasPrefix(name, "bias") {
			t.Errorf("a parameter %s that is absent", name)
		}
	}
}
