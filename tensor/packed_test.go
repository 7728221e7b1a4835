package tensor_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// rounded returns random numbers that bfloat16 represents exactly.
func rounded(rng *rand.Rand, shape ...int) *tensor.Tensor {
	x := tensor.Randn(rng, shape...)
	for i, v := range x.Data() {
		if x.Data()[i] = math.Float32frombits(math.Float32bits(v) &^ 0xffff); math.Abs(float64(v)) < 0x1p-16 {
			x.Data()[i] = 1
		}
	}
	return x
}

var packedSizes = [][3]int{
	{1, 1, 1}, {1, 5, 3}, {1, 67, 129}, {2, 64, 64}, {7, 131, 31}, {1, 1031, 577}, {101, 67, 43}, {0, 5, 3}, {6, 67, 1031}, {7, 67, 1031},
	{193, 131, 67}, {401, 193, 521},
}

// packedBoth returns a matrix packed by rows and by columns.
func packedBoth(dense *tensor.Tensor, n tensor.Format) []*tensor.Packed {
	out, in := dense.Dim(0), dense.Dim(1)
	byRow, byColumn := tensor.NewPacked(out, in, n), tensor.NewPacked(out, in, n)
	for i := 0; i < out; i += 29 {
		byRow.SetRows(i, dense.Data()[i*in:min(i+29, out)*in])
	}
	turned := make([]float32, in*out)
	for i := range out {
		for k := range in {
			turned[k*out+i] = dense.Data()[i*in+k]
		}
	}
	byColumn.SetTransposed(turned, out)
	return []*tensor.Packed{byRow, byColumn}
}

// eachImplementation runs f as a subtest with each implementation of the kernels.
func eachImplementation(t *testing.T, f func(t *testing.T, kernels string)) {
	simd.Each(func(kernels string) {
		t.Run(kernels, func(t *testing.T) { f(t, kernels) })
	})
}

// TestPacked compares products with products of the same numbers as parameters.
func TestPacked(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	eachImplementation(t, func(t *testing.T, kernels string) {
		for _, size := range packedSizes {
			n, out, in := size[0], size[1], size[2]
			if testing.Short() && n*out*in > 1<<21 {
				continue
			}
			x, bias := tensor.Randn(rng, n, in), tensor.Randn(rng, out)
			for _, numbers := range []tensor.Format{tensor.Float32, tensor.BFloat16Weights} {
				dense := tensor.Randn(rng, out, in)
				if numbers != tensor.Float32 {
					dense = rounded(rng, out, in)
				}
				for _, w := range packedBoth(dense, numbers) {
					for _, b := range []*tensor.Tensor{nil, bias} {
						want, got := tensor.Linear(nil, x, dense, b), w.Linear(nil, x, b)
						if !slices.Equal(got.Shape(), want.Shape()) {
							t.Fatalf("%s: %v: shape %v, want %v", kernels, size, got.Shape(), want.Shape())
						}
						for i, v := range got.Data() {
							if math.Float32bits(v) != math.Float32bits(want.Data()[i]) {
								t.Fatalf("%s: %v, %v: element %d is %v, want %v", kernels, size, numbers, i, v, want.Data()[i])
							}
						}
					}
					index := []int{out - 1, 0, out / 2, 0}
					if got, want := w.Rows(nil, index), tensor.Gather(nil, dense, index); !slices.Equal(got.Data(), want.Data()) {
						t.Errorf("%s: %v: rows %v, want %v", kernels, size, got, want)
					}
				}
			}
		}
	})
	w := tensor.NewPacked(1, 2, tensor.BFloat16Weights)
	w.SetRows(0, []float32{1 + 0x1p-8, float32(math.Inf(1))})
	if got := w.Rows(nil, []int{0}).Data(); !slices.Equal(got, []float32{1, float32(math.Inf(1))}) {
		t.Errorf("rounded to %v", got)
	}
}

