package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
)

// Operations that compute several others in one pass give the same bits as those, forward and backward, however the
// work is cut, even if the gradients already have a value and some numbers are not finite.
func TestFusedOperations(t *testing.T) {
	type operation = func(t *tensor.Tape, x []*tensor.Tensor) []*tensor.Tensor
	const n, d, p = 301, 130, 0.3
	index := [][]int{make([]int, n), make([]int, n)}
	for i := range n {
		index[0][i], index[1][i] = i*i%n, i*7%13
	}
	for _, c := range []struct {
		name         string
		apart, fused operation
	}{
		{"AddLayerNorm", func(t *tensor.Tape, x []*tensor.Tensor) []*tensor.Tensor {
			sum := tensor.AddDropout(t, x[0], x[1], p)
			return []*tensor.Tensor{sum, tensor.LayerNorm(t, sum, x[2], x[3], 1e-5)}
		}, func(t *tensor.Tape, x []*tensor.Tensor) []*tensor.Tensor {
			sum, y := tensor.AddLayerNorm(t, x[0], x[1], p, x[2], x[3], 1e-5)
			return []*tensor.Tensor{sum, y}
		}},
		{"AddLayerNorm without dropout", func(t *tensor.Tape, x []*tensor.Tensor) []*tensor.Tensor {
			sum := tensor.Add(t, x[0], x[1])
			return []*tensor.Tensor{sum, tensor.LayerNorm(t, sum, x[2], x[3], 1e-5)}
		}, func(t *tensor.Tape, x []*tensor.Tensor) []*tensor.Tensor {
			sum, y := tensor.AddLayerNorm(t, x[0], x[1], 0, x[2], x[3], 1e-5)
			return []*tensor.Tensor{sum, y}
		}},
		{"AddRMSNorm of x + x", func(t *tensor.Tape, x []*tensor.Tensor) []*tensor.Tensor {
			sum := tensor.AddDropout(t, x[0], x[0], p)
			return []*tensor.Tensor{sum, tensor.RMSNorm(t, sum, x[2], 1e-5)}
		}, func(t *tensor.Tape, x []*tensor.Tensor) []*tensor.Tensor {
			sum, y := tensor.AddRMSNorm(t, x[0], x[0], p, x[2], 1e-5)
			return []*tensor.Tensor{sum, y}
		}},
		{"GatherSum", func(t *tensor.Tape, x []*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{tensor.Add(t, tensor.Gather(t, x[0], index[0]), tensor.Gather(t, x[1], index[1]))}
		}, func(t *tensor.Tape, x []*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{tensor.GatherSum(t, x[:2], index)}
		}},
		{"TanhGELU", func(t *tensor.Tape, x []*tensor.Tensor) []*tensor.Tensor {
			const c = 2 * math.Sqrt2 / (math.SqrtPi)
			factor := tensor.Shift(t, tensor.Scale(t, tensor.Square(t, x[0]), 0.044715*c), c)
			return []*tensor.Tensor{tensor.Mul(t, x[0], tensor.Sigmoid(t, tensor.Mul(t, x[0], factor)))}
		}, func(t *tensor.Tape, x []*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{tensor.TanhGELU(t, x[0])}
		}},
		{"SiLU", func(t *tensor.Tape, x []*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{tensor.Mul(t, x[0], tensor.Sigmoid(t, x[0]))}
		}, func(t *tensor.Tape, x []*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{tensor.SiLU(t, x[0])}
		}},
		{"GateOver", func(t *tensor.Tape, x []*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{tensor.Mul(t, tensor.TanhGELU(t, x[0]), x[1])}
		}, func(t *tensor.Tape, x []*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{tensor.GateOver(t, tensor.TanhGELU, x[0], x[1])}
		}},
	} {
		for uses := 1; uses < 4; uses++ { // bit i: result i is used
			for _, infinite := range []bool{false, true} {
				run := func(do operation, threads int) string {
					rng := rand.New(rand.NewPCG(1, 2))
					x := []*tensor.Tensor{tensor.Randn(rng, n, d), tensor.Randn(rng, n, d), tensor.Randn(rng, d), tensor.Randn(rng, d)}
					for _, x := range x {
						x.Param()
					}
					if infinite {
						x[0].Data()[1234] = float32(math.Inf(1))
					}
					var text string
					par.Trace(threads, 1, func() {
						tape := tensor.NewTape(tensor.Train)
						tape.Seed(3, 4)
						for range 2 {
							tape.Reset()
							ys := do(tape, []*tensor.Tensor{tensor.Scale(tape, x[0], 1), x[1], x[2], x[3]})
							loss := tensor.Scale(tape, tensor.Sum(tape, x[0]), 0)
							if !infinite {
								loss = tensor.Sum(tape, tensor.Square(tape, x[0]))
							}
							for i, y := range ys {
								if uses>>i&1 > 0 {
									loss = tensor.Add(tape, loss, tensor.Sum(tape, tensor.Mul(tape, y, tensor.Tanh(tape, y))))
								}
								text += sums(y)
							}
							tape.Backward(loss, nil)
						}
					})
					for _, x := range x {
						text += sums(x.Grad())
					}
					return text
				}
				want := run(c.apart, 1)
				for _, threads := range []int{1, 3, 16} {
					if got := run(c.fused, threads); got != want {
						t.Errorf("%s, results %b, infinite %v, %d threads: other bits", c.name, uses, infinite, threads)
					}
				}
			}
		}
	}
}

