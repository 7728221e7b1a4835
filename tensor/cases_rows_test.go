package tensor_test

import (
	"math"

	"github.com/attn-go/attn/tensor"
)

func moveCases() []opCase {
	return []opCase{
		{name: "reshape", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Reshape(t, x[0], 3, -1) },
			in: [][]int{{2, 3, 5}}, shape: []int{3, 10},
			want: func(x []*tensor.Tensor, i []int) float64 { return float64(x[0].Data()[i[0]*10+i[1]]) }},
		{name: "reshape_to_a_scalar", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Reshape(t, x[0]) },
			in: [][]int{{1, 1}}, shape: []int{},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], 0, 0) }},
		{name: "reshape_of_a_result", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor {
			return tensor.Square(t, tensor.Reshape(t, tensor.Reshape(t, tensor.Shift(t, x[0], 1), -1), 5, 6))
		}, in: [][]int{{2, 3, 5}}, shape: []int{5, 6},
			want: func(x []*tensor.Tensor, i []int) float64 { return math.Pow(float64(x[0].Data()[i[0]*6+i[1]])+1, 2) }},
		{name: "index", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Index(t, x[0], 1, 2) },
			in: [][]int{{2, 3, 5, 7}}, shape: []int{5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], 1, 2, i[0], i[1]) }},
		{name: "index_all", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Index(t, x[0], 1, 0) },
			in: [][]int{{2, 3}}, shape: []int{},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], 1, 0) }},
		{name: "index_nothing", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Index(t, x[0]) },
			in: [][]int{{2, 3}}, shape: []int{2, 3},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i...) }},
		{name: "index_of_a_result", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor {
			y := tensor.Square(t, x[0]) // the result is used as a whole, and one of its two parts twice
			part := tensor.Reshape(t, tensor.Index(t, y, 1), 15)
			return tensor.Concat(t, 0, part, tensor.Reshape(t, tensor.Index(t, y, 0, 2), 5), tensor.Mul(t, part, part), tensor.Reshape(t, y, -1))
		}, in: [][]int{{2, 3, 5}}, shape: []int{65},
			want: func(x []*tensor.Tensor, i []int) float64 {
				y := func(i int) float64 { return math.Pow(float64(x[0].Data()[i]), 2) }
				switch e := i[0]; {
				case e < 15:
					return y(15 + e)
				case e < 20:
					return y(10 + e - 15)
				case e < 35:
					return y(15+e-20) * y(15+e-20)
				default:
					return y(e - 35)
				}
			}},
		{name: "transpose", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Transpose(t, x[0], 0, 2, 1, 3) },
			bench: [][]int{{3, 61, 7, 67}}},
		{name: "transpose_matrix", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Transpose(t, x[0], 1, 0) },
			bench: [][]int{{163, 509}}, in: [][]int{{5, 7}}, shape: []int{7, 5},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i[1], i[0]) }},
		{name: "transpose_cycle", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Transpose(t, x[0], 1, 2, 0) },
			in: [][]int{{2, 3, 5}}, shape: []int{3, 5, 2},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i[2], i[0], i[1]) }},
		{name: "transpose_vector", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Transpose(t, x[0], 0) },
			in: [][]int{{5}}, shape: []int{5},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i[0]) }},
		{name: "transpose_nothing", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Transpose(t, x[0]) },
			in: [][]int{{}}, shape: []int{},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0]) }},
		{name: "concat", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Concat(t, 1, x...) },
			bench: [][]int{{7, 31, 67}, {7, 11, 67}, {7, 61, 67}}},
		{name: "concat_first", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Concat(t, 0, x...) },
			in: [][]int{{2, 7}, {3, 7}}, shape: []int{5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 {
				if i[0] < 2 {
					return at(x[0], i...)
				}
				return at(x[1], i[0]-2, i[1])
			}},
		{name: "concat_with_itself", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Concat(t, 1, x[0], x[1], x[0]) },
			in: [][]int{{2, 3}, {2, 1}}, shape: []int{2, 7},
			want: func(x []*tensor.Tensor, i []int) float64 {
				if i[1] == 3 {
					return at(x[1], i[0], 0)
				}
				return at(x[0], i[0], i[1]%4)
			}},
		{name: "slice", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Slice(t, x[0], 1, 2, 5) },
			bench: [][]int{{61, 7, 67}}},
		{name: "slice_last", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Slice(t, x[0], 2, 1, 5) },
			in: [][]int{{2, 3, 5}}, shape: []int{2, 3, 4},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i[0], i[1], i[2]+1) }},
		{name: "slice_nothing", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Slice(t, x[0], 0, 2, 2) },
			in: [][]int{{2, 3}}, shape: []int{0, 3},
			want: func(x []*tensor.Tensor, i []int) float64 { return 0 }},
		{name: "embedding", ints: 1, f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor {
			return tensor.Gather(t, x[0], []int{4, 0, 4, 10, 2, 0})
		}, bench: [][]int{{11, 257}}},
		{name: "gather_matrices", f: with(tensor.Gather, []int{2, 0, 2}),
			in: [][]int{{3, 5, 7}}, shape: []int{3, 5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], []int{2, 0, 2}[i[0]], i[1], i[2]) }},
		{name: "gather_sum", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor {
			return tensor.GatherSum(t, []*tensor.Tensor{x[0], x[1], x[0]}, [][]int{{2, 0}, {1, 1}, {0, 0}})
		}, in: [][]int{{3, 5}, {2, 5}}, shape: []int{2, 5},
			want: func(x []*tensor.Tensor, i []int) float64 {
				return at(x[0], []int{2, 0}[i[0]], i[1]) + at(x[1], 1, i[1]) + at(x[0], 0, i[1])
			}},
		{name: "gather_nothing", f: with(tensor.Gather, []int{}), in: [][]int{{3, 5}}, shape: []int{0, 5},
			want: func(x []*tensor.Tensor, i []int) float64 { return 0 }},
	}
}

