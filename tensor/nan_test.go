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

var (
	nan = float32(math.NaN())
	inf = float32(math.Inf(1))
)

// overwriteRows returns a copy of x with the given rows set to bad.
func overwriteRows(x *tensor.Tensor, bad float32, rows ...int) *tensor.Tensor {
	x, d := x.Clone(), x.Dim(-1)
	for _, r := range rows {
		for i := range d {
			x.Data()[r*d+i] = bad
		}
	}
	return x
}

// Rows with zero weight reach neither results nor gradients: NaN and Inf in hidden rows give the same bits as zeros
// do.
func TestHiddenRowsDoNotLeak(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 8))
	const lq, lk, e = 5, 17, 7
	q, k, v := tensor.Randn(rng, lq, e), tensor.Randn(rng, lk, e), tensor.Randn(rng, lk, e)
	dout := tensor.Randn(rng, lq, e)
	hidden := []int{1, 2, 8, 15, 16}
	attend := func(bad float32) []*tensor.Tensor {
		tape := tensortest.Tape(tensor.Train)
		q, k, v := q.Clone().Param(), overwriteRows(k, bad, hidden...).Param(), overwriteRows(v, bad, hidden...).Param()
		weights := tensor.Softmax(tape, hide(tape, tensor.MatMulT(tape, q, k), hidden))
		out := tensor.Mix(tape, weights, v)
		tape.Backward(out, dout)
		return []*tensor.Tensor{out, weights, q.Grad(), k.Grad(), v.Grad()}
	}
	want := attend(0)
	for _, bad := range []float32{nan, inf, -inf, math.MaxFloat32} {
		for i, got := range attend(bad) {
			what := []string{"out", "weights", "gradient of q", "gradient of k", "gradient of v"}[i]
			tensortest.Same(t, fmt.Sprintf("%s with %v in hidden rows", what, bad), got.Data(), want[i].Data())
		}
	}
}

// hide returns scores with −Inf in the hidden columns.
func hide(t *tensor.Tape, scores *tensor.Tensor, hidden []int) *tensor.Tensor {
	copied := func(dst, src []float32) {
		for i, v := range src {
			if !slices.Contains(hidden, i%scores.Dim(-1)) {
				dst[i] = v
			}
		}
	}
	y := t.Make(scores.Shape()...)
	for i := range y.Data() {
		y.Data()[i] = -inf
	}
	copied(y.Data(), scores.Data())
	t.Record(y, func(dy []float32) { copied(t.GradOf(scores), dy) })
	return y
}

// In every operation, an upstream gradient of zero contributes zero, for any operands.
func TestNothingComesOfAZeroGradient(t *testing.T) {
	golden := openOps(t)
	for _, c := range opCases() {
		for _, bad := range []float32{nan, inf, -inf, 0} {
			x := c.operands(golden)
			for _, x := range x {
				x.Param()
				for i := range x.Data() {
					x.Data()[i] = bad
				}
			}
			tape := tensortest.Tape(tensor.Train)
			y := c.f(tape, x)
			tape.Backward(y, tensor.Zeros(y.Shape()...))
			for i, x := range x {
				tensortest.Same(t, fmt.Sprintf("%s of %v: gradient %d", c.name, bad, i), absolute(x.Grad().Data()), make([]float32, x.Len()))
			}
		}
	}
}

// absolute returns the magnitudes of x, so that −0 is 0.
func absolute(x []float32) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(math.Abs(float64(v)))
	}
	return y
}

// A row whose upstream gradient is zero, such as padding, contributes nothing to the gradients of shared parameters,
// even if it contains NaN.
func TestNothingComesOfRowsWithoutGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 9))
	x, w, b := tensor.Randn(rng, 11, 7), tensor.Randn(rng, 5, 7), tensor.Randn(rng, 5)
	gain, shift := tensor.Randn(rng, 7), tensor.Randn(rng, 7)
	hidden := []int{0, 3, 10}
	for _, op := range []struct {
		name   string
		f      func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor
		shared []*tensor.Tensor
	}{
		{"Linear", func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.Linear(t, x[0], x[1], x[2]) }, []*tensor.Tensor{w, b}},
		{"MatMulT", binary(tensor.MatMulT), []*tensor.Tensor{w}},
		{"MatMul", binary(tensor.MatMul), []*tensor.Tensor{tensor.Transpose(nil, w, 1, 0)}},
		{"LayerNorm", func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor {
			return tensor.LayerNorm(t, x[0], x[1], x[2], 1e-5)
		}, []*tensor.Tensor{gain, shift}},
		{"RMSNorm", func(t *tensor.Tape, x []*tensor.Tensor) *tensor.Tensor { return tensor.RMSNorm(t, x[0], x[1], 1e-5) }, []*tensor.Tensor{gain}},
		{"Mul", binary(tensor.Mul), []*tensor.Tensor{gain}},
		{"Div", binary(tensor.Div), []*tensor.Tensor{gain}},
		{"Softmax", unary(tensor.Softmax), nil},
		{"LogSoftmax", unary(tensor.LogSoftmax), nil},
	} {
		run := func(bad float32) []*tensor.Tensor {
			operands := []*tensor.Tensor{overwriteRows(x, bad, hidden...).Param()}
			for _, p := range op.shared {
				operands = append(operands, p.Clone().Param())
			}
			tape := tensortest.Tape(tensor.Train)
			y := op.f(tape, operands)
			dout := tensor.Randn(rand.New(rand.NewPCG(5, 10)), y.Shape()...)
			tape.Backward(y, overwriteRows(dout, 0, hidden...))
			var grads []*tensor.Tensor
			for _, x := range operands {
				grads = append(grads, x.Grad())
			}
			return grads
		}
		want := run(0)
		for _, bad := range []float32{nan, inf} {
			for i, got := range run(bad) {
				tensortest.Same(t, fmt.Sprintf("%s: gradient %d with %v in x", op.name, i, bad), got.Data(), want[i].Data())
			}
		}
	}

	// A NaN in a column of w that dout does not use does not spread.
	tape := tensor.NewTape(tensor.Train)
	p := x.Clone().Param()
	bad := w.Clone()
	for i := range 7 {
		bad.Data()[2*7+i] = nan
	}
	d := tensor.Randn(rng, 11, 5)
	for r := range 11 {
		d.Data()[r*5+2] = 0
	}
	tape.Backward(tensor.Linear(tape, p, bad, nil), d)
	for i, g := range p.Grad().Data() {
		if g != g {
			t.Fatalf("gradient of x, element %d: a NaN in an output without gradient leaked", i)
		}
	}
}

