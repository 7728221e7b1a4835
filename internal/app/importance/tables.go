package importance

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/prune"
)

// Layers describes the attention layers of a model with all heads kept.
func Layers(layers []*attn.MultiHead) []reports.Layer {
	var list []reports.Layer
	for _, l := range layers {
		name := l.Config().Name
		kind, index := heads.Place(name)
		layer := reports.Layer{Name: name, Kind: kind.String(), Index: index, Heads: l.Config().Heads, Kept: []int{}}
		for h := range layer.Heads {
			layer.Kept = append(layer.Kept, h)
		}
		list = append(list, layer)
	}
	return list
}

// Tabulate returns scores by layer and head, with their rank correlations.
func Tabulate(layers []*attn.MultiHead, scores []prune.Scores) []reports.Scores {
	var reference []float64
	for _, s := range scores {
		if s.Method == prune.LeaveOneOut {
			reference = s.Flat(layers)
		}
	}
	var list []reports.Scores
	for _, s := range scores {
		row := reports.Scores{Method: s.Method.String(), Passes: s.Passes, Seconds: s.Time.Seconds(), Rank: reports.NaN}
		for _, l := range layers {
			values := []reports.Number{}
			for _, v := range s.Values[l.Config().Name] {
				values = append(values, reports.Number(v))
			}
			row.Values = append(row.Values, values)
		}
		if reference != nil {
			row.Rank = reports.Number(prune.Spearman(s.Flat(layers), reference))
		}
		list = append(list, row)
	}
	return list
}
