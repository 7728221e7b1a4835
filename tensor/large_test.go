package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// Operations that only move elements, with operands large enough to be divided. from maps an index of the result to
// an index of x.
func TestLargeMoves(t *testing.T) {
	order := func(axes ...int) func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
		return func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Transpose(t, x, axes...) }
	}
	to := func(shape ...int) func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
		return func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.BroadcastTo(t, x, shape...) }
	}
	rows := rand.New(rand.NewPCG(7, 1)).Perm(211)
	for _, c := range []struct {
		name  string
		shape []int
		f     func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor
		from  func(i []int) []int
	}{
		{"split heads", []int{19, 31, 4, 37}, order(0, 2, 1, 3), func(i []int) []int { return []int{i[0], i[2], i[1], i[3]} }},
		{"split heads of one sequence", []int{1, 211, 4, 67}, order(0, 2, 1, 3), func(i []int) []int { return []int{i[0], i[2], i[1], i[3]} }},
		{"swap", []int{61, 7, 67}, order(1, 0, 2), func(i []int) []int { return []int{i[1], i[0], i[2]} }},
		{"matrix", []int{163, 509}, order(1, 0), func(i []int) []int { return []int{i[1], i[0]} }},
		{"matrices", []int{5, 67, 129}, order(0, 2, 1), func(i []int) []int { return []int{i[0], i[2], i[1]} }},
		{"reverse", []int{3, 5, 2, 7, 11, 13, 2, 2, 1, 2}, order(9, 8, 7, 6, 5, 4, 3, 2, 1, 0), func(i []int) []int {
			j := make([]int, len(i))
			for a, n := range i {
				j[len(i)-1-a] = n
			}
			return j
		}},
		{"repeat rows", []int{509}, to(67, 509), func(i []int) []int { return i[1:] }},
		{"repeat columns", []int{509, 1}, to(509, 67), func(i []int) []int { return []int{i[0], 0} }},
		{"repeat heads", []int{7, 3, 1, 101, 17}, to(7, 3, 2, 101, 17), func(i []int) []int { return []int{i[0], i[1], 0, i[3], i[4]} }},
		{"repeat one", []int{1}, to(163, 509), func(i []int) []int { return []int{0} }},
		{"repeat a middle axis", []int{3, 1, 1021}, to(2, 3, 11, 1021), func(i []int) []int { return []int{i[1], 0, i[3]} }},
		{"slice", []int{67, 31, 37}, func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Slice(t, x, 1, 2, 29) },
			func(i []int) []int { return []int{i[0], i[1] + 2, i[2]} }},
		{"slice of long rows", []int{2, 3, 20_011}, func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Slice(t, x, 1, 1, 3) },
			func(i []int) []int { return []int{i[0], i[1] + 1, i[2]} }},
		{"concat", []int{61, 211}, func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Concat(t, 1, x, x) },
			func(i []int) []int { return []int{i[0], i[1] % 211} }},
		{"gather", []int{211, 101}, func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Gather(t, x, rows) },
			func(i []int) []int { return []int{rows[i[0]], i[1]} }},
	} {
		rng := rand.New(rand.NewPCG(7, 2))
		tape := tensor.NewTape(tensor.Train)
		leaf := tensor.Randn(rng, c.shape...).Param()
		x := tensor.Scale(tape, leaf, 1) // its gradient is first set, then added to
		y, again := c.f(tape, x), c.f(tape, x)
		dy, dagain := whole(rng, y.Shape()), whole(rng, y.Shape())
		tape.BackwardAll([]*tensor.Tensor{y, again}, []*tensor.Tensor{dy, dagain})
		want, grad := make([]float32, y.Len()), make([]float32, x.Len())
		e := 0
		for i := range indices(y.Shape()) {
			at := 0
			for a, n := range c.from(i) {
				at = at*c.shape[a] + n
			}
			want[e] = leaf.Data()[at]
			grad[at] += dy.Data()[e] + dagain.Data()[e]
			e++
		}
		tensortest.Same(t, c.name, y.Data(), want)
		tensortest.Same(t, c.name+": gradient", x.Grad().Data(), grad)
	}
}

// whole returns small whole numbers, so that sums are exact in any order.
func whole(rng *rand.Rand, shape []int) *tensor.Tensor {
	x := tensor.Zeros(shape...)
	for i := range x.Data() {
		x.Data()[i] = float32(rng.IntN(17) - 8)
	}
	return x
}

// Sums over an axis, and repeated operands, both divided into several pieces.
func TestLargeSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 3))
	for _, shape := range [][]int{{300, 3, 70}, {3, 300, 211}, {1, 20_011, 3}, {31, 700, 1}, {2, 3, 20_011}, {9, 1, 5}} {
		x := whole(rng, shape).Param()
		tape := tensor.NewTape(tensor.Train)
		y, mean := tensor.SumAxis(tape, x, 1), tensor.MeanAxis(tape, x, 1)
		dy := whole(rng, y.Shape())
		tape.Backward(y, dy)
		want, grad := make([]float32, y.Len()), make([]float32, x.Len())
		n, inner := shape[1], shape[2]
		for e, v := range x.Data() {
			at := e/(n*inner)*inner + e%inner
			want[at] += v
			grad[e] = dy.Data()[at]
		}
		tensortest.Same(t, "sum", y.Data(), want)
		tensortest.Same(t, "gradient of sum", x.Grad().Data(), grad)
		for i, v := range mean.Data() {
			if off := math.Abs(float64(v) - float64(want[i])/float64(n)); off > 1e-5 {
				t.Errorf("shape %v: mean %d is %v, want %v", shape, i, v, want[i]/float32(n))
			}
		}
	}
	for _, shape := range [][]int{{61, 7, 67}, {3, 20_011}, {1000, 32}, {1, 64}} {
		a, b := whole(rng, shape), whole(rng, shape[len(shape)-1:])
		tape := tensor.NewTape(tensor.Train)
		x, y := tensor.Scale(tape, a.Clone().Param(), 1), tensor.Scale(tape, b.Clone().Param(), 1)
		z := tensor.Add(tape, tensor.Mul(tape, x, y), y)
		dz := whole(rng, shape)
		tape.Backward(z, dz)
		want, da, db := make([]float32, z.Len()), make([]float32, z.Len()), make([]float32, b.Len())
		for i, v := range a.Data() {
			j := i % len(db)
			want[i] = v*b.Data()[j] + b.Data()[j]
			da[i] += dz.Data()[i] * b.Data()[j]
			db[j] += dz.Data()[i] * (v + 1)
		}
		tensortest.Same(t, "repeated operand", z.Data(), want)
		tensortest.Same(t, "gradient of the long operand", x.Grad().Data(), da)
		tensortest.Same(t, "gradient of the repeated operand", y.Grad().Data(), db)
	}
}
