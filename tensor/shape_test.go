package tensor_test

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"testing"

	"github.com/attn-go/attn/tensor"
)

func TestBadShapes(t *testing.T) {
	z := tensor.Zeros
	gather := func(index ...int) func() { return func() { tensor.Gather(nil, z(3, 5), index) } }
	for _, c := range []struct {
		f    func()
		want string // a regular expression for the whole message
	}{
		{func() { tensor.New(make([]float32, 5), 2, 3) }, `tensor: New: data has 5 values, want 6 for shape \[2 3\]`},
		{func() { tensor.New(nil, -1, 3) }, `tensor: New: tensor has shape \[-1 3\], want no negative axis`},
		{func() { z(2, 3).At(1) }, `tensor: At: x has shape \[2 3\], want 1 axes`},
		{func() { z(2, 3).At(1, 3) }, `tensor: At: x has shape \[2 3\], want an element \[1 3\]`},
		{func() { z(2, 3).At(-1, 0) }, `tensor: At: x has shape .*, want an element \[-1 0\]`},
		{func() { z(2, 3).Dim(2) }, `tensor: Dim: x has shape \[2 3\], want an axis 2`},
		{func() { z(2, 3).Dim(-3) }, `tensor: Dim: x has shape \[2 3\], want an axis -3`},
		{func() { z(2, 3).Item() }, `tensor: Item: x has shape \[2 3\], want one element`},

		{func() { tensor.Add(nil, z(2, 3), z(2)) }, `tensor: Add: b has shape \[2\], want a shape that broadcasts with \[2 3\]`},
		{func() { tensor.Sub(nil, z(2), z(3, 5)) }, `tensor: Sub: b has shape \[3 5\], want a shape that broadcasts with \[2\]`},
		{func() { tensor.Mul(nil, z(2, 3), z(3, 3)) }, `tensor: Mul: b .*`},
		{func() { tensor.Div(nil, z(2, 3), z(0)) }, `tensor: Div: b .*`},
		{func() { tensor.BroadcastTo(nil, z(2, 3), 3) }, `tensor: BroadcastTo: x has shape \[2 3\], want at most 1 axes`},
		{func() { tensor.BroadcastTo(nil, z(2, 3), 5, 4, 3) }, `tensor: BroadcastTo: x has shape \[2 3\], want a shape that broadcasts to \[5 4 3\]`},

		{func() { tensor.MatMul(nil, z(3), z(3, 5)) }, `tensor: MatMul: a has shape \[3\], want at least two axes`},
		{func() { tensor.MatMul(nil, z(2, 3), z(3)) }, `tensor: MatMul: b has shape \[3\], want at least two axes`},
		{func() { tensor.MatMul(nil, z(2, 3), z(5, 3)) }, `tensor: MatMul: b has shape \[5 3\], want K=3 as in a \[2 3\]`},
		{func() { tensor.MatMulT(nil, z(2, 3), z(3, 5)) }, `tensor: MatMulT: b has shape \[3 5\], want K=3 as in a \[2 3\]`},
		{func() { tensor.Mix(nil, z(2, 3, 5), z(3, 5, 7)) }, `tensor: Mix: b has shape \[3 5 7\], want leading axes \[2\] as in a`},
		{func() { tensor.MatMul(nil, z(3, 5), z(2, 5, 7)) }, `tensor: MatMul: b has shape \[2 5 7\], want leading axes \[\] as in a`},
		{func() { tensor.Linear(nil, z(), z(5, 3), nil) }, `tensor: Linear: x has shape \[\], want at least one axis`},
		{func() { tensor.Linear(nil, z(2, 3), z(3, 5), nil) }, `tensor: Linear: w has shape \[3 5\], want \[Out In=3\]`},
		{func() { tensor.Linear(nil, z(2, 3), z(3), nil) }, `tensor: Linear: w has shape \[3\], want \[Out In=3\]`},
		{func() { tensor.Linear(nil, z(2, 3), z(5, 3), z(1, 5)) }, `tensor: Linear: b has shape \[1 5\], want \[5\]`},

		{func() { tensor.Reshape(nil, z(2, 3), 5) }, `tensor: Reshape: x has shape \[2 3\], want as many elements as \[5\]`},
		{func() { tensor.Reshape(nil, z(2, 3), 4, -1) }, `tensor: Reshape: .* \[4 -1\]`},
		{func() { tensor.Reshape(nil, z(2, 3), -1, -1) }, `tensor: Reshape: .* \[-1 -1\]`},
		{func() { tensor.Reshape(nil, z(2, 3), -2, -3) }, `tensor: Reshape: .* \[-2 -3\]`},
		{func() { tensor.Reshape(nil, z(2, 3), 2, -3) }, `tensor: Reshape: .* \[2 -3\]`},
		{func() { tensor.Reshape(nil, z(0, 3), 0, -1) }, `tensor: Reshape: .* \[0 -1\]`},
		{func() { tensor.Index(nil, z(2, 3), 2) }, `tensor: Index: x has shape \[2 3\], want an element \[2\]`},
		{func() { tensor.Index(nil, z(2, 3), 1, -1) }, `tensor: Index: x has shape \[2 3\], want an element \[1 -1\]`},
		{func() { tensor.Index(nil, z(2, 3), 1, 2, 0) }, `tensor: Index: x has shape \[2 3\], want an axis 2`},
		{func() { tensor.Index(nil, z(0, 3), 0) }, `tensor: Index: x has shape \[0 3\], want an element \[0\]`},
		{func() { tensor.Transpose(nil, z(2, 3), 0) }, `tensor: Transpose: order has shape \[0\], want every axis of x \[2 3\] once`},
		{func() { tensor.Transpose(nil, z(2, 3), 1, 1) }, `tensor: Transpose: order has shape \[1 1\], .*`},
		{func() { tensor.Transpose(nil, z(2, 3), 1, 2) }, `tensor: Transpose: order .*`},
		{func() { tensor.Transpose(nil, z(2, 3), -1, 0) }, `tensor: Transpose: order .*`},
		{func() { tensor.Transpose(nil, z(2, 3), 0, 2) }, `tensor: Transpose: order .*`},
		{func() { tensor.Transpose(nil, z(2, 3), -1, 1) }, `tensor: Transpose: order .*`},
		{func() { tensor.Transpose(nil, z(2, 3, 5), 0, 0, 2) }, `tensor: Transpose: order .*`},
		{func() { tensor.Concat(nil, 0) }, `tensor: Concat: xs has shape \[\], want at least one tensor`},
		{func() { tensor.Concat(nil, 2, z(2, 3)) }, `tensor: Concat: x has shape \[2 3\], want an axis 2`},
		{func() { tensor.Concat(nil, 1, z(2, 3), z(3, 3)) }, `tensor: Concat: xs has shape \[3 3\], want \[2 3\] apart from axis 1`},
		{func() { tensor.Concat(nil, 0, z(2, 3), z(2)) }, `tensor: Concat: xs has shape \[2\], .*`},
		{func() { tensor.Slice(nil, z(2, 3), -1, 0, 1) }, `tensor: Slice: x has shape \[2 3\], want an axis -1`},
		{func() { tensor.Slice(nil, z(2, 3), 1, 2, 4) }, `tensor: Slice: x has shape \[2 3\], want elements 2 to 4 along axis 1`},
		{func() { tensor.Slice(nil, z(2, 3), 1, 2, 1) }, `tensor: Slice: .* elements 2 to 1 .*`},
		{func() { tensor.Slice(nil, z(2, 3), 1, -1, 1) }, `tensor: Slice: .* elements -1 to 1 .*`},
		{gather(0, 3), `tensor: Gather: x has shape \[3 5\], want a row 3`},
		{gather(-1), `tensor: Gather: x has shape \[3 5\], want a row -1`},
		{func() { tensor.Gather(nil, z(), []int{0}) }, `tensor: Gather: x has shape \[\], want an axis 0`},

		{func() { tensor.Softmax(nil, z()) }, `tensor: Softmax: x has shape \[\], want at least one axis`},
		{func() { tensor.LogSoftmax(nil, z()) }, `tensor: LogSoftmax: x .*`},
		{func() { tensor.LogSumExp(nil, z()) }, `tensor: LogSumExp: x .*`},
		{func() { tensor.Normalize(nil, z(), 1) }, `tensor: Normalize: x .*`},
		{func() { tensor.GatherSum(nil, nil, nil) }, `tensor: GatherSum: index has shape \[0\], want one list of rows for each of at least one tensor, 0`},
		{func() { tensor.AddRMSNorm(nil, z(2, 3), z(3, 2), 0, z(3), 1) }, `tensor: AddRMSNorm: y has shape \[3 2\], want \[2 3\]`},
		{func() { tensor.GatherSum(nil, []*tensor.Tensor{z(2, 3), z(2, 4)}, [][]int{{1}, {1}}) }, `tensor: GatherSum: x has shape \[2 4\], want 1 rows with the shape \[3\]`},
		{func() { tensor.GatherSum(nil, []*tensor.Tensor{z(2, 3), z(2, 3)}, [][]int{{1}, {1, 1}}) }, `tensor: GatherSum: x has shape \[2 3\], want 1 rows with the shape \[3\]`},
		{func() { tensor.LayerNorm(nil, z(2, 3), z(2), z(3), 1) }, `tensor: LayerNorm: gain has shape \[2\], want \[3\]`},
		{func() { tensor.LayerNorm(nil, z(2, 3), z(3), z(1, 3), 1) }, `tensor: LayerNorm: shift has shape \[1 3\], want \[3\]`},
		{func() { tensor.RMSNorm(nil, z(2, 3), z(5), 1) }, `tensor: RMSNorm: gain has shape \[5\], want \[3\]`},
		{func() { tensor.Mean(nil, z(0)) }, `tensor: Mean: x has shape \[0\], want at least one element`},
		{func() { tensor.SumAxis(nil, z(2, 3), 2) }, `tensor: SumAxis: x has shape \[2 3\], want an axis 2`},
		{func() { tensor.MeanAxis(nil, z(2, 0), 1) }, `tensor: MeanAxis: x has shape \[2 0\], want at least one element along axis 1`},

		{func() {
			tape := tensor.NewTape(tensor.Train)
			tape.Backward(tensor.Square(tape, z(2).Param()), nil)
		}, `tensor: Backward: out has shape \[2\], want one element, or a gradient dout for it`},
		{func() {
			tensor.NewTape(tensor.Train).BackwardAll([]*tensor.Tensor{z(1)}, nil)
		}, `tensor: Backward: douts has 0 gradients, want 1, a gradient or nil for each output`},
		{func() {
			tape := tensor.NewTape(tensor.Train)
			tape.Backward(tensor.Square(tape, z(2).Param()), z(2, 1))
		}, `tensor: Backward: dout has shape \[2 1\], want \[2\]`},
	} {
		err := tensor.Catch(c.f)
		var shape *tensor.ShapeError
		if !errors.As(err, &shape) {
			t.Errorf("error %v, want a *ShapeError %s", err, c.want)
		} else if !regexp.MustCompile("^" + c.want + "$").MatchString(err.Error()) {
			t.Errorf("error %q, want %s", err, c.want)
		}
	}
}

