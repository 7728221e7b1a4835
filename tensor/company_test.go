package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// A row's result and gradient do not depend on the other rows of the batch, bit for bit.
func TestRowsDoNotDependOnTheirCompany(t *testing.T) {
	const rows = 67
	for _, width := range []int{1, 3, 8, 17, 31, 64, 101, 257} {
		rng := rand.New(rand.NewPCG(uint64(width), 1))
		const out = 37
		right, left := tensor.Randn(rng, width, out), tensor.Randn(rng, out, width)
		bias, gain, shift := tensor.Randn(rng, out), tensor.Randn(rng, width), tensor.Randn(rng, width)
		for _, op := range []struct {
			name string
			f    func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor
		}{
			{"MatMul", func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.MatMul(t, x, right) }},
			{"MatMulT", func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.MatMulT(t, x, left) }},
			{"Mix", func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Mix(t, x, right) }},
			{"Linear", func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Linear(t, x, left, bias) }},
			{"LayerNorm", func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
				return tensor.LayerNorm(t, x, gain, shift, 1e-5)
			}},
			{"RMSNorm", func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.RMSNorm(t, x, gain, 1e-5) }},
			{"Normalize", func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Normalize(t, x, 1e-5) }},
			{"Softmax", func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Softmax(t, x) }},
			{"LogSoftmax", func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.LogSoftmax(t, x) }},
			{"LogSumExp", func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.LogSumExp(t, x) }},
			{"GELU", func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.GELU(t, x) }},
			{"Tanh", func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Tanh(t, x) }},
		} {
			x := tensor.Randn(rng, rows, width).Param()
			tape := tensor.NewTape(tensor.Train)
			y := op.f(tape, x)
			dout := tensor.Randn(rng, y.Shape()...)
			tape.Backward(y, dout)
			wide := y.Len() / rows
			for _, from := range []int{0, 1, 29, rows - 3} {
				for _, n := range []int{1, 3} {
					part := tensor.Slice(nil, x, 0, from, min(from+n, rows)).Param()
					tape := tensor.NewTape(tensor.Train)
					z := op.f(tape, part)
					tape.Backward(z, tensor.Slice(nil, dout, 0, from, from+part.Dim(0)))
					what := fmt.Sprintf("%s of width %d, rows %d to %d alone", op.name, width, from, from+part.Dim(0)-1)
					tensortest.Same(t, what, z.Data(), y.Data()[from*wide:][:z.Len()])
					tensortest.Same(t, what+": gradient", part.Grad().Data(), x.Grad().Data()[from*width:][:part.Len()])
				}
			}
		}
	}
}

// A batch of products gives the bits of each product alone.
func TestProductsDoNotDependOnTheBatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 4))
	const batch, m, k, n = 7, 13, 67, 31
	a, b := tensor.Randn(rng, batch, m, k), tensor.Randn(rng, batch, k, n)
	all := tensor.MatMul(nil, a, b)
	for i := range batch {
		one := tensor.MatMul(nil, tensor.New(a.Data()[i*m*k:][:m*k], m, k), tensor.New(b.Data()[i*k*n:][:k*n], k, n))
		tensortest.Same(t, fmt.Sprintf("product %d", i), one.Data(), all.Data()[i*m*n:][:m*n])
	}
}

// Trailing keys with scores of −Inf change no bit of the earlier results or gradients.
func TestTrailingPaddingChangesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 5))
	const rows, width = 7, 11
	for _, keys := range []int{1, 5, 16, 23, 64} {
		for _, padding := range []int{1, 3, 16, 61} {
			scores := tensor.Randn(rng, rows, keys+padding)
			values := tensor.Randn(rng, keys+padding, width)
			dout := tensor.Randn(rng, rows, width)
			for i := range scores.Data() {
				if i%(keys+padding) >= keys {
					scores.Data()[i] = float32(math.Inf(-1))
				}
			}
			run := func(n int) []*tensor.Tensor {
				s := tensor.Slice(nil, scores, 1, 0, n).Param()
				v := tensor.Slice(nil, values, 0, 0, n).Param()
				tape := tensor.NewTape(tensor.Train)
				w := tensor.Softmax(tape, s)
				out := tensor.Mix(tape, w, v)
				tape.Backward(out, dout)
				head := func(x *tensor.Tensor, axis int) *tensor.Tensor { return tensor.Slice(nil, x, axis, 0, keys) }
				return []*tensor.Tensor{out, head(w, 1), head(s.Grad(), 1), head(v.Grad(), 0)}
			}
			want := run(keys)
			for i, got := range run(keys + padding) {
				what := []string{"out", "weights", "gradient of scores", "gradient of values"}[i]
				tensortest.Same(t, fmt.Sprintf("%s, %d of %d keys", what, keys, keys+padding), got.Data(), want[i].Data())
			}
		}
	}
}