// Sums over the features of a layer are divided, so that they round less than the chains of MatMulT. With one chain
// of 1,536 products, the error of a decoder's logits was three times that of PyTorch.
func TestLinearRoundsLessThanAChain(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	const in, out = 1536, 64
	w := tensor.Randn(rng, out, in)
	for _, n := range []int{1, 8, 14, 120} {
		x := tensor.Randn(rng, n, in)
		eachImplementation(t, func(t *testing.T, _ string) {
			packed := tensor.NewPacked(out, in, tensor.Float32)
			packed.SetRows(0, w.Data())
			// far returns the root mean square difference of y from the sums in float64.
			far := func(y *tensor.Tensor) float64 {
				var total float64
				for i, v := range y.Data() {
					a, b := x.Data()[i/out*in:][:in], w.Data()[i%out*in:][:in]
					var sum float64
					for k := range a {
						sum += float64(a[k]) * float64(b[k])
					}
					total += (float64(v) - sum) * (float64(v) - sum)
				}
				return math.Sqrt(total / float64(y.Len()))
			}
			chain := far(tensor.MatMulT(nil, x, w))
			for name, y := range map[string]*tensor.Tensor{"parameters": tensor.Linear(nil, x, w, nil), "packed": packed.Linear(nil, x, nil)} {
				if d := far(y); d > 0.75*chain {
					t.Errorf("%d rows, %s: errors of %.3g, a chain has %.3g", n, name, d, chain)
				}
			}
		})
	}
}

// TestPackedInt8 compares each weight with its error bound, and products of weights set by rows and by columns.
func TestPackedInt8(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	eachImplementation(t, func(t *testing.T, kernels string) {
		for _, size := range packedSizes {
			n, out, in := size[0], size[1], size[2]
			if testing.Short() && n*out*in > 1<<21 {
				continue
			}
			x, bias, dense := tensor.Randn(rng, n, in), tensor.Randn(rng, out), tensor.Randn(rng, out, in)
			var first *tensor.Tensor
			for _, w := range packedBoth(dense, tensor.Int8) {
				index := make([]int, out)
				for i := range index {
					index[i] = i
				}
				held := w.Rows(nil, index)
				for i := range out {
					for at := 0; at < in; at += 128 { // a group has a scale
						n := min(128, in-at)
						row, got := dense.Data()[i*in+at:][:n], held.Data()[i*in+at:][:n]
						most := 0.0
						for _, v := range row {
							most = max(most, math.Abs(float64(v)))
						}
						for k, v := range got {
							if d := math.Abs(float64(v) - float64(row[k])); d > most/254*(1+1e-5) {
								t.Fatalf("%s: %v: weight %d,%d is %v, want %v, the largest being %v", kernels, size, i, at+k, v, row[k], most)
							}
						}
					}
				}
				got := w.Linear(nil, x, bias)
				if first == nil {
					first = got
				} else if !slices.Equal(first.Data(), got.Data()) {
					t.Errorf("%s: %v: other products if set by columns", kernels, size)
				}
			}
		}
	})
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	w := tensor.NewPacked(5, 2, tensor.Int8)
	w.SetRows(0, []float32{0, 0, 1, nan, inf, 1, nan, 1e30, 3, -127})
	y := w.Linear(nil, tensor.Full(1, 1, 2), nil).Data()
	if y[0] != 0 || y[1] == y[1] || y[2] == y[2] || y[3] == y[3] || math.Abs(float64(y[4]+124)) > 1e-4 {
		t.Errorf("rows of 0, with NaN, infinite, with both and of integers give %v", y)
	}
}

// TestLinears checks that several maps at once give the results of separate calls, and that a row gives the same
// result alone as in a batch.
func TestLinears(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	eachImplementation(t, func(t *testing.T, kernels string) {
		for _, numbers := range tensor.Formats() {
			const in = 577
			var maps []tensor.Affine
			for i, out := range []int{131, 67, 1, 257} {
				m := tensor.Affine{Weight: packedBoth(tensor.Randn(rng, out, in), numbers)[0]}
				if i%2 == 0 {
					m.Bias = tensor.Randn(rng, out)
				}
				maps = append(maps, m)
			}
			x := tensor.Randn(rng, 3, 137, in)
			all := tensor.Linears(nil, x, maps)
			one := tensor.Linears(nil, tensor.New(x.Data()[400*in:401*in], 1, in), maps)
			for i, m := range maps {
				out := m.Weight.Shape()[0]
				if got, want := all[i].Data(), m.Weight.Linear(nil, x, m.Bias).Data(); !slices.Equal(got, want) {
					t.Errorf("%s: %v: map %d differs among others", kernels, numbers, i)
				}
				if got, want := one[i].Data(), all[i].Data()[400*out:401*out]; !slices.Equal(got, want) {
					t.Errorf("%s: %v: map %d of a row differs from that among 411", kernels, numbers, i)
				}
			}
		}
	})
}