// sums returns a checksum of the bits of x.
func sums(x *tensor.Tensor) string {
	if x == nil {
		return "none "
	}
	h := uint64(0)
	for _, v := range x.Data() {
		h = h*1099511628211 + uint64(math.Float32bits(v))
	}
	return fmt.Sprintf("%x ", h)
}

// A sum and its norm are one loop, and one more for the gradients of the rows.
func TestLoopsOfNorms(t *testing.T) {
	x, gain := tensor.Full(1, 640, 128).Param(), tensor.Full(1, 128).Param()
	tape := tensor.NewTape(tensor.Train)
	tape.Seed(1, 2)
	loops := func(f func()) []int {
		var chunks []int
		for _, l := range par.Trace(16, 1, f).Loops {
			chunks = append(chunks, len(l.Chunks))
		}
		return chunks
	}
	var y *tensor.Tensor
	forward := loops(func() { _, y = tensor.AddLayerNorm(tape, x, x, 0.1, gain, gain, 1e-5) })
	if fmt.Sprint(forward) != "[80]" {
		t.Errorf("chunks %v of the loops forward", forward)
	}
	d := tensor.Full(1, 640, 128)
	tape.Backward(y, d) // which makes the gradients of the parameters
	back := loops(func() { tape.Backward(y, d) })
	// Clearing and setting the gradient of y, the rows, the gain.
	if fmt.Sprint(back) != "[14 14 80 8]" {
		t.Errorf("chunks %v of the loops backward", back)
	}
}

// GateOver has the bits of Mul and the activation. It writes over its first factor only for inference, only if that was
// made on the tape, and only for functions that it knows: others may need it twice.
func TestGateOver(t *testing.T) {
	twice := func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Add(t, tensor.SiLU(t, x), x) }
	for i, f := range []func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor{
		tensor.ReLU, tensor.GELU, tensor.TanhGELU, tensor.SiLU, tensor.Tanh, tensor.Sigmoid, tensor.QuickGELU, twice,
	} {
		for _, n := range []int{1, 1023, 1024, 100_001} {
			rng := rand.New(rand.NewPCG(5, uint64(n)))
			x, y := tensor.Randn(rng, n), tensor.Randn(rng, n)
			x.Data()[n/2] = float32(math.Inf(-1))
			want := tensor.Mul(nil, f(nil, x), y).Data()
			for _, mode := range []tensor.Mode{tensor.Infer, tensor.Eval} {
				tape := tensor.NewTape(mode)
				for _, made := range []bool{false, true} {
					from := x
					if made {
						from = tensor.Scale(tape, x, 1)
					}
					var got *tensor.Tensor
					par.Trace(3, 1, func() { got = tensor.GateOver(tape, f, from, y) })
					name := fmt.Sprintf("function %d of %d elements, mode %v, made on the tape: %v", i, n, mode, made)
					for j, w := range want {
						if g := got.Data()[j]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
							t.Fatalf("%s: element %d is %v, want %v", name, j, g, w)
						}
					}
					if over, want := &got.Data()[0] == &from.Data()[0], made && mode == tensor.Infer && i < 6; over != want {
						t.Errorf("%s: written over x: %v, want %v", name, over, want)
					}
				}
			}
		}
	}
}
