package tensor_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// network is a small model with a loss: two layers, a softmax, a view.
type network struct {
	x, w1, b1, gain, shift, w2 *tensor.Tensor
}

func newNetwork() *network {
	rng := rand.New(rand.NewPCG(3, 5))
	return &network{
		x:  tensor.Randn(rng, 61, 31),
		w1: tensor.Randn(rng, 67, 31).Param(), b1: tensor.Randn(rng, 67).Param(),
		gain: tensor.Full(1, 67).Param(), shift: tensor.Zeros(67).Param(),
		w2: tensor.Randn(rng, 11, 67).Param(),
	}
}

func (n *network) params() []*tensor.Tensor {
	return []*tensor.Tensor{n.w1, n.b1, n.gain, n.shift, n.w2}
}

func (n *network) loss(t *tensor.Tape, dropout float32) *tensor.Tensor {
	h := tensor.Tanh(t, tensor.Linear(t, n.x, n.w1, n.b1))
	h = tensor.Dropout(t, tensor.LayerNorm(t, h, n.gain, n.shift, 1e-5), dropout)
	p := tensor.LogSoftmax(t, tensor.Linear(t, h, n.w2, nil))
	return tensor.Mean(t, tensor.Square(t, tensor.Reshape(t, p, -1)))
}

func (n *network) gradients() []float32 {
	var all []float32
	for _, p := range n.params() {
		all = append(all, p.Grad().Data()...)
		p.ZeroGrad()
	}
	return all
}

