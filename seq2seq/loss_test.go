package seq2seq

import (
	"context"
	"errors"
	"math"
	"testing"
)

// The loss of a pair has the same bits alone and among others, and all losses together
// are the loss of the corpus.
func TestLosses(t *testing.T) {
	pairs := toyPairs(2*decodeBatch + 5)
	pairs[3].Source, pairs[7].Target, pairs[11].Target = "漢字", "x", pairs[11].Target+pairs[12].Target+pairs[13].Target
	for name, m := range halfTrained(t) {
		ctx := context.Background()
		together, err := m.Losses(ctx, pairs)
		if err != nil {
			t.Fatal(err)
		}
		nats, tokens := 0., 0
		for i, p := range pairs {
			nats, tokens = nats+together[i].Nats, tokens+together[i].Tokens
			if i%7 != 0 && i != 11 {
				continue
			}
			alone, err := m.Losses(ctx, []Pair{p})
			if err != nil || alone[0] != together[i] {
				t.Errorf("%s: pair %d has %v among others and %v alone, %v", name, i, together[i], alone[0], err)
			}
		}
		want, err := m.Loss(ctx, pairs)
		if got := nats / float64(tokens); err != nil || math.Abs(got-want) > 1e-6*want {
			t.Errorf("%s: together %v nats per token, want %v, %v", name, got, want, err)
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := m.Losses(cancelled, pairs); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: cancelled: %v", name, err)
		}
	}
}
