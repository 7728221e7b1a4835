package importance

import (
	"context"
	"math"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/exact"
)

// measure sets the measures of all heads to their means over n records. Sums are exact, so the order of the
// records does not matter.
func measure(
	ctx context.Context, n int, record func(ctx context.Context, i int) (*heads.Record, error), layers []reports.Layer,
	tell func(done, all int),
) error {
	type mean struct {
		sum   exact.Sum
		count int64
	}
	sums := map[string]map[string][]mean{} // by layer and measure, one per head
	for i := range n {
		tell(i, n)
		record, err := record(ctx, i)
		if err != nil {
			return err
		}
		for layer, list := range measures(record) {
			if sums[layer] == nil {
				sums[layer] = map[string][]mean{}
			}
			for name, values := range list {
				if sums[layer][name] == nil {
					sums[layer][name] = make([]mean, len(values))
				}
				for h, v := range values {
					if m := &sums[layer][name][h]; !math.IsNaN(float64(v)) {
						m.sum.Add(float64(v))
						m.count++
					}
				}
			}
		}
	}
	tell(n, n)
	for i := range layers {
		l := &layers[i]
		l.Measures = map[string][]reports.Number{}
		for name, list := range sums[l.Name] {
			for h := range list {
				l.Measures[name] = append(l.Measures[name], reports.Number(list[h].sum.Mean(list[h].count)))
			}
		}
	}
	return nil
}
