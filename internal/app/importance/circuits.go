package importance

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/viz"
)

// Circuits reads heads from the weights of a model alone: the copying score of each head, and for queries, keys and values
// the given number of pairs of heads whose composition is the largest. tell is called with the number of layers that are read.
//
// Errors: those of lens.HeadCircuits; ctx.Err() if ctx ends.
func Circuits(ctx context.Context, m *models.Model, best int, tell func(done, all int)) (reports.Importance, error) {
	r := reports.Importance{Model: m.Dir, Task: "circuits", Layers: Layers(m.HeadLayers()), Scores: []reports.Scores{}}
	blocks, gram, err := lens.HeadCircuits(m)
	if err != nil {
		return r, err
	}
	var all [3][]reports.Pair
	for i, later := range blocks {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		tell(i, len(blocks))
		var copying []reports.Number
		for _, v := range later.Copying(gram) {
			copying = append(copying, reports.Number(v))
		}
		r.Layers[i].Measures = map[string][]reports.Number{"copying": copying}
		for j, earlier := range blocks[:i] {
			q, k, v := later.Composition(earlier)
			for part, scores := range [][][]float64{q, k, v} {
				for to, row := range scores {
					for from, score := range row {
						if !math.IsNaN(score) { // of a head without weights
							all[part] = append(all[part], reports.Pair{
								Reads: reports.Reads[part], From: viz.ShortHeadName(j, from), To: viz.ShortHeadName(i, to), Score: score,
							})
						}
					}
				}
			}
		}
	}
	r.Composition = []reports.Pair{}
	for _, list := range all {
		slices.SortStableFunc(list, func(a, b reports.Pair) int { return cmp.Compare(b.Score, a.Score) })
		r.Composition = append(r.Composition, list[:min(best, len(list))]...)
	}
	return r, nil
}
