package tensor_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// rounded returns random numbers that bfloat16 holds exactly.
func rounded(rng *rand.Rand, shape ...int) *tensor.Tensor {
	x := tensor.Randn(rng, shape...)
	for i, v := range x.Data() {
		x.Data()[i] = math.Float32frombits(math.Float32bits(v) &^ 0xffff)
	}
	return x
}

// TestBFloat16 compares products with those of the same numbers as float32.
func TestBFloat16(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	simd.Each(func(kernels string) {
		for _, size := range [][3]int{{1, 1, 1}, {1, 5, 3}, {1, 67, 129}, {2, 64, 64}, {7, 131, 31}, {1, 1031, 577}, {101, 67, 43}, {0, 5, 3}} {
			n, out, in := size[0], size[1], size[2]
			x, dense, bias := tensor.Randn(rng, n, in), rounded(rng, out, in), tensor.Randn(rng, out)
			byRow, byColumn := tensor.NewBFloat16(out, in), tensor.NewBFloat16(out, in)
			for i := 0; i < out; i += 29 {
				byRow.SetRows(i, dense.Data()[i*in:min(i+29, out)*in])
			}
			for k := range in {
				column := make([]float32, out)
				for i := range column {
					column[i] = dense.Data()[i*in+k]
				}
				byColumn.SetColumn(k, column)
			}
			for _, b := range []*tensor.Tensor{nil, bias} {
				want := tensor.Linear(nil, x, dense, b)
				for _, w := range []*tensor.BFloat16{byRow, byColumn} {
					got := w.Linear(nil, x, b)
					if !slices.Equal(got.Shape(), want.Shape()) {
						t.Fatalf("%s: %v: shape %v, want %v", kernels, size, got.Shape(), want.Shape())
					}
					for i, v := range got.Data() {
						d := math.Abs(float64(v - want.Data()[i]))
						if kernels != "amx" && math.Float32bits(v) != math.Float32bits(want.Data()[i]) || !(d < 1e-4) {
							t.Fatalf("%s: %v: element %d is %v, want %v", kernels, size, i, v, want.Data()[i])
						}
					}
				}
			}
			index := []int{out - 1, 0, out / 2, 0}
			if got, want := byRow.Rows(nil, index), tensor.Gather(nil, dense, index); !slices.Equal(got.Data(), want.Data()) {
				t.Errorf("%s: %v: rows %v, want %v", kernels, size, got, want)
			}
		}
	})
	w := tensor.NewBFloat16(1, 2)
	w.SetRows(0, []float32{1 + 0x1p-8, float32(math.Inf(1))}) // a tie to even, and what has no rounding
	if got := w.Rows(nil, []int{0}).Data(); !slices.Equal(got, []float32{1, float32(math.Inf(1))}) {
		t.Errorf("rounded to %v", got)
	}
}

func TestBFloat16Errors(t *testing.T) {
	w := tensor.NewBFloat16(3, 5)
	for _, c := range []struct {
		f    func()
		want string
	}{
		{func() { tensor.NewBFloat16(0, 5) }, "tensor: NewBFloat16: matrix has shape [0 5], want positive sizes"},
		{func() { w.SetRows(3, make([]float32, 5)) }, "tensor: BFloat16.SetRows: rows has first and number of elements [3 5], want rows of 5 within 0 to 2"},
		{func() { w.SetRows(0, make([]float32, 6)) }, "tensor: BFloat16.SetRows: rows has first and number of elements [0 6], want rows of 5 within 0 to 2"},
		{func() { w.SetColumn(0, make([]float32, 5)) }, "tensor: BFloat16.SetColumn: vector has number and length [0 5], want number 0 to 4 of length 3"},
		{func() { w.Rows(nil, []int{-1}) }, "tensor: BFloat16.Rows: index has row [-1], want 0 to 2"},
		{func() { w.Linear(nil, tensor.Zeros(2, 3), nil) }, "tensor: BFloat16.Linear: x has shape [2 3], want [… In=5]"},
		{func() { w.Linear(nil, tensor.Zeros(2, 5), tensor.Zeros(5)) }, "tensor: BFloat16.Linear: b has shape [5], want [3]"},
		{func() { w.Linear(tensor.NewTape(tensor.Eval), tensor.Zeros(2, 5).Param(), nil) }, "tensor: BFloat16.Linear: tape is one that records, want nil or one of mode Infer, as no gradient passes through weights in bfloat16"},
	} {
		if err := tensor.Catch(c.f); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}
