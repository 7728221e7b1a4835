package train

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/attn-go/attn/seq2seq"
)

// Evaluate agrees with Translate and Loss, and counts each source once.
func TestEvaluate(t *testing.T) {
	for name, m := range halfTrained(t) {
		pairs := toyPairs(20)
		written := translate(t, m, pairs[0].Source, pairs[1].Source)
		some := []seq2seq.Pair{
			{Source: pairs[0].Source, Target: written[0] + "g"}, {Source: pairs[0].Source, Target: written[0]}, // correct because of the second target
			{Source: pairs[1].Source, Target: written[1] + "g"},
		}
		got, err := Evaluate(context.Background(), m, some, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got.Sources != 2 || got.ExactMatch != 0.5 {
			t.Errorf("%s: %+v, want 2 sources and half of them right", name, got)
		}
		var sum, count float64
		for _, p := range some {
			probe, err := Probe(m, []seq2seq.Pair{p})
			if err != nil {
				t.Fatal(err)
			}
			losses, err := probe.Losses(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			sum += losses[0].Loss
			count += float64(losses[0].Terms)
		}
		if math.Abs(float64(got.Loss)-sum/count) > 1e-5 {
			t.Errorf("%s: loss %v, want %v", name, got.Loss, sum/count)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m := newToy(t, headed()[0], toyPairs(9))
	if _, err := Evaluate(ctx, m, toyPairs(9), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: error %v, want %v", err, context.Canceled)
	}
}
