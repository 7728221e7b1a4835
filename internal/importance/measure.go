package importance

import (
	"context"
	"math"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/exact"
	"github.com/attn-go/attn/internal/pruning/reports"
)

// measure sets the measures of all heads to their means over n records. Sums are exact, so the order of the
// records does not matter.
func measure(
	ctx context.Context, n int, record func(i int) (*heads.Record, error), layers []reports.Layer,
	tell func(done, all int),
) error {
	type mean struct {
		sum   exact.Sum
		count int64
	}
	sums := map[string][]mean{} // by layer and measure, one per head
	var names []string
	for i := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		tell(i, n)
		record, err := record(i)
		if err != nil {
			return err
		}
		for j := range record.Layers {
			l := &record.Layers[j]
			for h := range l.Heads {
				list := l.Measure(h, record.Special).List()
				names = names[:0]
				for _, v := range list {
					names = append(names, v.Name)
					key := l.Name + " " + v.Name
					if sums[key] == nil {
						sums[key] = make([]mean, l.Heads)
					}
					if !math.IsNaN(v.Value) {
						sums[key][h].sum.Add(v.Value)
						sums[key][h].count++
					}
				}
			}
		}
	}
	tell(n, n)
	for i := range layers {
		l := &layers[i]
		l.Measures = map[string][]reports.Number{}
		for _, name := range names {
			list := sums[l.Name+" "+name]
			for h := range list {
				l.Measures[name] = append(l.Measures[name], reports.Number(list[h].sum.Mean(list[h].count)))
			}
		}
	}
	return nil
}
