package importance

import (
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/prune"
)

// A score that is not finite makes its line an error: in the total it would be missing.
func TestSumsOf(t *testing.T) {
	for _, sum := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 5} {
		s := prune.Scores{
			Method: prune.Gradient, Sums: map[string][]float64{"a": {2, sum}}, Counts: map[string][]int{"a": {3, 7}},
		}
		all, err := sumsOf([]prune.Scores{s})
		if sum != 5 {
			if want := "gradient of head 1 of a is not finite"; err == nil || err.Error() != want {
				t.Errorf("%v: error %v, want %s", sum, err, want)
			}
			continue
		}
		x := all["gradient"]
		if err != nil || !slices.Equal(x.Sums["a"], []reports.Number{2, 5}) ||
			!slices.Equal(x.Counts["a"], []reports.Number{3, 7}) {
			t.Errorf("%v, %v", all, err)
		}
	}
}
