package tensor_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/attn-go/attn/tensor"
)

// wantValueError fails the test unless f panics with a *ValueError with the message.
func wantValueError(t *testing.T, f func(), want string) {
	t.Helper()
	err := tensor.Catch(f)
	var value *tensor.ValueError
	if !errors.As(err, &value) {
		t.Errorf("error %v, want a *ValueError %s", err, want)
	} else if !regexp.MustCompile("^" + want + "$").MatchString(err.Error()) {
		t.Errorf("error %q, want %s", err, want)
	}
}

// operations maps names of the form "operation argument" to calls with x as that argument, of shape [2 2], and valid
// other arguments.
func operations(x *tensor.Tensor) map[string]func(t *tensor.Tape) *tensor.Tensor {
	type tape = *tensor.Tape
	type result = *tensor.Tensor
	z, v, p := tensor.Zeros(2, 2), tensor.Zeros(2), tensor.Zeros(2, 2).Param()
	return map[string]func(t tape) result{
		"Tanh: x":         func(t tape) result { return tensor.Tanh(t, x) },
		"Sigmoid: x":      func(t tape) result { return tensor.Sigmoid(t, x) },
		"ReLU: x":         func(t tape) result { return tensor.ReLU(t, x) },
		"GELU: x":         func(t tape) result { return tensor.GELU(t, x) },
		"Softplus: x":     func(t tape) result { return tensor.Softplus(t, x) },
		"ELU: x":          func(t tape) result { return tensor.ELU(t, x) },
		"Exp: x":          func(t tape) result { return tensor.Exp(t, x) },
		"Log: x":          func(t tape) result { return tensor.Log(t, x) },
		"Log1p: x":        func(t tape) result { return tensor.Log1p(t, x) },
		"Sqrt: x":         func(t tape) result { return tensor.Sqrt(t, x) },
		"Square: x":       func(t tape) result { return tensor.Square(t, x) },
		"Scale: x":        func(t tape) result { return tensor.Scale(t, x, 2) },
		"Shift: x":        func(t tape) result { return tensor.Shift(t, x, 2) },
		"Add: a":          func(t tape) result { return tensor.Add(t, x, z) },
		"Add: b":          func(t tape) result { return tensor.Add(t, z, x) },
		"Sub: a":          func(t tape) result { return tensor.Sub(t, x, z) },
		"Mul: b":          func(t tape) result { return tensor.Mul(t, z, x) },
		"Div: b":          func(t tape) result { return tensor.Div(t, z, x) },
		"MatMul: a":       func(t tape) result { return tensor.MatMul(t, x, z) },
		"MatMul: b":       func(t tape) result { return tensor.MatMul(t, z, x) },
		"MatMulT: a":      func(t tape) result { return tensor.MatMulT(t, x, z) },
		"Mix: b":          func(t tape) result { return tensor.Mix(t, z, x) },
		"Linear: x":       func(t tape) result { return tensor.Linear(t, x, z, v) },
		"Linear: w":       func(t tape) result { return tensor.Linear(t, z, x, v) },
		"Reshape: x":      func(t tape) result { return tensor.Reshape(t, x, 4) },
		"Transpose: x":    func(t tape) result { return tensor.Transpose(t, x, 1, 0) },
		"Concat: xs":      func(t tape) result { return tensor.Concat(t, 0, z, x) },
		"Concat: x":       func(t tape) result { return tensor.Concat(t, 0, x, z) },
		"Slice: x":        func(t tape) result { return tensor.Slice(t, x, 0, 0, 1) },
		"Gather: x":       func(t tape) result { return tensor.Gather(t, x, []int{1}) },
		"Softmax: x":      func(t tape) result { return tensor.Softmax(t, x) },
		"LogSumExp: x":    func(t tape) result { return tensor.LogSumExp(t, x) },
		"LogSoftmax: x":   func(t tape) result { return tensor.LogSoftmax(t, x) },
		"Sum: x":          func(t tape) result { return tensor.Sum(t, x) },
		"Mean: x":         func(t tape) result { return tensor.Mean(t, x) },
		"SumAxis: x":      func(t tape) result { return tensor.SumAxis(t, x, 0) },
		"MeanAxis: x":     func(t tape) result { return tensor.MeanAxis(t, x, 0) },
		"BroadcastTo: x":  func(t tape) result { return tensor.BroadcastTo(t, x, 3, 2, 2) },
		"LayerNorm: x":    func(t tape) result { return tensor.LayerNorm(t, x, v, v, 1) },
		"RMSNorm: x":      func(t tape) result { return tensor.RMSNorm(t, x, v, 1) },
		"Normalize: x":    func(t tape) result { return tensor.Normalize(t, x, 1) },
		"Dropout: x":      func(t tape) result { return tensor.Dropout(t, x, 0.5) },
		"AddDropout: x":   func(t tape) result { return tensor.AddDropout(t, x, z, 0.5) },
		"AddDropout: y":   func(t tape) result { return tensor.AddDropout(t, z, x, 0.5) },
		"AddLayerNorm: x": func(t tape) result { y, _ := tensor.AddLayerNorm(t, x, z, 0, v, v, 1); return y },
		"AddLayerNorm: y": func(t tape) result { y, _ := tensor.AddLayerNorm(t, z, x, 0, v, v, 1); return y },
		"AddRMSNorm: y":   func(t tape) result { y, _ := tensor.AddRMSNorm(t, z, x, 0, v, 1); return y },
		"GatherSum: x":    func(t tape) result { return tensor.GatherSum(t, []result{z, x}, [][]int{{1}, {1}}) },
		"TanhGELU: x":     func(t tape) result { return tensor.TanhGELU(t, x) },
		"SiLU: x":         func(t tape) result { return tensor.SiLU(t, x) },
		"Rows: x":         func(t tape) result { return x.Rows(0, 1) },
		"Backward: out":   func(t tape) result { t.BackwardAll([]result{p, x}, []result{z, z}); return z },
		"Backward: dout":  func(t tape) result { t.Backward(p, x); return z },
		"Needs: operand":  func(t tape) result { t.Needs(z, x); return z },
		"a user's: Data":  func(t tape) result { x.Data(); return z },
		"a user's: Shape": func(t tape) result { x.Shape(); return z },
		"a user's: Dim":   func(t tape) result { x.Dim(0); return z },
		"a user's: At":    func(t tape) result { x.At(0, 0); return z },
		"a user's: Item":  func(t tape) result { x.Rows(0, 1).Item(); return z },
		"a user's: Grad":  func(t tape) result { x.Grad(); return z },
		"a user's: Clone": func(t tape) result { x.Clone(); return z },
		"a view: Detach":  func(t tape) result { x.Detach(); return z },
	}
}

