package tensor_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/attn-go/attn/internal/par/partest"
	"github.com/attn-go/attn/tensor"
)

// mostWork is the largest number of multiplications between two checks of a context: two milliseconds on vectors, 15 in
// WebAssembly. There are fewer checks on one thread, since products are cut for the threads that there are.
const mostWork = 1 << 26

// A long product checks the context of its tape between pieces of work, and after the end only the pieces in progress
// on other processors are completed. The tape can be used again.
func TestContextWithinProducts(t *testing.T) {
	const procs, n, in, out = 3, 240, 768, 1024
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	rng := rand.New(rand.NewPCG(1, 2))
	x, w := tensor.Randn(rng, n, in), tensor.Randn(rng, out, in).Param()
	packed := tensor.NewPacked(out, in, tensor.Float32)
	packed.SetRows(0, w.Data())
	few, column := tensor.Randn(rng, 64, in), tensor.Randn(rng, 4, n, in)
	dense := tensor.Randn(rng, 4, in, 256)
	for name, c := range map[string]struct {
		products int
		f        func(t *tensor.Tape) *tensor.Tensor
	}{
		"packed":          {n * in * out, func(t *tensor.Tape) *tensor.Tensor { return packed.Linear(t, x, nil) }},
		"packed, few":     {64 * in * out, func(t *tensor.Tape) *tensor.Tensor { return packed.Linear(t, few, nil) }},
		"parameters":      {n * in * out, func(t *tensor.Tape) *tensor.Tensor { return tensor.Linear(t, x, w, nil) }},
		"parameters, few": {64 * in * out, func(t *tensor.Tape) *tensor.Tensor { return tensor.Linear(t, few, w, nil) }},
		"several":         {4 * n * in * 256, func(t *tensor.Tape) *tensor.Tensor { return tensor.MatMul(t, column, dense) }},
		"backward": {3 * n * in * out, func(t *tensor.Tape) *tensor.Tensor {
			y := tensor.Sum(t, tensor.Linear(t, x, w, nil))
			t.Backward(y, nil)
			return y
		}},
	} {
		t.Run(name, func(t *testing.T) {
			mode := tensor.Infer
			if name == "backward" {
				mode = tensor.Eval
			}
			tape := tensor.NewTape(mode)
			want := slices.Clone(c.f(tape).Data())
			tape.Reset()
			whole := partest.NewCountdown(math.MaxInt)
			tape.SetContext(whole)
			if got := c.f(tape).Data(); !slices.Equal(got, want) {
				t.Error("a context changes the result")
			}
			if each := c.products / whole.Checks(); each > mostWork {
				t.Errorf("%d checks in %d products, one in %d, want one in %d at least", whole.Checks(), c.products, each, mostWork)
			}
			for _, end := range []int{1, 2, whole.Checks() / 2, whole.Checks()} {
				tape.Reset()
				ctx := partest.NewCountdown(end)
				tape.SetContext(ctx)
				err := tensor.Catch(func() { c.f(tape) })
				if !errors.Is(err, context.Canceled) || ctx.Late() > procs {
					t.Errorf("end at check %d of %d: %v, %d later checks", end, whole.Checks(), err, ctx.Late())
				}
			}
			tape.Reset()
			tape.SetContext(t.Context())
			if !slices.Equal(c.f(tape).Data(), want) {
				t.Error("after an interruption, the tape gives another result")
			}
		})
	}
}

// Every operation of a tape checks the context.
func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tape := tensor.NewTape(tensor.Infer)
	if tape.Context() != context.Background() || (*tensor.Tape)(nil).Context() != context.Background() {
		t.Error("a tape without a context has one")
	}
	tape.SetContext(ctx)
	x := tensor.Zeros(2, 3)
	if err := tensor.Catch(func() { tensor.Add(tape, x, x) }); err != nil || tape.Context().Err() != nil {
		t.Errorf("error %v before the end", err)
	}
	cancel()
	if err := tensor.Catch(func() { tensor.Add(tape, x, x) }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v after the end", err)
	}
	(*tensor.Tape)(nil).SetContext(ctx)
	tensor.Add(nil, x, x) // a nil tape has no context
}

func ExampleTape_SetContext() {
	ctx, cancel := context.WithCancel(context.Background())
	tape, x := tensor.NewTape(tensor.Infer), tensor.Zeros(2, 3)
	tape.SetContext(ctx)
	cancel() // the caller leaves
	fmt.Println(tensor.Catch(func() { tensor.Square(tape, x) }))
	// Output: context canceled
}
