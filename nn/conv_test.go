package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

func TestCausalConvGolden(t *testing.T) {
	for _, name := range []string{"conv_plain", "conv_documents", "conv_short"} {
		t.Run(name, func(t *testing.T) {
			g := tensortest.Open(t, goldenDir+name+".safetensors")
			tape := tensortest.Tape(tensor.Train)
			c := &nn.CausalConv{Weight: tensor.Transpose(tape, g.Leaf("param.weight"), 2, 1, 0)} // in the order of PyTorch
			if g.Has("param.bias") {
				c.Bias = g.Leaf("param.bias")
			}
			if g.Setting("silu") == "true" {
				c.Activation = tensor.SiLU
			}
			var first *tensor.Tensor
			if g.Has("in.first") {
				first = g.Leaf("in.first")
			}
			var ends [][]int
			for i := 0; g.Has(fmt.Sprintf("in.ends%d", i)); i++ {
				ends = append(ends, g.Ints(fmt.Sprintf("in.ends%d", i)))
			}
			out, last := c.Forward(tape, g.Leaf("in.x"), first, ends)
			g.Check("want.out", out)
			g.Check("want.last", last)
			tape.BackwardAll([]*tensor.Tensor{out, last}, []*tensor.Tensor{g.Tensor("in.dout"), g.Tensor("in.dlast")})
			g.CheckGrads()
			g.Done()
		})
	}
}

func TestCausalConvGradients(t *testing.T) {
	rng := rand.New(rand.NewPCG(54, 1))
	for _, n := range []int{1, 2, 4} {
		for _, ends := range [][][]int{nil, {{2, 5}}, {{5}, {1, 4}, {0}}} {
			for what := range 2 { // the output, the last state
				c := nn.NewCausalConv(3, n, true, rng)
				c.Activation = tensor.SiLU
				in := []*tensor.Tensor{tensor.Randn(rng, 3, 5, 3), tensor.Randn(rng, 3, n-1, 3), c.Weight, c.Bias}
				if what == 1 {
					in = in[:2]
				}
				tensortest.GradCheck(t, fmt.Sprintf("width %d, ends %v, result %d", n, ends, what), func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
					out, last := c.Forward(t, in[0], in[1], ends)
					return []*tensor.Tensor{out, last}[what]
				}, in)
			}
		}
	}
}

// convRun is what a convolution computes from x, first and the gradients of both results.
type convRun struct{ out, last, dx, dfirst, dw, db *tensor.Tensor }

func runConv(c *nn.CausalConv, x, first *tensor.Tensor, ends [][]int, dout, dlast *tensor.Tensor) convRun {
	x, first = x.Clone().Param(), first.Clone().Param()
	optim.ZeroGrad(c)
	tape := tensortest.Tape(tensor.Train)
	out, last := c.Forward(tape, x, first, ends)
	tape.BackwardAll([]*tensor.Tensor{out, last}, []*tensor.Tensor{dout, dlast})
	return convRun{out, last, x.Grad(), first.Grad(), c.Weight.Grad().Clone(), c.Bias.Grad().Clone()}
}

func sameConv(t *testing.T, what string, got, want convRun) {
	t.Helper()
	for i, name := range []string{"out", "last", "gradient of x", "gradient of first", "gradient of the weight", "gradient of the bias"} {
		pair := func(r convRun) *tensor.Tensor { return []*tensor.Tensor{r.out, r.last, r.dx, r.dfirst, r.dw, r.db}[i] }
		tensortest.Same(t, what+": "+name, pair(got).Data(), pair(want).Data())
	}
}

// Long rows are cut into pieces of channels, and short ones are not.
var convSizes = []int{5, 2100}

// Token by token, in pieces and all at once a convolution computes the same bits, with and without a tape.
func TestCausalConvInPieces(t *testing.T) {
	const b, l, n = 2, 11, 4
	for _, channels := range convSizes {
		for _, f := range []func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor{nil, tensor.SiLU, tensor.Tanh} {
			rng := rand.New(rand.NewPCG(54, 2))
			c := nn.NewCausalConv(channels, n, true, rng)
			c.Activation = f
			x, first := tensor.Randn(rng, b, l, channels), tensor.Randn(rng, b, n-1, channels)
			for _, start := range []*tensor.Tensor{nil, first} {
				want, wantLast := c.Forward(tensortest.Tape(tensor.Train), x, start, nil)
				for _, step := range []int{1, 2, 5, l} {
					state := start
					for at := 0; at < l; at += step {
						end := min(at+step, l)
						var y *tensor.Tensor
						y, state = c.Forward(nil, tensor.Slice(nil, x, 1, at, end), state, nil)
						tensortest.Same(t, fmt.Sprintf("tokens from %d, %d a call", at, step), y.Data(), tensor.Slice(nil, want, 1, at, end).Data())
					}
					tensortest.Same(t, fmt.Sprintf("state after %d a call", step), state.Data(), wantLast.Data())
				}
			}
		}
	}
}

