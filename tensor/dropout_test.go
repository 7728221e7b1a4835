package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// training returns a training tape with a seed.
func training() *tensor.Tape {
	tape := tensor.NewTape(tensor.Train)
	tape.Seed(0, 0)
	return tape
}

func dropped(tape *tensor.Tape, n int, p float32) []float32 {
	return slices.Clone(tensor.Dropout(tape, tensor.Full(3, n), p).Data())
}

func TestDropoutRate(t *testing.T) {
	const n = 100_003
	for _, p := range []float32{0.01, 0.1, 0.5, 0.9} {
		zeros := 0
		kept := 3 * (1 / (1 - p))
		for _, v := range dropped(training(), n, p) {
			switch v {
			case 0:
				zeros++
			case kept:
			default:
				t.Fatalf("p=%v: element %v, want 0 or %v", p, v, kept)
			}
		}
		// Four standard deviations of a binomial distribution.
		mean, spread := n*float64(p), 4*math.Sqrt(n*float64(p)*(1-float64(p)))
		if math.Abs(float64(zeros)-mean) > spread {
			t.Errorf("p=%v: %d of %d dropped, want %.0f±%.0f", p, zeros, n, mean, spread)
		}
	}
}

// Neighbours are dropped independently: pairs, and elements a row apart.
func TestDropoutIsIndependent(t *testing.T) {
	const n = 100_003
	y := dropped(training(), n, 0.5)
	for _, lag := range []int{1, 2, 64, 512} {
		both := 0
		for i := lag; i < n; i++ {
			if (y[i] == 0) == (y[i-lag] == 0) {
				both++
			}
		}
		if off := math.Abs(float64(both) - float64(n-lag)/2); off > 4*math.Sqrt(n)/2 {
			t.Errorf("elements %d apart agree %d times of %d", lag, both, n-lag)
		}
	}
}

func TestDropoutSeeds(t *testing.T) {
	const n = 1009
	tape := tensor.NewTape(tensor.Train)
	tape.Seed(7, 0)
	first, second := dropped(tape, n, 0.5), dropped(tape, n, 0.5)
	if slices.Equal(first, second) {
		t.Error("two operations drop the same")
	}
	tape.Reset()
	if third := dropped(tape, n, 0.5); slices.Equal(first, third) || slices.Equal(second, third) {
		t.Error("an operation after Reset drops the same as one before")
	}
	tape.Seed(7, 1)
	if slices.Equal(first, dropped(tape, n, 0.5)) {
		t.Error("two steps drop the same")
	}
	tape.Seed(7, 0)
	tensortest.Same(t, "first operation, same seed", dropped(tape, n, 0.5), first)
	tensortest.Same(t, "second operation, same seed", dropped(tape, n, 0.5), second)
	other := tensor.NewTape(tensor.Train)
	other.Seed(7, 0)
	tensortest.Same(t, "same seed on another tape", dropped(other, n, 0.5), first)
	other.Seed(8, 0)
	if slices.Equal(first, dropped(other, n, 0.5)) {
		t.Error("two seeds drop the same")
	}
	// The mask of an element does not depend on the number of elements.
	other.Seed(7, 0)
	tensortest.Same(t, "a shorter operand", dropped(other, n/2, 0.5), first[:n/2])
}

// Without a seed, every step that uses a new tape would drop the same elements, and nobody would notice.
func TestDropoutWantsASeed(t *testing.T) {
	const want = "tensor: Dropout: tape is a training tape without a seed, want Seed(seed, step) to be called first"
	x := tensor.Full(1, 5)
	for _, f := range []func(*tensor.Tape){
		func(tape *tensor.Tape) { tensor.Dropout(tape, x, 0.5) },
		func(tape *tensor.Tape) { tensor.AddDropout(tape, x, x, 0.5) },
		func(tape *tensor.Tape) { tape.Stream() },
	} {
		tape := tensor.NewTape(tensor.Train)
		for range 2 {
			if err := tensor.Catch(func() { f(tape) }); err == nil || err.Error() != want {
				t.Errorf("error %v, want %q", err, want)
			}
			tape.Reset()
		}
		tape.Seed(0, 0)
		f(tape)
		tape.Reset()
		f(tape) // Reset keeps the seed
	}
}

// A run can be repeated years later: the elements that a seed drops never change.
func TestDropoutPattern(t *testing.T) {
	tape := tensor.NewTape(tensor.Train)
	tape.Seed(7, 0)
	for op, want := range [][4]uint64{
		{0x0fbb2bd9e5fb7abb, 0x3eff2cd0f1f7fbf3, 0xebff971dc2b0ff7e, 0xef99c7f5dfffbea7},
		{0x0b5f77f6fa376fbf, 0xf8ffeeabecf63eef, 0xaff6b672ffff7fd8, 0x7f7fbbec8ff2b9fa},
	} {
		var kept [4]uint64
		for i, v := range dropped(tape, 256, 0.3) {
			if v != 0 {
				kept[i/64] |= 1 << (i % 64)
			}
		}
		if kept != want {
			t.Errorf("operation %d keeps %#016x, want %#016x", op, kept, want)
		}
	}
}

