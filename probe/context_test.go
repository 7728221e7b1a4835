package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/par/partest"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
)

// Whatever takes a context stops at the check at which the context ends, returns its error, and computes the same
// afterwards.
func TestContextEnds(t *testing.T) {
	const procs = 3
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	e, err := models.LoadEmbedder("../models/testdata/sentence_mean", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"the cat sat on the mat."}
	made := func() *Probe {
		m, err := models.Load("../models/testdata/bert_words", models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(m, []Example{
			{IDs: []int{2, 7, 4, 3}, Targets: []int{-1, -1, 6, -1}}, {IDs: []int{2, 4, 3}, Targets: []int{-1, 5, -1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	calls := map[string]func(ctx context.Context) (any, error){
		"Record": func(ctx context.Context) (any, error) {
			return weightsOf(RecordTexts(ctx, e.Model, texts[0], "", heads.RecorderOptions{}))
		},
		"NewReference": func(ctx context.Context) (any, error) { _, err := NewReference(ctx, made()); return nil, err },
		"Loss":         func(ctx context.Context) (any, error) { return made().Loss(ctx) },
		"Losses":       func(ctx context.Context) (any, error) { return made().Losses(ctx) },
		"Importance": func(ctx context.Context) (any, error) {
			scores, err := prune.Importance(ctx, made(), prune.ImportanceOptions{Methods: []prune.Method{prune.Gradient, prune.LeaveOneOut, prune.Confidence}})
			if err != nil {
				return nil, err
			}
			return fmt.Sprint(scores[0].Values, scores[1].Values, scores[2].Values), nil
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			whole := partest.NewCountdown(math.MaxInt)
			want, err := call(whole)
			if err != nil {
				t.Fatal(err)
			}
			n := whole.Checks()
			if n < 10 {
				t.Errorf("the context is checked %d times", n)
			}
			for _, end := range []int{1, 2, 3, n / 3, n / 2, n - n/10} {
				ctx := partest.NewCountdown(end)
				_, err := call(ctx)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("end at check %d of %d: error %v", end, n, err)
				}
				if most := procs + 3; ctx.Late() > most { // the functions themselves ask for the error
					t.Errorf("end at check %d of %d: %d later checks, want at most %d", end, n, ctx.Late(), most)
				}
			}
			if again, err := call(t.Context()); err != nil || fmt.Sprint(again) != fmt.Sprint(want) {
				t.Errorf("after interruptions: %v, %v, want %v", again, err, want)
			}
		})
	}
}

func weightsOf(r *heads.Record, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return r.Layers[0].Weights, nil
}
