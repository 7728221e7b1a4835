package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

const goldenDir = "../testdata/golden/"

// goldenGRU returns a layer with the parameters of the golden file.
func goldenGRU(g *tensortest.Golden, layer int) *nn.GRU {
	param := func(name string) *tensor.Tensor { return g.Tensor(fmt.Sprintf("param.%s_l%d", name, layer)).Param() }
	return &nn.GRU{
		WeightIH: param("weight_ih"), WeightHH: param("weight_hh"),
		BiasIH: param("bias_ih"), BiasHH: param("bias_hh"),
	}
}

func TestGRUGolden(t *testing.T) {
	for _, name := range []string{"gru_one_layer", "gru_with_lengths", "gru_two_layers"} {
		t.Run(name, func(t *testing.T) {
			g := tensortest.Open(t, goldenDir+name+".safetensors")
			x := g.Tensor("in.x").Param()
			layers := []*nn.GRU{goldenGRU(g, 0)}
			if g.Setting("layers") == "2" {
				layers = append(layers, goldenGRU(g, 1))
			}
			// PyTorch keeps an axis for the layers in front of the states.
			var h0 *tensor.Tensor
			if g.Has("in.h0") {
				h0 = tensor.Reshape(nil, g.Tensor("in.h0").Param(), 2, 11)
			}
			var lens []int
			if g.Has("in.lengths") {
				lens = g.Ints("in.lengths")
			}

			tape := tensortest.Tape(tensor.Train)
			out := x
			var states []*tensor.Tensor
			for _, layer := range layers {
				var last *tensor.Tensor
				out, last = layer.Forward(tape, out, h0, lens, nn.Forward)
				states = append(states, last)
			}
			state := tensor.Concat(tape, 0, states...)
			g.Check("want.out", out)
			g.Check("want.state", state)

			dstate := g.Tensor("in.dstate")
			tape.BackwardAll([]*tensor.Tensor{out, state},
				[]*tensor.Tensor{g.Tensor("in.dout"), tensor.New(dstate.Data(), state.Shape()...)})
			g.CheckGrad("grad.x", x)
			if h0 != nil {
				g.CheckGrad("grad.h0", h0)
			}
			for i, layer := range layers {
				for name, p := range layer.Params() {
					g.CheckGrad(fmt.Sprintf("grad.%s_l%d", name, i), p)
				}
			}
		})
	}
}

// Every way to call the layer, against numeric derivatives.
func TestGRUGradients(t *testing.T) {
	const b, l, d, h = 3, 5, 2, 3
	directions := map[nn.Direction]string{nn.Forward: "forward", nn.Backward: "backward"}
	for _, lens := range [][]int{nil, {2, 5, 0}} {
		for dir, direction := range directions {
			for _, use := range []string{"both", "out", "last"} {
				for _, start := range []bool{true, false} {
					if !start && use != "both" {
						continue
					}
					name := fmt.Sprintf("%s, lens %v, initial state %v, %s used", direction, lens, start, use)
					rng := rand.New(rand.NewPCG(7, 9))
					g := nn.NewGRU(d, h, rng)
					in := []*tensor.Tensor{tensor.Randn(rng, b, l, d), tensor.Randn(rng, b, h)}
					for _, p := range g.Params() {
						in = append(in, p)
					}
					tensortest.GradCheck(t, name, func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
						h0 := in[1]
						if !start {
							h0 = nil
						}
						out, last := g.Forward(t, in[0], h0, lens, dir)
						switch use {
						case "out":
							return out
						case "last":
							return last
						}
						return tensor.Concat(t, 0, tensor.Reshape(t, out, -1), tensor.Reshape(t, last, -1))
					}, in)
				}
			}
		}
	}
}

// gruRun is what comes out of a run of a layer forward and backward.
type gruRun struct{ out, last, dx, dh0 *tensor.Tensor }