func TestDropoutOfNaN(t *testing.T) {
	tape := training()
	x := tensor.Full(nan, 1009).Param()
	y := tensor.Dropout(tape, x, 0.5)
	tape.Backward(y, tensor.Full(nan, 1009))
	zeros := 0
	for i, v := range y.Data() {
		g := x.Grad().Data()[i]
		if (v == 0) != (g == 0) || (v == v) != (v == 0) || (g == g) != (g == 0) {
			t.Fatalf("element %d is %v with gradient %v, want 0 or NaN for both", i, v, g)
		}
		if v == 0 {
			zeros++
		}
	}
	if zeros < 400 || zeros > 600 {
		t.Errorf("%d of 1009 dropped", zeros)
	}
}

func TestDropoutBackwardUsesTheSameMask(t *testing.T) {
	const n = 20_011
	x := tensor.Full(1, n).Param()
	tape := tensor.NewTape(tensor.Train)
	tape.Seed(5, 0)
	y := tensor.Dropout(tape, x, 0.3)
	tensor.Dropout(tape, x, 0.5) // advances the random numbers
	tape.Backward(y, tensor.Full(2, n))
	want := make([]float32, n)
	for i, v := range y.Data() {
		want[i] = 2 * v
	}
	tensortest.Same(t, "gradient", x.Grad().Data(), want)
}

func TestDropoutReturnsItsOperand(t *testing.T) {
	x := tensor.Full(1, 5)
	for _, tape := range []*tensor.Tape{nil, tensor.NewTape(tensor.Eval), tensor.NewTape(tensor.Infer)} {
		if tensor.Dropout(tape, x, 0.5) != x {
			t.Error("a tape that does not train changed the operand")
		}
	}
	if tensor.Dropout(tensor.NewTape(tensor.Train), x, 0) != x {
		t.Error("p=0 changed the operand")
	}
	for _, p := range []float32{-0.1, 1, float32(math.NaN())} {
		want := fmt.Sprintf("tensor: Dropout: p is %v, want a probability in [0, 1)", p)
		if err := tensor.Catch(func() { tensor.Dropout(nil, x, p) }); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// One pass and two passes give the same results and gradients.
func TestAddDropout(t *testing.T) {
	const n = 20_011
	rng := rand.New(rand.NewPCG(61, 62))
	x0, y0, dz := tensor.Randn(rng, n), tensor.Randn(rng, n), tensor.Randn(rng, n)
	add := func(t *tensor.Tape, x, y *tensor.Tensor, p float32) *tensor.Tensor {
		return tensor.Add(t, x, tensor.Dropout(t, y, p))
	}
	itself := func(f func(t *tensor.Tape, x, y *tensor.Tensor, p float32) *tensor.Tensor) func(t *tensor.Tape, x, y *tensor.Tensor, p float32) *tensor.Tensor {
		return func(t *tensor.Tape, x, _ *tensor.Tensor, p float32) *tensor.Tensor { return f(t, x, x, p) }
	}
	for _, mode := range []tensor.Mode{tensor.Train, tensor.Eval} {
		for _, form := range []struct {
			name      string
			one, want func(t *tensor.Tape, x, y *tensor.Tensor, p float32) *tensor.Tensor
		}{{"two operands", tensor.AddDropout, add}, {"one operand", itself(tensor.AddDropout), itself(add)}} {
			run := func(f func(t *tensor.Tape, x, y *tensor.Tensor, p float32) *tensor.Tensor) [][]float32 {
				tape := tensor.NewTape(mode)
				tape.Seed(9, 0)
				// The tape made these operands, so their gradients are fresh.
				x, y := tensor.Scale(tape, x0.Clone().Param(), 1), tensor.Scale(tape, y0.Clone().Param(), 1)
				z := f(tape, x, y, 0.3)
				next := tensor.Dropout(tape, z, 0.5) // the random numbers continue after it
				tape.Backward(next, dz)
				all := [][]float32{z.Data(), next.Data(), x.Grad().Data()}
				if y.Grad() != nil {
					all = append(all, y.Grad().Data())
				}
				return all
			}
			want := run(form.want)
			for i, got := range run(form.one) {
				tensortest.Same(t, fmt.Sprintf("%s, mode %v, tensor %d", form.name, mode, i), got, want[i])
			}
		}
	}
	var shape *tensor.ShapeError
	if err := tensor.Catch(func() { tensor.AddDropout(nil, x0, tensor.Zeros(3), 0) }); !errors.As(err, &shape) {
		t.Errorf("operands of different shapes: error %v", err)
	}
}
