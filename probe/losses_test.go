package probe

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/attn-go/attn/seq2seq"
)

// The loss of a pair has the same bits alone and in a batch, and the sum of all losses is the loss of the
// corpus.
func TestLosses(t *testing.T) {
	pairs := toyPairs(2*mostSequences + 5)
	pairs[3].Source, pairs[7].Target, pairs[11].Target = "漢字", "x", pairs[11].Target+pairs[12].Target+pairs[13].Target
	for _, c := range headed()[:2] {
		name, m, ctx := titleOf(c), newShaken(t, c, toyPairs(64)), context.Background()
		probe := pairProbe(t, m, pairs)
		together, err := probe.Losses(ctx)
		if err != nil {
			t.Fatal(err)
		}
		nats, tokens := 0., 0
		for i, p := range pairs {
			nats, tokens = nats+together[i].Loss, tokens+together[i].Terms
			if i%7 != 0 && i != 11 {
				continue
			}
			alone, err := pairProbe(t, m, []seq2seq.Pair{p}).Losses(ctx)
			if err != nil || alone[0].Loss != together[i].Loss || alone[0].Terms != together[i].Terms {
				t.Errorf("%s: pair %d has %v among others and %v alone, %v", name, i, together[i], alone[0], err)
			}
		}
		want, err := probe.Loss(ctx)
		if got := nats / float64(tokens); err != nil || math.Abs(got-want) > 1e-6*want {
			t.Errorf("%s: together %v nats per token, want %v, %v", name, got, want, err)
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := probe.Losses(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: cancelled: %v", name, err)
		}
	}
}