func runGRU(g *nn.GRU, x, h0 *tensor.Tensor, lens []int, dir nn.Direction, dout, dlast *tensor.Tensor) gruRun {
	tape := tensortest.Tape(tensor.Train)
	x, h0 = x.Clone().Param(), h0.Clone().Param()
	out, last := g.Forward(tape, x, h0, lens, dir)
	tape.BackwardAll([]*tensor.Tensor{out, last}, []*tensor.Tensor{dout, dlast})
	return gruRun{out, last, x.Grad(), h0.Grad()}
}

// grads returns the gradients of a layer's parameters and clears them.
func grads(m nn.Module) map[string][]float32 {
	all := map[string][]float32{}
	for name, p := range m.Params() {
		all[name] = slices.Clone(p.Grad().Data())
	}
	nn.ZeroGrad(m)
	return all
}

// reversed returns x [B L D] with the steps that count in reverse order.
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

// Reading backward is reading the reversed sequence forward: bit for bit but
// for the gradients of the parameters, whose sums have another order.
func TestGRUBackwardReadsInReverse(t *testing.T) {
	const b, l, d, h = 3, 7, 5, 11
	rng := rand.New(rand.NewPCG(7, 1))
	g := nn.NewGRU(d, h, rng)
	x, h0 := tensor.Randn(rng, b, l, d), tensor.Randn(rng, b, h)
	dout, dlast := tensor.Randn(rng, b, l, h), tensor.Randn(rng, b, h)
	for _, lens := range [][]int{nil, {4, 7, 0}} {
		got := runGRU(g, x, h0, lens, nn.Backward, dout, dlast)
		gotGrads := grads(g)
		want := runGRU(g, reversed(x, lens), h0, lens, nn.Forward, reversed(dout, lens), dlast)
		name := fmt.Sprintf("lens %v: ", lens)
		tensortest.Same(t, name+"out", got.out.Data(), reversed(want.out, lens).Data())
		tensortest.Same(t, name+"last", got.last.Data(), want.last.Data())
		tensortest.Same(t, name+"gradient of x", got.dx.Data(), reversed(want.dx, lens).Data())
		tensortest.Same(t, name+"gradient of h0", got.dh0.Data(), want.dh0.Data())
		for param, w := range grads(g) {
			tensortest.Close(t, name+"gradient of "+param, gotGrads[param], widen(w), 1e-6)
		}
	}
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// Behind a sequence's length nothing has any influence, NaN included; neither
// have the other sequences of the batch.
func TestGRUPaddingAndCompany(t *testing.T) {
	const b, l, d, h = 3, 7, 5, 11
	rng := rand.New(rand.NewPCG(7, 2))
	g := nn.NewGRU(d, h, rng)
	x, h0 := tensor.Randn(rng, b, l, d), tensor.Randn(rng, b, h)
	dout, dlast := tensor.Randn(rng, b, l, h), tensor.Randn(rng, b, h)
	lens := []int{4, 7, 0}
	for _, dir := range []nn.Direction{nn.Forward, nn.Backward} {
		want := runGRU(g, x, h0, lens, dir, dout, dlast)
		wantGrads := grads(g)

		bad := x.Clone()
		for i, n := range lens {
			for j := n * d; j < l*d; j++ {
				bad.Data()[i*l*d+j] = float32(math.NaN())
			}
		}
		got := runGRU(g, bad, h0, lens, dir, dout, dlast)
		tensortest.Same(t, "out with NaN behind the lengths", got.out.Data(), want.out.Data())
		tensortest.Same(t, "last with NaN behind the lengths", got.last.Data(), want.last.Data())
		tensortest.Same(t, "gradient of x with NaN behind the lengths", got.dx.Data(), want.dx.Data())
		for name, grad := range grads(g) {
			tensortest.Same(t, "gradient of "+name+" with NaN behind the lengths", grad, wantGrads[name])
		}

		for i, n := range lens { // each alone, without padding
			alone := func(x *tensor.Tensor) *tensor.Tensor {
				x = tensor.Slice(nil, x, 0, i, i+1)
				if x.Rank() == 3 {
					x = tensor.Slice(nil, x, 1, 0, n)
				}
				return x
			}
			got := runGRU(g, alone(x), alone(h0), nil, dir, alone(dout), alone(dlast))
			grads(g)
			name := fmt.Sprintf("sequence %d of %d steps alone: ", i, n)
			tensortest.Same(t, name+"out", got.out.Data(), alone(want.out).Data())
			tensortest.Same(t, name+"last", got.last.Data(), alone(want.last).Data())
			tensortest.Same(t, name+"gradient of x", got.dx.Data(), alone(want.dx).Data())
			tensortest.Same(t, name+"gradient of h0", got.dh0.Data(), alone(want.dh0).Data())
			for j, v := range want.out.Data()[(i*l+n)*h : (i+1)*l*h] {
				if v != 0 {
					t.Errorf("%soutput %d behind the length is %v, want 0", name, j, v)
				}
			}
		}
	}
}

// A decoder takes one step at a time.
func TestGRUStepByStep(t *testing.T) {
	const b, l, d, h = 2, 7, 5, 11
	rng := rand.New(rand.NewPCG(7, 3))
	g := nn.NewGRU(d, h, rng)
	x, state := tensor.Randn(rng, b, l, d), tensor.Randn(rng, b, h)
	out, last := g.Forward(nil, x, state, nil, nn.Forward)
	for s := range l {
		var y *tensor.Tensor
		y, state = g.Forward(nil, tensor.Slice(nil, x, 1, s, s+1), state, nil, nn.Forward)
		tensortest.Same(t, fmt.Sprintf("output %d", s), y.Data(), tensor.Slice(nil, out, 1, s, s+1).Data())
		tensortest.Same(t, "state", state.Data(), y.Data())
	}
	tensortest.Same(t, "last state", state.Data(), last.Data())
}

func TestGRUOnAnyNumberOfThreads(t *testing.T) {
	const b, l, d, h = 61, 5, 67, 71
	rng := rand.New(rand.NewPCG(7, 4))
	g := nn.NewGRU(d, h, rng)
	x, h0 := tensor.Randn(rng, b, l, d), tensor.Randn(rng, b, h)
	dout, dlast := tensor.Randn(rng, b, l, h), tensor.Randn(rng, b, h)
	run := func(procs int) [][]float32 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		r := runGRU(g, x, h0, nil, nn.Forward, dout, dlast)
		all := [][]float32{r.out.Data(), r.last.Data(), r.dx.Data(), r.dh0.Data()}
		for _, p := range g.Params() {
			all = append(all, slices.Clone(p.Grad().Data()))
		}
		nn.ZeroGrad(g)
		return all
	}
	want := run(1)
	for _, procs := range []int{2, 3} {
		for i, got := range run(procs) {
			tensortest.Same(t, fmt.Sprintf("result %d on %d threads", i, procs), got, want[i])
		}
	}
}

func TestGRUOfNoSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 5))
	g := nn.NewGRU(2, 3, rng)
	h0 := tensor.Randn(rng, 5, 3)
	dlast := tensor.Randn(rng, 5, 3)
	r := runGRU(g, tensor.Zeros(5, 0, 2), h0, nil, nn.Forward, tensor.Zeros(5, 0, 3), dlast)
	tensortest.Same(t, "last", r.last.Data(), h0.Data())
	tensortest.Same(t, "gradient of h0", r.dh0.Data(), dlast.Data())
}

func BenchmarkGRU(b *testing.B) {
	rng := rand.New(rand.NewPCG(7, 6))
	g := nn.NewGRU(128, 128, rng)
	x, dout := tensor.Randn(rng, 32, 20, 128), tensor.Randn(rng, 32, 20, 128)
	b.Run("forward", func(b *testing.B) {
		tape := tensor.NewTape(tensor.Infer)
		for b.Loop() {
			tape.Reset()
			g.Forward(tape, x, nil, nil, nn.Forward)
		}
	})
	b.Run("both", func(b *testing.B) {
		tape := tensor.NewTape(tensor.Train)
		for b.Loop() {
			tape.Reset()
			out, _ := g.Forward(tape, x, nil, nil, nn.Forward)
			tape.Backward(out, dout)
		}
	})
}