func TestResetReusesMemory(t *testing.T) {
	n := newNetwork()
	tape := training()
	stepOnce := func() {
		tape.Reset()
		tape.Backward(n.loss(tape, 0.1), nil)
	}
	for range 3 {
		stepOnce()
	}
	// Ten operations, with a closure and a few small allocations each; their results and gradients alone are 190 kB.
	if allocs := testing.AllocsPerRun(20, stepOnce); allocs > 40 && !raceDetector {
		t.Errorf("%v allocations per step, want at most 40", allocs)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20 {
		stepOnce()
	}
	runtime.ReadMemStats(&after)
	if bytes := (after.TotalAlloc - before.TotalAlloc) / 20; bytes > 16<<10 && !raceDetector {
		t.Errorf("%d bytes allocated per step, want at most 16 kB", bytes)
	}
}

func TestResultsAreValidUntilReset(t *testing.T) {
	n := newNetwork()
	tape := tensor.NewTape(tensor.Train)
	var results, copies []*tensor.Tensor
	for range 5 { // allocating the same amount again overwrites nothing
		y := tensor.Linear(tape, n.x, n.w1, n.b1)
		tape.Backward(tensor.Sum(tape, y), nil)
		results = append(results, y, y.Grad())
		copies = append(copies, y.Clone(), y.Grad().Clone())
	}
	for i, y := range results {
		tensortest.Same(t, "an earlier result", y.Data(), copies[i].Data())
	}
	old := results[0].Data()
	tape.Reset()
	if again := tensor.Linear(tape, n.x, n.w1, n.b1); &again.Data()[0] != &old[0] {
		t.Error("Reset did not hand back the memory")
	}
	tensortest.Same(t, "a clone after Reset", copies[0].Data(), tensor.Linear(nil, n.x, n.w1, n.b1).Data())
}

// Memory that is reused is not cleared; nothing may depend on its contents.
func TestResetLeavesNoTrace(t *testing.T) {
	n := newNetwork()
	var want []float32
	for _, tape := range []*tensor.Tape{tensor.NewTape(tensor.Train), tensortest.Tape(tensor.Train)} {
		for range 3 {
			tape.Reset()
			tape.Seed(1, 0)
			loss := n.loss(tape, 0.2)
			tape.Backward(loss, nil)
			got := append(n.gradients(), loss.Item())
			if want == nil {
				want = got
			}
			tensortest.Same(t, "loss and gradients", got, want)
		}
	}
}

func TestModes(t *testing.T) {
	n := newNetwork()
	plain := n.loss(nil, 0.5).Item() // without a tape, nothing is dropped
	for _, c := range []struct {
		mode          tensor.Mode
		drops, record bool
	}{{tensor.Train, true, true}, {tensor.Eval, false, true}, {tensor.Infer, false, false}} {
		tape := tensor.NewTape(c.mode)
		tape.Seed(1, 0)
		loss := n.loss(tape, 0.5)
		if drops := loss.Item() != plain; drops != c.drops || tape.Training() != c.drops {
			t.Errorf("mode %d: drops: %v, Training: %v, want %v", c.mode, drops, tape.Training(), c.drops)
		}
		if loss.NeedsGrad() != c.record || tape.Needs(n.w1) != c.record || tape.Needs(nil, n.x) {
			t.Errorf("mode %d: result needs gradient: %v, want %v", c.mode, loss.NeedsGrad(), c.record)
		}
		if c.record {
			tape.Backward(loss, nil)
		}
		if reached := n.w1.Grad() != nil && slices.Max(n.w1.Grad().Data()) > 0; reached != c.record {
			t.Errorf("mode %d: gradient has come: %v, want %v", c.mode, reached, c.record)
		}
		for _, p := range n.params() {
			p.ZeroGrad()
		}
	}
}

// Leaves given to Only get the same bits as without Only. All other gradients stay unchanged, and operations that do
// not depend on these leaves are not recorded.
func TestOnly(t *testing.T) {
	n := newNetwork()
	tape := tensor.NewTape(tensor.Eval)
	tape.Backward(n.loss(tape, 0), nil)
	want := n.w2.Grad().Clone().Data()
	rest := []*tensor.Tensor{n.w1, n.b1, n.gain, n.shift}
	var before [][]float32
	for _, p := range rest {
		before = append(before, p.Grad().Clone().Data())
	}
	n.w2.ZeroGrad()

	tape.Reset()
	tape.Only(n.w2)
	if tape.Needs(n.w1, n.b1.Rows(1, 2), tensor.Reshape(tape, n.w1, -1)) || !tape.Needs(n.w2.Rows(1, 3)) || tape.GradOf(n.w1) != nil {
		t.Error("gradients flow to others, or not to the leaf")
	}
	if tensor.Linear(tape, n.x, n.w1, n.b1).NeedsGrad() {
		t.Error("what does not depend on the leaf was recorded")
	}
	tape.Backward(n.loss(tape, 0), nil)
	tensortest.Same(t, "gradient of the leaf", n.w2.Grad().Data(), want)
	for i, p := range rest {
		tensortest.Same(t, "gradient of another", p.Grad().Data(), before[i])
	}

	tape.Reset()
	tape.Only()
	if !tape.Needs(n.w1) {
		t.Error("Only without leaves still keeps gradients from others")
	}
	(*tensor.Tape)(nil).Only(n.w2)

	tape.Only(n.w2.Rows(1, 3)) // layers name parts of a parameter in this way
	if !tape.Needs(n.w2) || tape.Needs(n.w1) {
		t.Error("a view does not stand for what it is a view of")
	}
}

func TestNilTape(t *testing.T) {
	var tape *tensor.Tape
	x := tensor.Full(2, 3).Param()
	tape.Seed(1, 0)
	y := tensor.Dropout(tape, tensor.Square(tape, x), 0.5)
	tape.Reset()
	tensortest.Same(t, "result after Reset", y.Data(), []float32{4, 4, 4})
	if tape.Training() || x.Grad() != nil || y.NeedsGrad() {
		t.Error("a nil tape recorded")
	}
}

func TestBackwardAgainOnTheSameRecord(t *testing.T) {
	x := tensor.New([]float32{3, 5}, 2).Param()
	tape := tensor.NewTape(tensor.Eval)
	y := tensor.Square(tape, x)
	first, second := tensor.Sum(tape, y), tensor.Mean(tape, tensor.Square(tape, y))
	tape.Backward(first, nil)
	tensortest.Same(t, "gradient", x.Grad().Data(), []float32{6, 10}) // 2x
	const twice = "tensor: Backward: out is the output of an earlier Backward, want another output, or a gradient dout; or call Reset and repeat the forward pass"
	wantValueError(t, func() { tape.Backward(first, nil) }, twice)
	wantValueError(t, func() { tape.BackwardAll([]*tensor.Tensor{second, first}, make([]*tensor.Tensor, 2)) }, twice)
	tensortest.Same(t, "gradient after what is refused", x.Grad().Data(), []float32{6, 10})
	tape.Backward(first, tensor.Full(1)) // with an explicit gradient, the loss counts again
	tensortest.Same(t, "gradient, again", x.Grad().Data(), []float32{12, 20})
	x.ZeroGrad()
	tape.Backward(second, nil)
	tensortest.Same(t, "gradient from another output", x.Grad().Data(), []float32{54, 250}) // 2x³
	tensortest.Same(t, "gradient of what lies between", y.Grad().Data(), []float32{9, 25})
	if g := first.Grad(); g != nil {
		t.Errorf("the first output still has the gradient %v", g)
	}
}

func TestBackwardAll(t *testing.T) {
	x := tensor.New([]float32{3, 5}, 2).Param()
	other := tensor.New([]float32{7}, 1)
	tape := tensor.NewTape(tensor.Train)
	y := tensor.Square(tape, x)
	z := tensor.Scale(tape, y, 10)
	free := tensor.Square(tape, other)
	dy := tensor.New([]float32{1, 2}, 2)
	// y is an output, an operand of the output z, and twice in the list; free
	// depends on no parameter.
	tape.BackwardAll([]*tensor.Tensor{y, z, free, y}, []*tensor.Tensor{dy, dy, nil, dy})
	tensortest.Same(t, "gradient of y", y.Grad().Data(), []float32{12, 24})
	tensortest.Same(t, "gradient of x", x.Grad().Data(), []float32{72, 240})
	tensortest.Same(t, "upstream gradient", dy.Data(), []float32{1, 2})
	if other.Grad() != nil || free.Grad() != nil {
		t.Error("a gradient where none flows")
	}
}

// A pass that reaches no parameter is a mistake: a call of Param is missing, or the tape was.
func TestBackwardWithoutParameters(t *testing.T) {
	const want = "tensor: Backward: out is a tensor that depends on no recorded parameter, want a result computed from a parameter marked by Param, on a tape of mode Train or Eval"
	x, param := tensor.Full(3, 1), tensor.Full(3, 1).Param()
	for _, c := range []struct {
		tape *tensor.Tape
		x    *tensor.Tensor
	}{
		{tensor.NewTape(tensor.Train), x}, {tensor.NewTape(tensor.Infer), param}, {nil, param},
	} {
		wantValueError(t, func() { c.tape.Backward(tensor.Square(c.tape, c.x), nil) }, want)
	}
	tape := tensor.NewTape(tensor.Train)
	y := tensor.Square(tape, param)
	tape.Only(x)
	wantValueError(t, func() { tape.Backward(tensor.Square(tape, param), nil) }, want)
	tape.Only()
	tape.BackwardAll([]*tensor.Tensor{y, x}, make([]*tensor.Tensor, 2))
	tensortest.Same(t, "gradient", param.Grad().Data(), []float32{6})
	tape.BackwardAll(nil, nil)
}

func TestBackwardOfALeaf(t *testing.T) {
	x := tensor.New([]float32{3}, 1).Param()
	tape := tensor.NewTape(tensor.Train)
	tape.Backward(x, nil)
	tape.Backward(x, tensor.Full(2, 1))
	tensortest.Same(t, "gradient", x.Grad().Data(), []float32{3})
}

func TestViewsShareGradients(t *testing.T) {
	x := tensor.New([]float32{1, 2, 3, 4, 5, 6}, 2, 3).Param()
	tape := tensor.NewTape(tensor.Train)
	y := tensor.Scale(tape, x, 1)
	view := tensor.Reshape(tape, tensor.Reshape(tape, y, 6), 3, 2)
	if view.Grad() != nil {
		t.Error("a gradient before Backward")
	}
	// The view and its base are both used.
	loss := tensor.Add(tape, tensor.Sum(tape, tensor.Square(tape, view)), tensor.Sum(tape, y))
	tape.Backward(loss, nil)
	want := []float32{3, 5, 7, 9, 11, 13}
	tensortest.Same(t, "gradient of the view", view.Grad().Data(), want)
	if !slices.Equal(view.Grad().Shape(), []int{3, 2}) {
		t.Errorf("gradient of the view has shape %v", view.Grad().Shape())
	}
	tensortest.Same(t, "gradient of x", x.Grad().Data(), want)

	param := tensor.Reshape(nil, x, 6)
	param.ZeroGrad()
	tensortest.Same(t, "gradient of x after ZeroGrad of a view", x.Grad().Data(), make([]float32, 6))

	detached := tensor.Square(tape, y.Detach())
	if detached.NeedsGrad() || &y.Detach().Data()[0] != &y.Data()[0] {
		t.Error("Detach is no view, or gradients flow through it")
	}
}

// Rows of a parameter are parameters: computations on the rows and on the whole add to one gradient.
func TestRowsAreViews(t *testing.T) {
	all := tensor.New([]float32{1, 2, 3, 4, 5, 6}, 3, 2).Param()
	middle, last := all.Rows(1, 2), all.Rows(2, 3)
	if !slices.Equal(middle.Shape(), []int{1, 2}) || middle.At(0, 1) != 4 || !last.NeedsGrad() {
		t.Errorf("row 1 is %v of shape %v", middle, middle.Shape())
	}
	tape := tensor.NewTape(tensor.Train)
	loss := tensor.Add(tape, tensor.Sum(tape, tensor.Square(tape, last)), tensor.Sum(tape, all))
	tape.Backward(loss, nil)
	tensortest.Same(t, "gradient of all", all.Grad().Data(), []float32{1, 1, 1, 1, 11, 13})
	tensortest.Same(t, "gradient of the last row", last.Grad().Data(), []float32{11, 13})
	middle.ZeroGrad()
	tensortest.Same(t, "gradient of all, its middle cleared", all.Grad().Data(), []float32{1, 1, 0, 0, 11, 13})
	middle.Data()[0] = 7
	if all.At(1, 0) != 7 {
		t.Error("a row does not share its elements")
	}
	for _, f := range []func(){func() { all.Rows(-1, 2) }, func() { all.Rows(2, 1) }, func() { all.Rows(0, 4) }, func() { tensor.Full(1).Rows(0, 1) }} {
		if tensor.Catch(f) == nil {
			t.Error("rows that are not there are no error")
		}
	}
}

// A backward step runs only if its result has a gradient, and then once, with the complete gradient.
func TestRecord(t *testing.T) {
	x := tensor.New([]float32{3}, 1).Param()
	tape := tensor.NewTape(tensor.Train)
	var log []float32
	tap := func(x *tensor.Tensor) *tensor.Tensor { // the identity; it records its gradient
		y := tape.Make(x.Shape()...)
		copy(y.Data(), x.Data())
		if tape.Needs(x) {
			tape.Record(y, func(dy []float32) {
				log = append(log, dy[0])
				tape.GradOf(x)[0] += dy[0]
			})
		}
		return y
	}
	y := tap(x)
	used, unused := tap(tensor.Scale(tape, y, 2)), tap(tensor.Scale(tape, y, 4))
	_ = unused
	tape.Backward(tensor.Add(tape, used, tensor.Scale(tape, y, 8)), nil)
	if !slices.Equal(log, []float32{1, 10}) {
		t.Errorf("gradients that were seen: %v, want [1 10]", log)
	}
	tensortest.Same(t, "gradient of x", x.Grad().Data(), []float32{10})
	if g := tape.GradOf(tensor.Zeros(1)); g != nil {
		t.Errorf("GradOf of a constant is %v, want nil", g)
	}
	if g := tape.GradOf(nil); g != nil {
		t.Errorf("GradOf(nil) is %v, want nil", g)
	}
}
