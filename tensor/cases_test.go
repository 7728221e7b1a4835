package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// opCase is an operation with its operands. The table below is used by the tests of results, the gradient check, the
// comparison of thread counts and the benchmark of every operation.
type opCase struct {
	name string // if there is no formula, also the name in the golden file
	f    func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor

	// A golden case reads its operands from the file, except its integer operands, which come first and are given in
	// f.
	ints int

	// Any other case draws normally distributed operands of the shapes in. It gives the shape of its result and a
	// formula for one element.
	in    [][]int
	shape []int
	want  func(x []*tensor.Tensor, i []int) float64

	positive bool                     // operands are positive in benchmarks
	keep     float32                  // minimum distance of operands from zero in the gradient check
	bench    [][]int                  // shapes of the operands in benchmarks
	prepare  func(x []*tensor.Tensor) // inserts special values into drawn operands
}

// opCases lists the operations in the order of the package's files.
func opCases() []opCase {
	return slices.Concat(elementwiseCases(), productCases(), moveCases(), rowCases(), dropoutCases())
}

func elementwiseCases() []opCase {
	long := [][]int{{163, 509}}
	twoLong := [][]int{{163, 509}, {163, 509}}
	return []opCase{
		{name: "tanh", f: unary(tensor.Tanh), bench: long},
		{name: "sigmoid", f: unary(tensor.Sigmoid), bench: long},
		{name: "relu", f: unary(tensor.ReLU), bench: long, keep: 0.1},
		{name: "gelu", f: unary(tensor.GELU), bench: long},
		{name: "softplus", f: unary(tensor.Softplus), bench: long},
		{name: "elu", f: unary(tensor.ELU), bench: long},
		{name: "silu", f: unary(tensor.SiLU), bench: long, in: [][]int{{5, 7}}, shape: []int{5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i...) / (1 + math.Exp(-at(x[0], i...))) }},
		{name: "tanh_gelu", f: unary(tensor.TanhGELU), bench: long, in: [][]int{{5, 7}}, shape: []int{5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 {
				x0 := at(x[0], i...)
				return x0 / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x0+0.044715*x0*x0*x0)))
			}},
		{name: "quick_gelu", f: unary(tensor.QuickGELU), bench: long, in: [][]int{{5, 7}}, shape: []int{5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 {
				return at(x[0], i...) / (1 + math.Exp(-1.702*at(x[0], i...)))
			}},
		{name: "exp", f: unary(tensor.Exp), bench: long},
		{name: "log", f: unary(tensor.Log), bench: long, keep: 0.5, positive: true},
		{name: "log1p", f: unary(tensor.Log1p), bench: long, positive: true, in: [][]int{{5, 7}}, shape: []int{5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 { return math.Log1p(at(x[0], i...)) }},
		{name: "sqrt", f: unary(tensor.Sqrt), bench: long, keep: 0.3, positive: true},
		{name: "square", f: unary(tensor.Square), bench: long},
		{name: "scale", f: with(tensor.Scale, -1.7), bench: long, in: [][]int{{5, 7}}, shape: []int{5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 { return -float64(float32(1.7)) * at(x[0], i...) }},
		{name: "shift", f: with(tensor.Shift, -1.7), bench: long, in: [][]int{{5, 7}}, shape: []int{5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i...) - 1.7 }},

		{name: "add_broadcast", f: binary(tensor.Add), bench: [][]int{{7, 61, 211}, {61, 1}}},
		{name: "sub_broadcast", f: binary(tensor.Sub), bench: [][]int{{7, 61, 211}, {211}}},
		{name: "mul_broadcast", f: binary(tensor.Mul), bench: [][]int{{1, 61, 211}, {7, 1, 211}}},
		{name: "div_broadcast", f: binary(tensor.Div), bench: [][]int{{7, 61, 211}, {61, 1}}, positive: true},
		{name: "add_same", f: binary(tensor.Add), bench: twoLong, in: [][]int{{5, 7}, {5, 7}}, shape: []int{5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i...) + at(x[1], i...) }},
		{name: "mul_same", f: binary(tensor.Mul), bench: twoLong, in: [][]int{{5, 7}, {5, 7}}, shape: []int{5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i...) * at(x[1], i...) }},
		{name: "sub_outer", f: binary(tensor.Sub), in: [][]int{{5, 1}, {3, 1, 7}}, shape: []int{3, 5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i[1], 0) - at(x[1], i[0], 0, i[2]) }},
		{name: "mul_scalar", f: binary(tensor.Mul), in: [][]int{{5, 7}, {}}, shape: []int{5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i...) * at(x[1]) }},
		{name: "mul_scalars", f: binary(tensor.Mul), in: [][]int{{}, {}}, shape: []int{},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0]) * at(x[1]) }},
		{name: "mul_with_itself", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Mul(t, x[0], x[0]) },
			in: [][]int{{5, 7}}, shape: []int{5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i...) * at(x[0], i...) }},
		{name: "broadcast_last", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.BroadcastTo(t, x[0], 5, 7) },
			in: [][]int{{5, 1}}, shape: []int{5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i[0], 0) }},
		{name: "broadcast_to_a_vector", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.BroadcastTo(t, x[0], 7) },
			in: [][]int{{1}}, shape: []int{7},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], 0) }},
		{name: "broadcast_middle", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor {
			return tensor.BroadcastTo(t, x[0], 2, 3, 5, 7)
		}, in: [][]int{{3, 1, 7}}, shape: []int{2, 3, 5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i[1], 0, i[3]) }},

		{name: "sum_all", f: unary(tensor.Sum), bench: long},
		{name: "mean_all", f: unary(tensor.Mean), bench: long},
		{name: "sum_axis", f: with(tensor.SumAxis, 1), bench: [][]int{{7, 61, 211}}},
		{name: "mean_axis", f: with(tensor.MeanAxis, 1), bench: [][]int{{7, 61, 211}}},
		{name: "sum_axis_last", f: with(tensor.SumAxis, 2), in: [][]int{{2, 3, 5}}, shape: []int{2, 3}, bench: [][]int{{7, 61, 211}},
			want: func(x []*tensor.Tensor, i []int) float64 {
				return sum(5, func(j int) float64 { return at(x[0], i[0], i[1], j) })
			}},
		{name: "mean_axis_first", f: with(tensor.MeanAxis, 0), in: [][]int{{3, 5}}, shape: []int{5},
			want: func(x []*tensor.Tensor, i []int) float64 {
				return sum(3, func(j int) float64 { return at(x[0], j, i[0]) }) / 3
			}},
	}
}