func TestNilOperands(t *testing.T) {
	for _, bad := range []struct {
		x    *tensor.Tensor
		want string
	}{{nil, "is nil, want a tensor"}, {new(tensor.Tensor), "is the zero Tensor, want a tensor from New, Zeros or an operation"}} {
		for name, f := range operations(bad.x) {
			switch name {
			case "Needs: operand", "Backward: dout", "a user's: Data", "a user's: Shape", "a user's: Dim", "a user's: At",
				"a user's: Item", "a user's: Grad", "a user's: Clone", "a view: Detach":
				continue // may be nil, or is the receiver of a method
			}
			for _, tape := range []*tensor.Tape{nil, training()} {
				wantValueError(t, func() { f(tape) }, "tensor: "+name+" "+bad.want)
			}
		}
	}
	z := tensor.Zeros
	for _, c := range []struct {
		f    func()
		want string
	}{
		{func() { tensor.LayerNorm(nil, z(2, 3), nil, z(3), 1) }, `tensor: LayerNorm: gain is nil, want a tensor`},
		{func() { tensor.AddLayerNorm(nil, z(2, 3), z(2, 3), 0, z(3), nil, 1) }, `tensor: AddLayerNorm: shift is nil, want a tensor`},
		{func() { tensor.LayerNorm(nil, z(2, 3), z(3), nil, 1) }, `tensor: LayerNorm: shift is nil, want a tensor`},
		{func() { tensor.RMSNorm(nil, z(2, 3), nil, 1) }, `tensor: RMSNorm: gain is nil, want a tensor`},
		{func() { tensor.Randn(nil, 2) }, `tensor: Randn: rng is nil, want a \*rand\.Rand`},
		{func() { tensor.Uniform(nil, 0, 1, 2) }, `tensor: Uniform: rng is nil, want a \*rand\.Rand`},
		{func() { tensor.NewTape(3) }, `tensor: NewTape: mode is 3, want Train, Eval or Infer`},
		{func() { tensor.Normalize(nil, z(2, 3), -1) }, `tensor: Normalize: eps is -1, want a number of at least 0`},
		{func() { tensor.Normalize(nil, z(2, 3), nan) }, `tensor: Normalize: eps is NaN, want a number of at least 0`},
		{func() { (*tensor.Tape)(nil).Record(z(2), nil) }, `tensor: Record: out is not a tensor of this tape, .*`},
		{func() { training().Record(z(2), nil) }, `tensor: Record: out is not a tensor of this tape, .*`},
	} {
		wantValueError(t, c.f, c.want)
	}
}