func TestSoftmaxOfExtremes(t *testing.T) {
	for _, c := range []struct {
		name    string
		x, want []float32
	}{
		{"large", []float32{1e30, 1e30, -1e30}, []float32{0.5, 0.5, 0}},
		{"one infinitely low", []float32{-inf, 2, 2}, []float32{0, 0.5, 0.5}},
		{"all infinitely low", []float32{-inf, -inf, -inf}, []float32{0, 0, 0}},
		{"far apart", []float32{0, -200, 0}, []float32{0.5, 0, 0.5}},
	} {
		x := tensor.New(c.x, 1, 3).Param()
		tape := tensortest.Tape(tensor.Train)
		y := tensor.Softmax(tape, x)
		tensortest.Same(t, c.name, y.Data(), c.want)
		tape.Backward(y, tensor.New([]float32{1, 2, 3}, 1, 3))
		for i, w := range c.want {
			if g := x.Grad().Data()[i]; g != g || (w == 0 && g != 0) {
				t.Errorf("%s: gradient %d is %v", c.name, i, g)
			}
		}
	}
	for _, c := range []struct {
		name string
		x    []float32
		want float32
		grad []float32
	}{
		{"large", []float32{1e30, 1, -1e30}, 1e30, []float32{1, 0, 0}},
		{"one infinitely low", []float32{-inf, 0, -inf}, 0, []float32{0, 1, 0}},
		{"all infinitely low", []float32{-inf, -inf}, -inf, []float32{0, 0}},
		{"one infinitely high", []float32{inf, 0}, inf, []float32{nan, nan}},
		{"infinitely high, and NaN", []float32{inf, nan}, nan, []float32{nan, nan}},
		{"nothing", nil, -inf, nil},
	} {
		x := tensor.New(c.x, 1, len(c.x)).Param()
		tape := tensortest.Tape(tensor.Train)
		y := tensor.LogSumExp(tape, x)
		tensortest.Same(t, "LogSumExp, "+c.name, y.Data(), []float32{c.want})
		tape.Backward(y, tensor.Full(1, 1))
		tensortest.Same(t, "gradient of LogSumExp, "+c.name, x.Grad().Data(), c.grad)
	}
	tensortest.Same(t, "LogSoftmax", tensor.LogSoftmax(nil, tensor.New([]float32{1e4, 0, 1e4 - 200}, 3)).Data(), []float32{0, -1e4, -200})
}

// The elementwise operations return NaN exactly where an operand is NaN.
func TestNaNStaysVisible(t *testing.T) {
	ops := map[string]func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor{
		"Tanh": tensor.Tanh, "Sigmoid": tensor.Sigmoid, "ReLU": tensor.ReLU, "GELU": tensor.GELU, "Exp": tensor.Exp,
		"Log": tensor.Log, "Log1p": tensor.Log1p, "Sqrt": tensor.Sqrt, "Square": tensor.Square, "Softplus": tensor.Softplus, "ELU": tensor.ELU,
	}
	for name, op := range ops {
		for at := range 19 {
			x := tensor.Full(1, 19)
			x.Data()[at] = nan
			for i, v := range op(nil, x).Data() {
				if (v != v) != (i == at) {
					t.Errorf("%s: NaN in element %d, but element %d is %v", name, at, i, v)
				}
			}
		}
	}
}

// Softplus and ELU, and their derivatives, where exp overflows, underflows or has lost the digits of x.
func TestSoftplusAndELUOfExtremes(t *testing.T) {
	x := []float32{-inf, -1e30, -80, -20, -1e-3, -1e-20, 0, 1e-20, 1e-3, 20, 100, 1e30, inf}
	for name, c := range map[string]struct {
		op       func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor
		f, slope func(x float64) float64
	}{
		"Softplus": {tensor.Softplus,
			func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) },
			func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
		"ELU": {tensor.ELU,
			func(x float64) float64 { return max(x, math.Expm1(min(x, 0))) },
			func(x float64) float64 { return math.Exp(min(x, 0)) }},
	} {
		p, tape := tensor.New(x, len(x)).Param(), tensortest.Tape(tensor.Train)
		y := c.op(tape, p)
		tape.Backward(y, tensor.Full(1, len(x)))
		for i, v := range x {
			for _, r := range []struct {
				what string
				got  float32
				want float64
			}{{"", y.Data()[i], c.f(float64(v))}, {"slope of ", p.Grad().Data()[i], c.slope(float64(v))}} {
				if w := float32(r.want); r.got != w && !(math.Abs(float64(r.got-w)) <= 3e-7*math.Abs(r.want)) {
					t.Errorf("%s%s at %v: %v, want %v", r.what, name, v, r.got, w)
				}
			}
		}
	}
}