// Products with packed weights are one loop with enough pieces for all threads. The numbers of pieces are those of AVX2.
func TestPackedIsOneLoop(t *testing.T) {
	if simd.Implementation() != "avx2" {
		t.Skip("the cut depends on the width of a panel")
	}
	for _, c := range []struct {
		rows, in int
		outs     []int
		least    [3]int // pieces on 2, 16 and 64 threads
	}{
		{128, 384, []int{384}, [3]int{6, 48, 192}},
		{128, 384, []int{384, 384, 384}, [3]int{6, 48, 192}},
		{128, 1536, []int{384}, [3]int{6, 48, 192}},
		{16, 768, []int{768}, [3]int{6, 48, 48}},
		{1, 576, []int{576}, [3]int{6, 32, 36}},
		{1, 576, []int{576, 192, 192}, [3]int{6, 30, 60}},
		{1, 1536, []int{576}, [3]int{6, 32, 36}},
	} {
		var maps []tensor.Affine
		for _, out := range c.outs {
			maps = append(maps, tensor.Affine{Weight: tensor.NewPacked(out, c.in, tensor.Float32)})
		}
		x := tensor.Zeros(c.rows, c.in)
		for i, threads := range []int{2, 16, 64} {
			s := par.Trace(threads, 1, func() { tensor.Linears(nil, x, maps) })
			if len(s.Loops) != 1 || len(s.Loops[0].Chunks) < c.least[i] {
				t.Errorf("%d×%d·%v on %d threads: %d loops, %d pieces, want 1 loop and %d pieces",
					c.rows, c.in, c.outs, threads, len(s.Loops), len(s.Loops[0].Chunks), c.least[i])
			}
		}
	}
}

func TestPackedErrors(t *testing.T) {
	w := tensor.NewPacked(3, 5, tensor.BFloat16)
	for _, c := range []struct {
		f    func()
		want string
	}{
		{func() { tensor.NewPacked(0, 5, tensor.Int8) }, "tensor: NewPacked: matrix has shape [0 5], want positive sizes"},
		{func() { tensor.NewPacked(3, 5, 0) }, "tensor: NewPacked: format is Format(0), want float32, bfloat16, int8, bfloat16-weights"},
		{func() { w.SetRows(3, make([]float32, 5)) }, "tensor: Packed.SetRows: rows has first and number of elements [3 5], want rows of 5 within 0 to 2"},
		{func() { w.SetRows(0, make([]float32, 6)) }, "tensor: Packed.SetRows: rows has first and number of elements [0 6], want rows of 5 within 0 to 2"},
		{func() { w.SetTransposed(make([]float32, 14), 3) }, "tensor: Packed.SetTransposed: matrix has number of elements and stride [14 3], want at least 15 elements and a stride of at least 3 for [In=5 Out=3]"},
		{func() { w.SetTransposed(make([]float32, 15), 2) }, "tensor: Packed.SetTransposed: matrix has number of elements and stride [15 2], want at least 15 elements and a stride of at least 3 for [In=5 Out=3]"},
		{func() { w.Rows(nil, []int{-1}) }, "tensor: Packed.Rows: index has row -1, want 0 to 2"},
		{func() { w.Linear(nil, tensor.Zeros(2, 3), nil) }, "tensor: Linears: x has shape [2 3], want [… In=5]"},
		{func() { w.Linear(nil, tensor.Zeros(2, 5), tensor.Zeros(5)) }, "tensor: Linears: b has shape [5], want [3]"},
		{func() { w.Linear(tensor.NewTape(tensor.Eval), tensor.Zeros(2, 5).Param(), nil) }, "tensor: Linears: tape is one that records, want nil or one of mode Infer: no gradient passes through packed weights; models.Options{Trainable: true} loads parameters"},
	} {
		if err := tensor.Catch(c.f); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}