// Using a tensor whose memory the tape has freed panics, however many steps later; it never reads another tensor's
// elements.
func TestUseAfterReset(t *testing.T) {
	const want = `tensor: [\w ]+: .* is a tensor that its tape has freed by Reset or Release, want a tensor made later, or a Clone made before`
	param := tensor.Full(1, 2, 2).Param()
	makes := map[string]func(t *tensor.Tape) *tensor.Tensor{
		"result":           func(t *tensor.Tape) *tensor.Tensor { return tensor.Scale(t, param, 2) },
		"constant":         func(t *tensor.Tape) *tensor.Tensor { return tensor.Scale(t, tensor.Zeros(2, 2), 2) },
		"view":             func(t *tensor.Tape) *tensor.Tensor { return tensor.Reshape(t, tensor.Scale(t, param, 2), 2, 2) },
		"view of a leaf":   func(t *tensor.Tape) *tensor.Tensor { return tensor.Reshape(t, param, 2, 2) },
		"view, no tape":    func(t *tensor.Tape) *tensor.Tensor { return tensor.Reshape(nil, tensor.Scale(t, param, 2), 2, 2) },
		"rows":             func(t *tensor.Tape) *tensor.Tensor { return tensor.Scale(t, param, 2).Rows(0, 2) },
		"detached":         func(t *tensor.Tape) *tensor.Tensor { return tensor.Scale(t, param, 2).Detach() },
		"gradient":         func(t *tensor.Tape) *tensor.Tensor { return gradientOf(t, tensor.Scale(t, param, 2)) },
		"gradient of view": func(t *tensor.Tape) *tensor.Tensor { return gradientOf(t, tensor.Scale(t, param, 2).Rows(0, 2)) },
	}
	for what, made := range makes {
		for _, mode := range []tensor.Mode{tensor.Train, tensor.Infer} {
			if mode == tensor.Infer && (what == "gradient" || what == "gradient of view") {
				continue
			}
			tape := tensor.NewTape(mode)
			tape.Seed(1, 0)
			x := made(tape)
			for name, f := range operations(x) {
				if name == "a user's: Item" || mode == tensor.Infer && strings.HasPrefix(name, "Backward") {
					continue // has two elements here; needs a record
				}
				if err := tensor.Catch(func() { f(tape) }); err != nil {
					t.Errorf("%s of a %s before Reset: %v", name, what, err)
				}
			}
			for range 3 {
				tape.Reset()
				for range 100 {
					made(tape) // in the memory that x used
				}
				for name, f := range operations(x) {
					for _, on := range []*tensor.Tape{tape, nil, training()} {
						err := tensor.Catch(func() { f(on) })
						if err == nil || !regexp.MustCompile("^"+want+"$").MatchString(err.Error()) {
							t.Fatalf("%s of a %s after Reset: error %v, want %s", name, what, err, want)
						}
					}
				}
			}
			if got := x.String(); got != "tensor that its tape has taken back" {
				t.Errorf("String after Reset is %q", got)
			}
		}
	}
	if g := param.Grad(); g == nil || g.Len() != 4 {
		t.Error("Reset took back the gradient of a parameter")
	}
}

