package attn_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/par/partest"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// A call of attention is one loop with any number of threads, and its result has the same bits.
func TestAttentionIsOneLoop(t *testing.T) {
	options := map[string]func(b int) attn.Options{
		"plain":  func(b int) attn.Options { return attn.Options{} },
		"causal": func(b int) attn.Options { return attn.Options{Mask: mask.Causal()} },
		"window": func(b int) attn.Options { return attn.Options{Mask: mask.WindowWithSinks(40, 0, 3)} },
		"padding": func(b int) attn.Options {
			return attn.Options{Mask: mask.Lengths([]int{60, 100}[:b]...), LogSumExp: true}
		},
		"weights":  func(b int) attn.Options { return attn.Options{Weights: true, Mask: mask.Causal()} },
		"dropout":  func(b int) attn.Options { return attn.Options{Dropout: 0.2} },
		"soft-cap": func(b int) attn.Options { return attn.Options{SoftCap: 2} },
		"ALiBi": func(b int) attn.Options {
			return attn.Options{Changes: []attn.ScoreChange{position.ALiBi(position.ALiBiSlopes(8)...)}}
		},
		"observers": func(b int) attn.Options { return attn.Options{Observers: []attn.Observer{new(rowSum)}} },
		"gaussian":  func(b int) attn.Options { return attn.Options{Score: &score.Gaussian{W: tensor.Full(0.5, 1)}} },
	}
	tape := func() *tensor.Tape {
		t := tensor.NewTape(tensor.Train)
		t.Seed(1, 2)
		return t
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for _, s := range []struct{ b, h, g, lq, lk, e int }{
		{2, 8, 8, 100, 600, 16}, {2, 8, 2, 1, 600, 64}, {2, 8, 2, 70, 600, 32}, {1, 8, 8, 250, 250, 8},
	} {
		q := tensor.Randn(rng, s.b, s.h, s.lq, s.e)
		k, v := tensor.Randn(rng, s.b, s.g, s.lk, s.e), tensor.Randn(rng, s.b, s.g, s.lk, s.e)
		cache, err := attn.NewCache(attn.CacheConfig{Batch: s.b, Heads: s.g, KeySize: s.e})
		if err != nil {
			t.Fatal(err)
		}
		cache.Append(k, v, nil)
		for name, o := range options {
			want := attn.Attend(tape(), q, k, v, o(s.b))
			for _, threads := range []int{1, 2, 3, 16, 64} {
				for _, cached := range []bool{false, true} {
					if cached && (name == "dropout" || s.lq > s.lk) {
						continue
					}
					name := fmt.Sprintf("%s, %v, cached %v, %d threads", name, s, cached, threads)
					var got attn.Output
					plan := par.Trace(threads, 1, func() {
						if cached {
							got = cache.Attend(nil, q, o(s.b))
						} else {
							got = attn.Attend(tape(), q, k, v, o(s.b))
						}
					})
					tensortest.Same(t, name, got.Out.Data(), want.Out.Data())
					if len(plan.Loops) != 1 {
						t.Errorf("%s: %d loops", name, len(plan.Loops))
					}
				}
			}
		}
	}
}

// rowSum is an observer of weights.
type rowSum struct{}

func (*rowSum) Begin(attn.Sizes)        {}
func (*rowSum) Row(attn.Row, []float32) {}

// The work of a call is cut evenly and finely enough for the given number of threads.
func TestTasksOfAttention(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct{ b, h, l, threads, tasks int }{
		{1, 12, 1024, 1, 12}, {1, 12, 1024, 3, 12}, {1, 12, 1024, 16, 12 * 18}, {1, 12, 1024, 64, 12 * 29},
		{8, 12, 64, 16, 96}, {8, 12, 64, 64, 96 * 2}, {1, 16, 64, 16, 16}, {1, 1, 256, 2, 8},
	} {
		q := tensor.Randn(rng, c.b, c.h, c.l, 64)
		plan := par.Trace(c.threads, 1, func() { attn.Attend(nil, q, q, q, attn.Options{}) })
		var tasks []int
		for _, l := range plan.Loops {
			tasks = append(tasks, len(l.Chunks))
		}
		if !slices.Equal(tasks, []int{c.tasks}) {
			t.Errorf("%v: tasks of loops %v, want [%d]", c, tasks, c.tasks)
		}
	}
}

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

// If weights are not requested, memory grows with the length and not with its square, forward and
// backward.
func TestMemory(t *testing.T) {
	const l, e = 3000, 8
	rng := newRand(149)
	q, k, v := tensor.Randn(rng, 1, 1, l, e).Param(), tensor.Randn(rng, 1, 1, l, e).Param(), tensor.Randn(rng, 1, 1, l, e).Param()
	dout := tensor.Randn(rng, 1, 1, l, e)
	for name, score := range map[string]attn.Score{"dot": score.Dot(), "additive": score.NewAdditive(e, e, e, rng)} {
		for _, mask := range []attn.Mask{{}, mask.Causal(), mask.AllowFunc(func(b, h, i, j int) bool { return j%7 != i%5 })} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			tape := tensor.NewTape(tensor.Train)
			y := attn.Attend(tape, q, k, v, attn.Options{Score: score, Mask: mask})
			tape.Backward(y.Out, dout)
			runtime.ReadMemStats(&after)
			if used, scores := after.TotalAlloc-before.TotalAlloc, uint64(4*l*l); used > scores/2 { // most of it is memory of tasks, which the race detector may allocate again
				t.Errorf("%s: %d bytes were allocated, where all scores would be %d", name, used, scores)
			}
		}
	}
}