func productCases() []opCase {
	return []opCase{
		{name: "matmul", f: binary(tensor.MatMul), bench: [][]int{{127, 131}, {131, 137}}},
		{name: "matmul_batched", f: binary(tensor.MatMul), bench: [][]int{{2, 3, 61, 67}, {2, 3, 67, 71}}},
		{name: "matmul_bt", f: binary(tensor.MatMulT), bench: [][]int{{127, 131}, {137, 131}}},
		{name: "matmul_bt_batched", f: binary(tensor.MatMulT), bench: [][]int{{5, 61, 67}, {5, 71, 67}}},
		{name: "matmul_shared", f: binary(tensor.MatMul), bench: [][]int{{7, 61, 67}, {67, 71}},
			in: [][]int{{2, 3, 5, 7}, {7, 11}}, shape: []int{2, 3, 5, 11},
			want: func(x []*tensor.Tensor, i []int) float64 {
				return sum(7, func(k int) float64 { return at(x[0], i[0], i[1], i[2], k) * at(x[1], k, i[3]) })
			}},
		{name: "matmul_bt_shared", f: binary(tensor.MatMulT), bench: [][]int{{7, 61, 67}, {71, 67}},
			in: [][]int{{3, 5, 7}, {11, 7}}, shape: []int{3, 5, 11},
			want: func(x []*tensor.Tensor, i []int) float64 {
				return sum(7, func(k int) float64 { return at(x[0], i[0], i[1], k) * at(x[1], i[2], k) })
			}},
		{name: "matmul_with_itself", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.MatMulT(t, x[0], x[0]) },
			in: [][]int{{5, 7}}, shape: []int{5, 5},
			want: func(x []*tensor.Tensor, i []int) float64 {
				return sum(7, func(k int) float64 { return at(x[0], i[0], k) * at(x[0], i[1], k) })
			}},
		{name: "mix", f: binary(tensor.Mix), bench: [][]int{{5, 61, 67}, {5, 67, 71}},
			in: [][]int{{2, 5, 7}, {2, 7, 11}}, shape: []int{2, 5, 11},
			prepare: func(x []*tensor.Tensor) { // some weights are zero, and so is a whole row
				w := x[0].Data()
				for i := 0; i < len(w); i += 3 {
					w[i] = 0
				}
				clear(w[:x[0].Dim(-1)])
			},
			want: func(x []*tensor.Tensor, i []int) float64 {
				return sum(7, func(k int) float64 { return at(x[0], i[0], i[1], k) * at(x[1], i[0], k, i[2]) })
			}},
		{name: "linear", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Linear(t, x[0], x[1], x[2]) },
			bench: [][]int{{7, 61, 67}, {71, 67}, {71}}},
		{name: "linear_without_bias", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Linear(t, x[0], x[1], nil) },
			in: [][]int{{5, 7}, {11, 7}}, shape: []int{5, 11},
			want: func(x []*tensor.Tensor, i []int) float64 {
				return sum(7, func(k int) float64 { return at(x[0], i[0], k) * at(x[1], i[1], k) })
			}},
		{name: "linear_of_a_vector", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Linear(t, x[0], x[1], x[2]) },
			in: [][]int{{7}, {11, 7}, {11}}, shape: []int{11},
			want: func(x []*tensor.Tensor, i []int) float64 {
				return at(x[2], i[0]) + sum(7, func(k int) float64 { return at(x[0], k) * at(x[1], i[0], k) })
			}},
	}
}

