package attn_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par/partest"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// Attention checks the context of its tape between pieces of a head, forward and backward, with every way to cut the
// work: many heads, one long head, few queries and many keys.
func TestContextWithinAttention(t *testing.T) {
	const procs = 3
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	rng := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		b, h, lq, lk, e int
		o               attn.Options
		mode            tensor.Mode
		checks          int // at least
	}{
		"many heads":      {2, 12, 128, 128, 16, attn.Options{}, tensor.Infer, 8},
		"one head":        {1, 1, 1500, 1500, 32, attn.Options{Mask: mask.Causal()}, tensor.Infer, 8},
		"one query":       {1, 2, 1, 9000, 32, attn.Options{}, tensor.Infer, 8},
		"weights":         {1, 1, 700, 700, 32, attn.Options{Weights: true}, tensor.Infer, 8},
		"an array":        {1, 3, 200, 200, 16, attn.Options{Score: &score.L1{}}, tensor.Infer, 3 * 200},
		"backward":        {1, 1, 900, 900, 32, attn.Options{}, tensor.Eval, 40},
		"array, backward": {1, 3, 200, 200, 16, attn.Options{Score: &score.L1{}}, tensor.Eval, 2*3*200 + 3},
	} {
		t.Run(name, func(t *testing.T) {
			q, k := tensor.Randn(rng, c.b, c.h, c.lq, c.e).Param(), tensor.Randn(rng, c.b, c.h, c.lk, c.e)
			tape := tensor.NewTape(c.mode)
			if l1, ok := c.o.Score.(*score.L1); ok {
				l1.W = tensor.Full(1, c.e)
			}
			run := func(ctx context.Context) (y []float32, err error) {
				tape.Reset()
				q.ZeroGrad()
				tape.SetContext(ctx)
				return y, tensor.Catch(func() {
					y = slices.Clone(attn.Attend(tape, q, k, k, c.o).Out.Data())
					if c.mode == tensor.Eval {
						tape.Reset()
						q.ZeroGrad()
						tape.Backward(tensor.Sum(tape, attn.Attend(tape, q, k, k, c.o).Out), nil)
						y = slices.Clone(q.Grad().Data())
					}
				})
			}
			whole := partest.NewCountdown(math.MaxInt)
			want, err := run(whole)
			if err != nil {
				t.Fatal(err)
			}
			work := c.b * c.h * c.lq * c.lk * 2 * c.e
			if n := whole.Checks(); n < c.checks || work/n > 1<<24 {
				t.Errorf("%d checks in %d multiplications", n, work)
			}
			for _, end := range []int{2, whole.Checks() / 2, whole.Checks() - 1} {
				ctx := partest.NewCountdown(end)
				if _, err := run(ctx); !errors.Is(err, context.Canceled) || ctx.Late() > procs {
					t.Errorf("end at check %d of %d: %v, %d later checks", end, whole.Checks(), err, ctx.Late())
				}
			}
			if got, err := run(t.Context()); err != nil || !slices.Equal(got, want) {
				t.Errorf("after an interruption: %v, or another result", err)
			}
		})
	}
}