func rowCases() []opCase {
	wide := [][]int{{7, 61, 211}}
	return []opCase{
		{name: "softmax_last", f: unary(tensor.Softmax), bench: wide},
		{name: "log_softmax_last", f: unary(tensor.LogSoftmax), bench: wide},
		{name: "logsumexp_last", f: unary(tensor.LogSumExp), bench: wide},
		{name: "layer_norm", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor {
			return tensor.LayerNorm(t, x[0], x[1], x[2], 1e-5)
		}, bench: [][]int{{7, 61, 211}, {211}, {211}}},
		{name: "rms_norm", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.RMSNorm(t, x[0], x[1], 1e-5) },
			bench: [][]int{{7, 61, 211}, {211}}},
		{name: "add_layer_norm", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor {
			_, y := tensor.AddLayerNorm(t, x[0], x[1], 0.3, x[2], x[3], 1e-5)
			return y
		}, in: [][]int{{5, 7}, {5, 7}, {7}, {7}}, shape: []int{5, 7}, bench: [][]int{{427, 211}, {427, 211}, {211}, {211}},
			want: func(x []*tensor.Tensor, i []int) float64 {
				return at(tensor.LayerNorm(nil, tensor.AddDropout(training(), x[0], x[1], 0.3), x[2], x[3], 1e-5), i...)
			}},
		{name: "add_rms_norm", f: func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor {
			sum, y := tensor.AddRMSNorm(t, x[0], x[1], 0, x[2], 1e-5)
			return tensor.Add(t, sum, y)
		}, in: [][]int{{5, 7}, {5, 7}, {7}}, shape: []int{5, 7}, bench: [][]int{{427, 211}, {427, 211}, {211}},
			want: func(x []*tensor.Tensor, i []int) float64 {
				sum := tensor.Add(nil, x[0], x[1])
				return at(sum, i...) + at(tensor.RMSNorm(nil, sum, x[2], 1e-5), i...)
			}},
		{name: "l2_normalize", f: with(tensor.Normalize, 1e-12), bench: wide},
		{name: "normalize_short", f: with(tensor.Normalize, 11), // all vectors are shorter than eps
			in: [][]int{{5, 7}}, shape: []int{5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i...) / 11 }},
		{name: "normalize_zero", f: with(tensor.Normalize, 0.5), // at a vector of zeros, the gradient is 1/eps
			prepare: func(x []*tensor.Tensor) { clear(x[0].Data()) },
			in:      [][]int{{3}}, shape: []int{3},
			want: func(x []*tensor.Tensor, i []int) float64 { return 0 }},
	}
}

// dropoutCases multiply x by the mask that Dropout applies to ones.
func dropoutCases() []opCase {
	return []opCase{
		{name: "dropout_off", f: with(tensor.Dropout, 0), in: [][]int{{5, 7}}, shape: []int{5, 7},
			want: func(x []*tensor.Tensor, i []int) float64 { return at(x[0], i...) }},
		{name: "dropout", f: with(tensor.Dropout, 0.3), in: [][]int{{5, 7}}, shape: []int{5, 7}, bench: [][]int{{163, 509}},
			want: func(x []*tensor.Tensor, i []int) float64 {
				mask := tensor.Dropout(training(), tensor.Full(1, 5, 7), 0.3)
				return at(x[0], i...) * at(mask, i...)
			}},
	}
}