// Padding, even NaN, and the other sequences of a batch change nothing, and nor does the number of threads.
func TestCausalConvPaddingAndCompany(t *testing.T) {
	const b, l, n = 3, 7, 4
	for _, channels := range convSizes {
		rng := rand.New(rand.NewPCG(54, 3))
		c := nn.NewCausalConv(channels, n, true, rng)
		c.Activation = tensor.SiLU
		x, first := tensor.Randn(rng, b, l, channels), tensor.Randn(rng, b, n-1, channels)
		dout, dlast := tensor.Randn(rng, b, l, channels), tensor.Randn(rng, b, n-1, channels)
		ends := [][]int{{4}, {1, 3, 7}, {}}
		want := runConv(c, x, first, ends, dout, dlast)
		for _, threads := range []int{1, 3} {
			procs := runtime.GOMAXPROCS(threads)
			sameConv(t, fmt.Sprintf("%d threads", threads), runConv(c, x, first, ends, dout, dlast), want)
			runtime.GOMAXPROCS(procs)
		}
		spoilt, spoiltOut := x.Clone(), dout.Clone()
		for i, list := range ends {
			for j := slices.Max(append(list, 0)) * channels; j < l*channels; j++ {
				spoilt.Data()[i*l*channels+j] = float32(math.NaN())
				if j%3 == 0 { // SiLU'(0)·NaN would be NaN
					spoiltOut.Data()[i*l*channels+j] = float32(math.Inf(1))
				}
			}
		}
		sameConv(t, "NaN in padding", runConv(c, spoilt, first, ends, spoiltOut, dlast), want)
		for i, list := range ends {
			end := slices.Max(append(list, 0))
			of := func(x *tensor.Tensor, from, to int) *tensor.Tensor {
				return tensor.Slice(nil, tensor.Slice(nil, x, 0, i, i+1), 1, from, to)
			}
			alone := runConv(c, of(x, 0, end), of(first, 0, n-1), [][]int{list}, of(dout, 0, end), of(dlast, 0, n-1))
			what := fmt.Sprintf("sequence %d alone", i)
			tensortest.Same(t, what, alone.out.Data(), of(want.out, 0, end).Data())
			tensortest.Same(t, what+": last", alone.last.Data(), of(want.last, 0, n-1).Data())
			tensortest.Same(t, what+": gradient of x", alone.dx.Data(), of(want.dx, 0, end).Data())
			tensortest.Same(t, what+": gradient of first", alone.dfirst.Data(), of(want.dfirst, 0, n-1).Data())
			for _, v := range of(want.out, end, l).Data() {
				if v != 0 {
					t.Fatalf("%s: %v behind its end, want 0", what, v)
				}
			}
		}
	}
}

// A packed document has the bits that it has alone.
func TestCausalConvDocuments(t *testing.T) {
	const l, channels, n = 9, 5, 4
	rng := rand.New(rand.NewPCG(54, 4))
	c := nn.NewCausalConv(channels, n, true, rng)
	x, first := tensor.Randn(rng, 1, l, channels), tensor.Randn(rng, 1, n-1, channels)
	for _, ends := range [][]int{{1, 9}, {2, 3, 9}, {0, 9}, {4, 4, 8}, {9, 9}} {
		out, last := c.Forward(nil, x, first, [][]int{ends})
		state, at := first, 0
		for i, end := range ends {
			var y *tensor.Tensor
			y, state = c.Forward(nil, tensor.Slice(nil, x, 1, at, end), state, nil)
			tensortest.Same(t, fmt.Sprintf("documents to %v, from %d", ends, at), tensor.Slice(nil, out, 1, at, end).Data(), y.Data())
			if i == len(ends)-1 {
				tensortest.Same(t, fmt.Sprintf("documents to %v: state", ends), last.Data(), state.Data())
			}
			at, state = end, nil
		}
	}
}

