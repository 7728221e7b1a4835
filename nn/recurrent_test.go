package nn_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

const goldenDir = "../testdata/golden/"

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
			// PyTorch's states have a first axis for the layers.
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

// awayFromZero keeps each unit of a ReLU layer always on or always off, because differences across the corner are
// meaningless.
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

// The recurrent layers have PyTorch's names for one layer in direction Forward.
func TestRecurrentTorchNames(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, m := range []nn.TorchModule{nn.NewGRU(3, 5, rng), nn.NewLSTM(3, 5, rng), nn.NewRNN(3, 5, rng)} {
		d, err := nn.TorchNames(m)
		var names []string
		for _, e := range d {
			names = append(names, e.Name)
		}
		if want := []string{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}; err != nil || !slices.Equal(names, want) {
			t.Errorf("%T: %v, error %v, want %v", m, names, err, want)
		}
	}
}