func gradientOf(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	t.Backward(x, tensor.Full(1, 2, 2))
	return x.Grad()
}

// A gradient cannot flow from one tape to another.
func TestGradientsAcrossTapes(t *testing.T) {
	param := tensor.Full(1, 2, 2).Param()
	one, other := training(), training()
	x := tensor.Scale(one, param, 2)
	const want = `tensor: \w+: .* is a tensor recorded by another tape, want a tensor of this tape, or one from Detach`
	for name, f := range operations(x) {
		switch name {
		case "Backward: dout", "Reshape: x", "Rows: x", "a user's: Data", "a user's: Shape", "a user's: Dim", "a user's: At",
			"a user's: Item", "a user's: Grad", "a user's: Clone", "a view: Detach":
			continue // these need no gradient of x
		}
		wantValueError(t, func() { f(other) }, want)
	}
	wantValueError(t, func() { tensor.Tanh(other, tensor.Reshape(other, x, 4)) }, want)
	wantValueError(t, func() { tensor.Tanh(other, x.Rows(0, 1)) }, want)
	wantValueError(t, func() { (*tensor.Tape)(nil).Backward(tensor.Sum(one, x), nil) }, want)

	// As a constant, the tensor may be used on any tape.
	for _, f := range []func() *tensor.Tensor{
		func() *tensor.Tensor { return tensor.Mul(other, x.Detach(), param) },
		func() *tensor.Tensor { return tensor.Mul(nil, x, param) },
		func() *tensor.Tensor { return tensor.Mul(tensor.NewTape(tensor.Infer), x, param) },
	} {
		if got := f().At(1, 1); got != 2 {
			t.Errorf("product %v, want 2", got)
		}
	}
}

func TestSizesThatOverflow(t *testing.T) {
	const big, huge = 1 << 20, math.MaxInt/2 + 1
	tape := training()
	for _, shape := range [][]int{{huge, 2}, {huge, 4}, {huge, huge}, {0, huge, huge}, {huge, 0, 4}, {big, big, big}, {math.MaxInt}} {
		for name, f := range map[string]func(){
			"New": func() { tensor.New(nil, shape...) }, "Zeros": func() { tensor.Zeros(shape...) },
			"Zeros ": func() { tensor.Full(1, shape...) }, "Zeros  ": func() { tensor.Randn(rand.New(rand.NewPCG(1, 2)), shape...) },
			"Make": func() { tape.Make(shape...) }, "Make ": func() { (*tensor.Tape)(nil).Make(shape...) },
		} {
			err := tensor.Catch(f)
			var bad *tensor.ShapeError
			if !errors.As(err, &bad) || !regexp.MustCompile(`^at most \d+ elements$`).MatchString(bad.Want) {
				t.Errorf("%s%v: error %v, want too many elements", name, shape, err)
			}
		}
	}
	if err := tensor.Catch(func() { tape.Make(2, -3) }); err == nil || err.Error() != "tensor: Make: tensor has shape [2 -3], want no negative axis" {
		t.Errorf("Make of a negative axis: error %v", err)
	}
	if x := tensor.Zeros(0, big); x.Len() != 0 || x.Dim(1) != big {
		t.Errorf("no rows of many elements are %v", x.Shape())
	}
}
