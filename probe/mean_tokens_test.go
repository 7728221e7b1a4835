package probe

import (
	"testing"

	"github.com/attn-go/attn/models"
)

// The mean number of tokens is rounded to the nearest whole number, upwards in the middle.
func TestMeanTokens(t *testing.T) {
	ids := func(lens ...int) (list [][]int) {
		for _, n := range lens {
			list = append(list, make([]int, n))
		}
		return list
	}
	for _, c := range []struct {
		batches []batch
		want    int
	}{
		{nil, 1},
		{[]batch{{x: models.Batch{IDs: ids(4)}}}, 4},
		{[]batch{{x: models.Batch{IDs: ids(2, 3)}}}, 3},                                 // 2.5
		{[]batch{{x: models.Batch{IDs: ids(2, 2, 3)}}}, 2},                              // 2.33
		{[]batch{{x: models.Batch{IDs: ids(2, 3, 3)}}}, 3},                              // 2.67
		{[]batch{{x: models.Batch{IDs: ids(5), Targets: ids(8)}}}, 7},                   // 6.5
		{[]batch{{x: models.Batch{IDs: ids(1, 2)}}, {x: models.Batch{IDs: ids(3)}}}, 2}, // over all batches
	} {
		if got := (&Probe{batches: c.batches}).MeanTokens(); got != c.want {
			t.Errorf("%d batches: mean of %d tokens, want %d", len(c.batches), got, c.want)
		}
	}
}
