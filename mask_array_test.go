package attn_test

import (
	"fmt"
	"math"
	"regexp"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// Scores with three axes have one head, and their masks may have three axes too.
func TestMaskedSoftmaxOfThreeAxes(t *testing.T) {
	const b, lq, lk = 2, 3, 5
	rng := newRand(59)
	scores := tensor.Randn(rng, b, lq, lk)
	numbers := func(shape ...int) *tensor.Tensor {
		x := tensor.Uniform(rng, 0, 2, shape...)
		for i, v := range x.Data() {
			x.Data()[i] = float32(int(v))
		}
		return x
	}
	full, perQuery := numbers(b, lq, lk), numbers(b, 1, lk)
	perHead := func(x *tensor.Tensor) attn.Mask {
		return mask.AllowTensor(tensor.Reshape(nil, x, x.Dim(0), 1, x.Dim(1), x.Dim(2)))
	}
	for name, c := range map[string]struct{ three, four attn.Mask }{
		"nothing hidden":        {},
		"valid lengths":         {mask.Lengths(2, 3), mask.Lengths(2, 3)},
		"valid lengths of rows": {mask.LengthsOfQueries([][]int{{1, 3, 0}, {5, 4, 2}}), mask.LengthsOfQueries([][]int{{1, 3, 0}, {5, 4, 2}})},
		"causal":                {mask.Causal(), mask.CausalAt(lk - lq)},
		"window of sequences":   {mask.WindowAt(1, 0, 0, 2), mask.WindowAt(1, 0, 0, 2)},
		"all axes":              {mask.AllowTensor(full), perHead(full)},
		"each sequence":         {mask.AllowTensor(perQuery), perHead(perQuery)},
		"keys":                  {mask.Allow([]bool{true, false, true, true, false}, lk), mask.Allow([]bool{true, false, true, true, false}, lk)},
		"function":              {mask.AllowFunc(func(b, h, i, j int) bool { return (b+h+i+j)%3 > 0 }), mask.AllowFunc(func(b, h, i, j int) bool { return (b+h+i+j)%3 > 0 })},
	} {
		x3, x4 := scores.Clone().Param(), tensor.Reshape(nil, scores, b, 1, lq, lk).Clone().Param()
		tape := tensortest.Tape(tensor.Train)
		y3, y4 := attn.MaskedSoftmax(tape, x3, c.three), attn.MaskedSoftmax(tape, x4, c.four)
		tensortest.Same(t, name, y3.Data(), y4.Data())
		d := tensor.Randn(rng, b, lq, lk)
		tape.BackwardAll([]*tensor.Tensor{y3, y4}, []*tensor.Tensor{d, tensor.Reshape(nil, d, b, 1, lq, lk)})
		tensortest.Same(t, name+": gradient", x3.Grad().Data(), x4.Grad().Data())
	}
}

// A mask that does not fit is rejected before anything is computed.
func TestMasksOfTensorsErrors(t *testing.T) {
	softmax := func(m attn.Mask, shape ...int) func() {
		return func() { attn.MaskedSoftmax(nil, shaped(shape...), m) }
	}
	allow := func(values ...float32) func() {
		return func() { mask.AllowTensor(tensor.New(values, 1, len(values))) }
	}
	inf := float32(math.Inf(-1))
	for _, c := range []struct {
		f    func()
		want string
	}{
		{softmax(mask.Lengths(2, 3, 1), 2, 5, 7), `attn: MaskedSoftmax: mask has 3 valid lengths, want one for each of B=2 sequences`},
		{softmax(mask.Lengths(2, 8), 2, 3, 5, 7), `attn: MaskedSoftmax: mask has valid length 8, want 0 to Lk=7`},
		{softmax(mask.LengthsOfQueries([][]int{{1, 2}, {3, 4}}), 2, 3, 5, 7), `attn: MaskedSoftmax: mask has 2 valid lengths, want one for each of Lq=5 queries`},
		{softmax(mask.AllowTensor(shaped(3, 5, 7)), 2, 5, 7), `attn: MaskedSoftmax: mask has shape \[3 5 7\], want a shape that broadcasts to \[B=2 Lq=5 Lk=7\]`},
		{softmax(mask.AllowTensor(shaped(2, 5, 7)), 2, 3, 5, 7), `attn: MaskedSoftmax: mask has shape \[2 5 7\], want a shape that broadcasts to \[B=2 H=3 Lq=5 Lk=7\]`},
		{softmax(mask.Causal(), 5, 7), `attn: MaskedSoftmax: scores has shape \[5 7\], want \[B H Lq Lk\] or \[B Lq Lk\]`},
		{softmax(attn.Mask{}), `attn: MaskedSoftmax: scores has shape \[\], want \[B H Lq Lk\] or \[B Lq Lk\]`},
		{allow(1, 0, 0.5), `mask: AllowTensor: mask has element 0.5 at \[0 2\], want 0 where a key is hidden and 1 where a query attends to it`},
		{allow(1, 2), `mask: AllowTensor: mask has element 2 at \[0 1\], want .*`},
		{allow(0, inf), `mask: AllowTensor: mask has element -Inf at \[0 1\], want .*`},
		{allow(-inf + inf), `mask: AllowTensor: mask has element NaN at \[0 0\], want .*`},
		{func() { mask.AllowTensorSequenceFirst(tensor.Full(-1, 5, 7, 1)) }, `mask: AllowTensorSequenceFirst: mask has element -1 at \[0 0 0\], want .*`},
		{func() { mask.AllowTensor(nil) }, `mask: AllowTensor: mask .*, want a tensor`},
		{func() { mask.AllowTensorSequenceFirst(shaped(5, 7)) }, `mask: AllowTensorSequenceFirst: mask has shape \[5 7\], want \[Lq Lk B\], where Lq and B may be 1`},
	} {
		if err := tensor.Catch(c.f); err == nil || !regexp.MustCompile("^"+c.want+"$").MatchString(err.Error()) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// A hidden key has weight zero even in a row that contains NaN or Inf, and a masked NaN has no
// influence, forward or backward.
func TestMaskedSoftmaxOfNaN(t *testing.T) {
	hidden := mask.Allow([]bool{false, true, true, true, false, true, true}, 7)
	for _, bad := range poisons[:2] {
		y := attn.MaskedSoftmax(nil, tensor.New([]float32{1, bad, 3, bad, 5, 6, 7}, 1, 1, 7), hidden).Data()
		if y[0] != 0 || y[4] != 0 {
			t.Errorf("with a %v that is seen the hidden keys have weights %v and %v, want 0", bad, y[0], y[4])
		}
		if y[1] == y[1] {
			t.Errorf("a %v that is seen leaves no trace: %v", bad, y)
		}
	}
	run := func(bad float32) (y, dx *tensor.Tensor) {
		x := tensor.New([]float32{bad, 2, 3, 1, bad, 2, -1}, 1, 1, 7).Param()
		tape := tensortest.Tape(tensor.Train)
		y = attn.MaskedSoftmax(tape, x, hidden)
		tape.Backward(y, tensor.New([]float32{1, 2, 3, 4, 5, 6, 7}, 1, 1, 7))
		return y, x.Grad()
	}
	want, gradient := run(0)
	for _, bad := range poisons {
		y, dx := run(bad)
		tensortest.Same(t, "weights", y.Data(), want.Data())
		tensortest.Same(t, "gradient", dx.Data(), gradient.Data())
	}
}

// Two sequences with two queries and four keys each; the first two and three keys are valid.
func ExampleMaskedSoftmax() {
	scores := tensor.Zeros(2, 2, 4)
	fmt.Println(attn.MaskedSoftmax(nil, scores, mask.Lengths(2, 3)))
	fmt.Println(attn.MaskedSoftmax(nil, scores, mask.LengthsOfQueries([][]int{{1, 3}, {2, 4}})))
	// Output:
	// [[[0.5 0.5 0 0] [0.5 0.5 0 0]] [[0.3333 0.3333 0.3333 0] [0.3333 0.3333 0.3333 0]]]
	// [[[1 0 0 0] [0.3333 0.3333 0.3333 0]] [[0.5 0.5 0 0] [0.25 0.25 0.25 0.25]]]
}

// The mask copies its tensor.
func TestAllowTensorCopies(t *testing.T) {
	numbers := tensor.New([]float32{1, 0}, 2)
	m := mask.AllowTensor(numbers)
	numbers.Data()[0], numbers.Data()[1] = 0, 1
	tensortest.Same(t, "weights", attn.MaskedSoftmax(nil, shaped(1, 1, 2), m).Data(), []float32{1, 0})
}

// Two queries and three keys; the first query attends to two keys, the second to none. Tutorials
// that mask with −10¹⁰ give the second query uniform weights.
func ExampleMask() {
	masked := tensor.New([]float32{
		1, 1, 0,
		0, 0, 0,
	}, 2, 3)
	q, k, v := tensor.Zeros(1, 2, 5), tensor.Full(1, 1, 3, 5), tensor.New([]float32{3, 6, 9}, 1, 3, 1)
	y := attn.Attend(nil, q, k, v, attn.Options{Mask: mask.AllowTensor(masked), Weights: true})
	fmt.Println("mask:", y.Weights, "out:", y.Out)

	bias := tensor.Scale(nil, tensor.Shift(nil, masked, -1), 1e10) // 0, and −10¹⁰ where the mask is 0
	y = attn.Attend(nil, q, k, v, attn.Options{Bias: bias, Weights: true})
	fmt.Println("bias:", y.Weights, "out:", y.Out)
	// Output:
	// mask: [[[0.5 0.5 0] [0 0 0]]] out: [[[4.5] [0]]]
	// bias: [[[0.5 0.5 0] [0.3333 0.3333 0.3333]]] out: [[[4.5] [6]]]
}
