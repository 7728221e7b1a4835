package pruning

import (
	"context"
	"math"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/seq2seq"
)

// MeasureHeads sets the measures of all heads to their means over the pairs.
func MeasureHeads(ctx context.Context, m *seq2seq.Translator, pairs []seq2seq.Pair, layers []reports.Layer, tell func(done, all int)) error {
	type mean struct {
		sum   float64
		count int
	}
	sums := map[string][]mean{} // by layer and measure, of each head
	var names []string
	for i, p := range pairs {
		if err := ctx.Err(); err != nil {
			return err
		}
		tell(i, len(pairs))
		record, err := m.Record(p.Source, p.Target, heads.RecorderOptions{})
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
						sums[key][h].sum += v.Value
						sums[key][h].count++
					}
				}
			}
		}
	}
	tell(len(pairs), len(pairs))
	for i := range layers {
		l := &layers[i]
		l.Measures = map[string][]reports.Number{}
		for _, name := range names {
			for _, s := range sums[l.Name+" "+name] {
				l.Measures[name] = append(l.Measures[name], reports.Number(s.sum/float64(s.count)))
			}
		}
	}
	return nil
}
