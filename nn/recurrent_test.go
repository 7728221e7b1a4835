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
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

const goldenDir = "../testdata/golden/"

// recurrent is any of the recurrent layers. Its state is one tensor or two.
type recurrent struct {
	nn.Module
	states  []string // names
	forward func(t *tensor.Tape, x *tensor.Tensor, start []*tensor.Tensor, lens []int, dir nn.Direction) []*tensor.Tensor
}

// recurrentKinds are the names of newRecurrent.
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

func TestRecurrentGolden(t *testing.T) {
	for _, name := range []string{
		"gru_one_layer", "gru_with_lengths", "gru_two_layers",
		"lstm_one_layer", "lstm_with_lengths", "lstm_two_layers",
		"rnn_one_layer", "rnn_with_lengths", "rnn_two_layers", "rnn_relu_one_layer",
	} {
		t.Run(name, func(t *testing.T) {
			g := tensortest.Open(t, goldenDir+name+".safetensors")
			kind := name[:strings.LastIndex(name, "_")]
			kind = kind[:strings.LastIndex(kind, "_")]
			var layers []*recurrent
			for i := range int(g.Number("layers")) {
				shape := g.Shape(fmt.Sprintf("param.weight_ih_l%d", i))
				layer := newRecurrent(kind, shape[1], 11, rand.New(rand.NewPCG(1, 1)))
				for param, p := range layer.Params() {
					copy(p.Data(), g.Tensor(fmt.Sprintf("param.%s_l%d", param, i)).Data())
				}
				layers = append(layers, layer)
			}
			// PyTorch keeps an axis for the layers in front of the states.
			start := map[string]*tensor.Tensor{}
			for _, state := range layers[0].states {
				if g.Has("in." + state) {
					start[state] = g.Tensor("in." + state).Param()
				}
			}
			var lens []int
			if g.Has("in.lengths") {
				lens = g.Ints("in.lengths")
			}

			tape := tensortest.Tape(tensor.Train)
			x := g.Tensor("in.x").Param()
			out, last := x, make([][]*tensor.Tensor, len(layers[0].states))
			for i, layer := range layers {
				first := make([]*tensor.Tensor, len(layer.states))
				for v, state := range layer.states {
					if start[state] != nil {
						first[v] = tensor.Index(tape, start[state], i)
					}
				}
				y := layer.forward(tape, out, first, lens, nn.Forward)
				out = y[0]
				for v := range last {
					last[v] = append(last[v], y[1+v])
				}
			}
			g.Check("want.out", out)
			outs, douts := []*tensor.Tensor{out}, []*tensor.Tensor{g.Tensor("in.dout")}
			for v, name := range []string{"state", "memory"}[:len(last)] {
				all := tensor.Concat(tape, 0, last[v]...)
				g.Check("want."+name, all)
				outs = append(outs, all)
				douts = append(douts, tensor.Reshape(nil, g.Tensor("in.d"+name), all.Shape()...))
			}
			tape.BackwardAll(outs, douts)
			g.CheckGrad("grad.x", x)
			for name, s := range start {
				g.CheckGrad("grad."+name, s)
			}
			for i, layer := range layers {
				for name, p := range layer.Params() {
					g.CheckGrad(fmt.Sprintf("grad.%s_l%d", name, i), p)
				}
			}
		})
	}
}

// Every way to call a layer, against numeric derivatives.
func TestRecurrentGradients(t *testing.T) {
	const b, l, d, h = 3, 5, 2, 3
	directions := map[nn.Direction]string{nn.Forward: "forward", nn.Backward: "backward"}
	eachRecurrent(t, func(t *testing.T, kind string) {
		for _, lens := range [][]int{nil, {2, 5, 0}} {
			for dir, direction := range directions {
				for _, use := range []string{"all", "out", "last", "memory"} {
					for _, start := range []bool{true, false} {
						if !start && use != "all" {
							continue
						}
						name := fmt.Sprintf("%s, lens %v, initial state %v, %s used", direction, lens, start, use)
						rng := rand.New(rand.NewPCG(7, 9))
						r := newRecurrent(kind, d, h, rng)
						if kind == "rnn_relu" {
							awayFromZero(r)
						}
						in := append([]*tensor.Tensor{tensor.Randn(rng, b, l, d)}, r.drawStates(rng, b, h)...)
						if use == "memory" && len(r.states) == 1 {
							continue
						}
						for _, p := range r.Params() {
							in = append(in, p)
						}
						tensortest.GradCheck(t, name, func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
							h0 := make([]*tensor.Tensor, len(r.states))
							if start {
								copy(h0, in[1:])
							}
							y := r.forward(t, in[0], h0, lens, dir)
							switch use {
							case "out":
								return y[0]
							case "last":
								return y[1]
							case "memory":
								return y[2]
							}
							for i := range y {
								y[i] = tensor.Reshape(t, y[i], -1)
							}
							return tensor.Concat(t, 0, y...)
						}, in)
					}
				}
			}
		}
	})
}