// A gradient of zero contributes nothing, even if x, the state or the weight is not finite.
func TestCausalConvZeroGradientCarriesNothing(t *testing.T) {
	const l, channels, n = 6, 5, 4
	for _, spoil := range []func(x, first, w []float32){
		func(x, _, _ []float32) { x[l*channels] = float32(math.NaN()) },
		func(_, first, _ []float32) { first[(n-1)*channels] = float32(math.Inf(1)) },
		func(_, _, w []float32) { w[channels] = float32(math.NaN()) }, // of channel 0
	} {
		rng := rand.New(rand.NewPCG(54, 5))
		c := nn.NewCausalConv(channels, n, true, rng)
		x, first := tensor.Randn(rng, 2, l, channels), tensor.Randn(rng, 2, n-1, channels)
		dout, dlast := tensor.Randn(rng, 2, l, channels), tensor.Randn(rng, 2, n-1, channels)
		clear(dout.Data()[l*channels:])
		for i := 0; i < dout.Len(); i += channels {
			dout.Data()[i] = 0
		}
		want := runConv(c, x, first, nil, dout, dlast)
		spoil(x.Data(), first.Data(), c.Weight.Data())
		got := runConv(c, x, first, nil, dout, dlast)
		got.out, got.last = want.out, want.last
		sameConv(t, "zero gradient", got, want)
	}
}

func TestCausalConvErrors(t *testing.T) {
	rng := rand.New(rand.NewPCG(54, 6))
	z := tensor.Zeros
	conv := func(weight, bias, x, first *tensor.Tensor, ends [][]int) func() {
		return func() { (&nn.CausalConv{Weight: weight, Bias: bias}).Forward(nil, x, first, ends) }
	}
	for want, f := range map[string]func(){
		"nn: CausalConv: weight is nil, want a tensor":                                        conv(nil, nil, z(2, 7, 5), nil, nil),
		"nn: CausalConv: weight has shape [5 4], want [N 1 C] for N inputs of each channel":   conv(z(5, 4), nil, z(2, 7, 5), nil, nil),
		"nn: CausalConv: weight has shape [4 2 5], want [N 1 C] for N inputs of each channel": conv(z(4, 2, 5), nil, z(2, 7, 5), nil, nil),
		"nn: CausalConv: bias has shape [4], want [C=5]":                                      conv(z(4, 1, 5), z(4), z(2, 7, 5), nil, nil),
		"nn: CausalConv: x has shape [2 5 7], want [B L C=5]":                                 conv(z(4, 1, 5), nil, z(2, 5, 7), nil, nil),
		"nn: CausalConv: first has shape [2 4 5], want [B=2 N−1=3 C=5]":                       conv(z(4, 1, 5), nil, z(2, 7, 5), z(2, 4, 5), nil),
		"nn: CausalConv: ends has 3 lists, want one, or one for each of B=2 sequences":        conv(z(4, 1, 5), nil, z(2, 7, 5), nil, make([][]int, 3)),
		"nn: CausalConv: ends has positions [3 8], want 0 to L=7 in ascending order":          conv(z(4, 1, 5), nil, z(2, 7, 5), nil, [][]int{{3, 8}}),
		"nn: CausalConv: ends has positions [3 2], want 0 to L=7 in ascending order":          conv(z(4, 1, 5), nil, z(2, 7, 5), nil, [][]int{{3, 2}}),
		"nn: CausalConv: ends has positions [-1 2], want 0 to L=7 in ascending order":         conv(z(4, 1, 5), nil, z(2, 7, 5), nil, [][]int{{-1, 2}}),
	} {
		if err := tensor.Catch(f); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	c := nn.NewCausalConv(5, 4, false, rng)
	d, err := nn.TorchNames(c)
	if err != nil || len(d) != 1 || d[0].Name != "weight" || !slices.Equal(d[0].Parts[0].Shape(), []int{4, 1, 5}) || !d[0].Transposed {
		t.Errorf("PyTorch's names %v, error %v", d, err)
	}
	if y, last := c.Forward(nil, z(0, 7, 5), nil, nil); y.Len() != 0 || last.Len() != 0 {
		t.Errorf("shapes %v and %v of no sequences", y.Shape(), last.Shape())
	}
	first := tensor.Randn(rng, 2, 3, 5)
	if _, last := c.Forward(nil, z(2, 0, 5), first, nil); !slices.Equal(last.Data(), first.Data()) {
		t.Errorf("the state after no tokens is %v, want %v", last, first)
	}
}

func BenchmarkCausalConv(b *testing.B) {
	rng := rand.New(rand.NewPCG(54, 7))
	for _, size := range [][3]int{{1, 2048, 8192}, {1, 512, 1024}, {1, 1, 8192}} {
		c := nn.NewCausalConv(size[2], 4, true, rng)
		c.Activation = tensor.SiLU
		x := tensor.Randn(rng, size[:]...)
		y := make([]float32, x.Len())
		each := func(name string, f func()) {
			b.Run(fmt.Sprint(size, name), func(b *testing.B) {
				for b.Loop() {
					f()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*x.Len()), "ns/element")
			})
		}
		tape := tensor.NewTape(tensor.Infer)
		each("/copy", func() { copy(y, x.Data()) })
		each("/forward", func() { tape.Reset(); c.Forward(tape, x, nil, nil) })
	}
}