func TestShapeErrorOfAnotherProperty(t *testing.T) {
	err := &tensor.ShapeError{Op: "attn: Attend", Arg: "mask", What: "lengths", Got: []int{3, 9}, Want: "0 to Lk=7"}
	if got, want := err.Error(), "attn: Attend: mask has lengths [3 9], want 0 to Lk=7"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func TestCatch(t *testing.T) {
	if err := tensor.Catch(func() {}); err != nil {
		t.Errorf("error %v without a panic", err)
	}
	boom := errors.New("boom")
	for _, value := range []any{boom, "boom", tensor.ShapeError{}} { // errors have the type *ShapeError
		func() {
			defer func() {
				if got, ok := recover().(error); value == boom && (!ok || got != boom) {
					t.Errorf("panicked with %v, want boom", got)
				}
			}()
			err := tensor.Catch(func() { panic(value) })
			t.Errorf("Catch(panic %v) returned %v", value, err)
		}()
	}
	func() {
		defer func() {
			if _, ok := recover().(runtime.Error); !ok {
				t.Error("a runtime error did not pass through")
			}
		}()
		var list []int
		_ = tensor.Catch(func() { _ = list[len(t.Name())] })
	}()
}

// Axes of size zero are valid in every operation.
func TestEmptyTensors(t *testing.T) {
	z := tensor.Zeros
	tape := tensor.NewTape(tensor.Train)
	for _, c := range []struct {
		name  string
		y     *tensor.Tensor
		shape []int
		want  float32 // of all elements, if any
	}{
		{"Tanh", tensor.Tanh(tape, z(0, 3).Param()), []int{0, 3}, 0},
		{"Add", tensor.Add(tape, z(0, 3).Param(), z(1, 3).Param()), []int{0, 3}, 0},
		{"Softmax", tensor.Softmax(tape, z(3, 0).Param()), []int{3, 0}, 0},
		{"LogSoftmax", tensor.LogSoftmax(tape, z(3, 0).Param()), []int{3, 0}, 0},
		{"LayerNorm", tensor.LayerNorm(tape, z(3, 0).Param(), z(0).Param(), z(0).Param(), 1), []int{3, 0}, 0},
		{"LayerNorm, no rows", tensor.LayerNorm(tape, z(0, 100).Param(), z(100).Param(), z(100).Param(), 1), []int{0, 100}, 0},
		{"Linear, no rows of many", tensor.Linear(tape, z(0, 2).Param(), z(100, 2).Param(), z(100).Param()), []int{0, 100}, 0},
		{"Normalize", tensor.Normalize(tape, z(0, 3).Param(), 1), []int{0, 3}, 0},
		{"Sum", tensor.Sum(tape, z(0).Param()), []int{}, 0},
		{"SumAxis", tensor.SumAxis(tape, z(3, 0).Param(), 1), []int{3}, 0},
		{"MatMul, nothing to sum", tensor.MatMul(tape, z(2, 0).Param(), z(0, 3).Param()), []int{2, 3}, 0},
		{"MatMul, no rows", tensor.MatMul(tape, z(0, 2).Param(), z(2, 3).Param()), []int{0, 3}, 0},
		{"MatMul, no batch", tensor.MatMul(tape, z(0, 2, 5).Param(), z(0, 5, 3).Param()), []int{0, 2, 3}, 0},
		{"MatMul, no batch, shared", tensor.MatMul(tape, z(0, 2, 5).Param(), z(5, 3).Param()), []int{0, 2, 3}, 0},
		{"MatMulT, no batch", tensor.MatMulT(tape, z(0, 2, 5).Param(), z(0, 3, 5).Param()), []int{0, 2, 3}, 0},
		{"Mix, no batch", tensor.Mix(tape, z(3, 0, 2, 5).Param(), z(3, 0, 5, 7).Param()), []int{3, 0, 2, 7}, 0},
		{"Linear, no features", tensor.Linear(tape, z(2, 0).Param(), z(3, 0).Param(), tensor.Full(5, 3).Param()), []int{2, 3}, 5},
		{"Linear, no rows", tensor.Linear(tape, z(0, 2).Param(), z(3, 2).Param(), z(3).Param()), []int{0, 3}, 0},
		{"Linear, no outputs", tensor.Linear(tape, z(2, 3).Param(), z(0, 3).Param(), z(0).Param()), []int{2, 0}, 0},
		{"Concat", tensor.Concat(tape, 0, z(0, 3).Param(), z(0, 3)), []int{0, 3}, 0},
		{"Concat, inside of nothing", tensor.Concat(tape, 1, z(0, 3).Param(), z(0, 2).Param()), []int{0, 5}, 0},
		{"Slice, inside of nothing", tensor.Slice(tape, z(0, 3).Param(), 1, 1, 3), []int{0, 2}, 0},
		{"Index, of nothing left", tensor.Index(tape, z(2, 0, 3).Param(), 1), []int{0, 3}, 0},
		{"Transpose", tensor.Transpose(tape, z(2, 0, 3).Param(), 2, 1, 0), []int{3, 0, 2}, 0},
		{"Reshape", tensor.Reshape(tape, z(2, 0).Param(), 0, 7), []int{0, 7}, 0},
		{"Reshape, no rows found", tensor.Reshape(tape, z(0, 3).Param(), -1, 3), []int{0, 3}, 0},
	} {
		if !slices.Equal(c.y.Shape(), c.shape) {
			t.Errorf("%s: shape %v, want %v", c.name, c.y.Shape(), c.shape)
		}
		for _, v := range c.y.Data() {
			if v != c.want {
				t.Errorf("%s: element %v, want %v", c.name, v, c.want)
			}
		}
		if c.y.NeedsGrad() {
			tape.Backward(c.y, tensor.Full(1, c.shape...))
		}
	}
}

// A product of no matrices is recorded only if it has a gradient.
func TestEmptyProducts(t *testing.T) {
	for _, tape := range []*tensor.Tape{nil, tensor.NewTape(tensor.Train)} {
		y := tensor.MatMul(tape, tensor.Zeros(0, 2, 5), tensor.Zeros(0, 5, 3))
		if !slices.Equal(y.Shape(), []int{0, 2, 3}) || y.NeedsGrad() {
			t.Errorf("shape %v, needs a gradient: %v", y.Shape(), y.NeedsGrad())
		}
	}
}

// A tensor may have 64 axes, of which the last is the first of the result.
func TestTransposeOfManyAxes(t *testing.T) {
	shape, order := make([]int, 64), make([]int, 64)
	for a := range shape {
		shape[a], order[a] = 1, a
	}
	shape[0], shape[63] = 2, 3
	order[0], order[63] = 63, 0
	y := tensor.Transpose(nil, tensor.New([]float32{1, 2, 3, 4, 5, 6}, shape...), order...)
	if want := []float32{1, 4, 2, 5, 3, 6}; !slices.Equal(y.Data(), want) || y.Dim(0) != 3 || y.Dim(63) != 2 {
		t.Errorf("%v of shape %v, want %v", y.Data(), y.Shape(), want)
	}
}

// A parameter without elements reports so, and is given elements once.
func TestUninitialized(t *testing.T) {
	x := tensor.Uninitialized(2, -1)
	if x.Initialized() || x.NeedsGrad() || x.Len() != 0 || x.String() != "tensor[2 -1]" {
		t.Errorf("%v of %d elements", x, x.Len())
	}
	for want, f := range map[string]func(){
		`tensor: Tanh: x has shape [2 -1], want a parameter with elements: call Build or Forward on its layer first`:    func() { tensor.Tanh(nil, x) },
		`tensor: Materialize: shape has shape [3 5], want [2 -1] of a parameter without elements, where -1 is any size`: func() { x.Materialize(3, 5) },
		`tensor: Materialize: shape has shape [2], want [2 -1] of a parameter without elements, where -1 is any size`:   func() { x.Materialize(2) },
		`tensor: Materialize: shape has shape [5], want [5] of a parameter without elements, where -1 is any size`:      func() { tensor.Zeros(5).Materialize(5) },
	} {
		if err := tensor.Catch(f); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	x.Materialize(2, 3)
	if !x.Initialized() || !x.NeedsGrad() || !slices.Equal(x.Shape(), []int{2, 3}) || x.Len() != 6 {
		t.Errorf("materialized it is %v", x)
	}
}

func TestTensor(t *testing.T) {
	data := []float32{1, 2, 3, 4, 5, 6}
	shape := []int{2, 3}
	x := tensor.New(data, shape...)
	shape[0] = 9
	if x.Rank() != 2 || x.Dim(0) != 2 || x.Dim(-1) != 3 || x.Len() != 6 || x.At(1, 0) != 4 || x.NeedsGrad() || x.Grad() != nil {
		t.Errorf("a fresh tensor is %v of shape %v", x, x.Shape())
	}
	data[3] = 7
	c := x.Clone()
	if x.At(1, 0) != 7 {
		t.Error("New copied its data")
	}
	if x.Param() != x || !x.NeedsGrad() || x.Clone().NeedsGrad() {
		t.Error("Param does not mark its operand, or Clone keeps the mark")
	}
	if data[3] = 8; c.At(1, 0) != 7 {
		t.Error("Clone shares memory")
	}
	if got := tensor.Full(3, 1, 1).Item(); got != 3 {
		t.Errorf("Item is %v, want 3", got)
	}
	for _, c := range []struct {
		x    *tensor.Tensor
		want string
	}{
		{tensor.New([]float32{1, -2.5, 1e-9, 4, 5, 123456}, 2, 3), "[[1 -2.5 1e-09] [4 5 1.235e+05]]"},
		{tensor.New([]float32{7}), "7"},
		{tensor.Zeros(2, 0), "[[] []]"},
		{tensor.Zeros(3, 67), "tensor[3 67]"},
	} {
		if got := c.x.String(); got != c.want {
			t.Errorf("String is %q, want %q", got, c.want)
		}
	}
}

func TestRandomTensors(t *testing.T) {
	const n = 50_021
	rng := rand.New(rand.NewPCG(1, 2))
	x := tensor.Randn(rng, n).Data()
	var mean, square float64
	for _, v := range x {
		mean += float64(v) / n
		square += float64(v) * float64(v) / n
	}
	if mean < -0.02 || mean > 0.02 || square < 0.97 || square > 1.03 {
		t.Errorf("Randn: mean %.3f and mean square %.3f, want 0 and 1", mean, square)
	}
	u := tensor.Uniform(rng, -2, 3, n).Data()
	if lo, hi := slices.Min(u), slices.Max(u); lo < -2 || lo > -1.99 || hi >= 3 || hi < 2.99 {
		t.Errorf("Uniform: from %v to %v, want -2 to 3", lo, hi)
	}
	again := rand.New(rand.NewPCG(1, 2))
	if !slices.Equal(x, tensor.Randn(again, n).Data()) {
		t.Error("Randn gives other numbers for the same seed")
	}
}