// awayFromZero makes the units of a layer with ReLU either on or off throughout,
// because differences across the corner tell nothing.
func awayFromZero(r *recurrent) {
	for name, p := range r.Params() {
		for i := range p.Data() {
			p.Data()[i] *= 0.25
			if name == "bias_ih" {
				p.Data()[i] = float32(4 - i%2*8)
			}
		}
	}
}

// recurrentRun is what comes out of a run of a layer forward and backward: out and
// the last states, and the gradients of x and of the first states.
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

// Behind a sequence's length nothing has any influence, NaN included; neither
// have the other sequences of the batch.
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

			for i, n := range lens { // each alone, without padding
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

// A gradient of zero carries nothing, even if a sequence is full of NaN.
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

// A tape may run backward more than once, each time from other results.
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

// A layer without biases is one whose biases are zero.
func TestRecurrentWithoutBiases(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	x, dout := tensor.Randn(rng, 2, 5, 3), tensor.Randn(rng, 2, 5, 7)
	m := nn.NewLSTM(3, 7, rng)
	run := func() (*tensor.Tensor, []float32) {
		tape := tensortest.Tape(tensor.Train)
		out, _, _ := m.Forward(tape, x, nil, nil, nil, nn.Forward)
		tape.Backward(out, dout)
		defer nn.ZeroGrad(m)
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

func TestRecurrentErrors(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 12))
	z := tensor.Zeros
	gru := func(spoil func(g *nn.GRU)) func() {
		g := nn.NewGRU(3, 7, rng)
		spoil(g)
		return func() { g.Forward(nil, z(2, 5, 3), nil, nil, nn.Forward) }
	}
	lstm := func(x, h0, c0 *tensor.Tensor, lens []int) func() {
		return func() { nn.NewLSTM(3, 7, rng).Forward(nil, x, h0, c0, lens, nn.Forward) }
	}
	for _, c := range []struct {
		f    func()
		want string
	}{
		{lstm(z(2, 5, 4), nil, nil, nil), "nn: LSTM: x has shape [2 5 4], want [B L D=3]"},
		{lstm(z(5, 3), nil, nil, nil), "nn: LSTM: x has shape [5 3], want [B L D=3]"},
		{lstm(z(2, 5, 3), z(2, 8), nil, nil), "nn: LSTM: h0 has shape [2 8], want [B=2 H=7]"},
		{lstm(z(2, 5, 3), z(2, 7), z(1, 2, 7), nil), "nn: LSTM: c0 has shape [1 2 7], want [B=2 H=7]"},
		{lstm(z(2, 5, 3), nil, nil, []int{5}), "nn: LSTM: lens has shape [1], want [B=2]"},
		{lstm(z(2, 5, 3), nil, nil, []int{5, 6}), "nn: LSTM: lens has lengths [5 6], want 0 to L=5"},
		{gru(func(g *nn.GRU) { g.WeightHH = z(28, 7) }), "nn: GRU: weight_hh has shape [28 7], want [3·H H]"},
		{gru(func(g *nn.GRU) { g.WeightIH = z(7, 3) }), "nn: GRU: weight_ih has shape [7 3], want [21 D] for H=7"},
		{gru(func(g *nn.GRU) { g.BiasHH = z(7) }), "nn: GRU: bias_hh has shape [7], want [21] for H=7"},
		{func() {
			r := nn.NewRNN(3, 7, rng)
			r.Activation = 2
			r.Forward(nil, z(2, 5, 3), nil, nil, nn.Forward)
		}, "nn: RNN: Activation has value [2], want Tanh or ReLU"},
	} {
		if err := tensor.Catch(c.f); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	for want, f := range map[string]func(){
		"nn: LSTM: x ":       lstm(nil, nil, nil, nil),
		"nn: LSTM: weight_":  func() { new(nn.LSTM).Forward(nil, z(2, 5, 3), nil, nil, nil, nn.Forward) },
		"nn: RNN: weight_ih": func() { (&nn.RNN{WeightHH: z(7, 7)}).Forward(nil, z(2, 5, 3), nil, nil, nn.Forward) },
	} {
		if err := tensor.Catch(f); !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("error %v, want one that begins with %s", err, want)
		}
	}
}

func BenchmarkRecurrent(b *testing.B) {
	for _, kind := range recurrentKinds {
		rng := rand.New(rand.NewPCG(7, 6))
		r := newRecurrent(kind, 128, 128, rng)
		x, dout := tensor.Randn(rng, 32, 20, 128), tensor.Randn(rng, 32, 20, 128)
		start := make([]*tensor.Tensor, len(r.states))
		b.Run(kind+"/forward", func(b *testing.B) {
			tape := tensor.NewTape(tensor.Infer)
			for b.Loop() {
				tape.Reset()
				r.forward(tape, x, start, nil, nn.Forward)
			}
		})
		b.Run(kind+"/both", func(b *testing.B) {
			tape := tensor.NewTape(tensor.Train)
			for b.Loop() {
				tape.Reset()
				tape.Backward(r.forward(tape, x, start, nil, nn.Forward)[0], dout)
			}
		})
	}
}