func unary(f func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor) func(*tensor.Tape, []*tensor.Tensor) *tensor.Tensor {
	return func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return f(t, x[0]) }
}

func binary(f func(t *tensor.Tape, a, b *tensor.Tensor) *tensor.Tensor) func(*tensor.Tape, []*tensor.Tensor) *tensor.Tensor {
	return func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return f(t, x[0], x[1]) }
}

func with[A any](f func(*tensor.Tape, *tensor.Tensor, A) *tensor.Tensor, a A) func(*tensor.Tape, []*tensor.Tensor) *tensor.Tensor {
	return func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return f(t, x[0], a) }
}

// at returns an element of x as float64, for exact formulas.
func at(x *tensor.Tensor, i ...int) float64 { return float64(x.At(i...)) }

// sum returns f(0) + … + f(n−1).
func sum(n int, f func(i int) float64) float64 {
	s := 0.0
	for i := range n {
		s += f(i)
	}
	return s
}

// draw returns operands of the given shapes.
func (c *opCase) draw(shapes [][]int) []*tensor.Tensor {
	rng := rand.New(rand.NewPCG(11, uint64(len(c.name))))
	x := make([]*tensor.Tensor, len(shapes))
	for i, shape := range shapes {
		x[i] = tensor.Randn(rng, shape...)
		if c.positive {
			for j, v := range x[i].Data() {
				x[i].Data()[j] = 0.5 + float32(math.Abs(float64(v)))
			}
		}
	}
	if c.prepare != nil {
		c.prepare(x)
	}
	return x
}

// operands returns the operands of the test.
func (c *opCase) operands(g *tensortest.Golden) []*tensor.Tensor {
	if c.want != nil {
		return c.draw(c.in)
	}
	var x []*tensor.Tensor
	for i := c.ints; ; i++ {
		name := fmt.Sprintf("%s.in%d", c.name, i)
		if !g.Has(name) {
			return x
		}
		x = append(x, g.Tensor(name))
	}
}

// large returns operands for benchmarks, as parameters.
func (c *opCase) large(g *tensortest.Golden) []*tensor.Tensor {
	x := c.operands(g)
	if c.bench != nil {
		x = c.draw(c.bench)
	}
	for _, x := range x {
		x.Param()
	}
	return x
}

func openOps(tb testing.TB) *tensortest.Golden {
	return tensortest.Open(tb, "../testdata/golden/ops.safetensors")
}
