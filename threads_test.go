package attn_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par"
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
