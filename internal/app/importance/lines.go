package importance

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/internal/app/texts"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// LineMethods are the methods whose scores are quotients of sums over pairs, so that lines can be added up.
// Scores of taylor depend on which pairs share a batch. Other methods need no pairs.
var LineMethods = []prune.Method{prune.LeaveOneOut, prune.Gradient, prune.Fisher, prune.Confidence}

// key is the key of a line's contribution to importance. The other keys are names of layers.
const key = "importance"

// Line is the result for a line: by layer and measure, a number for each head; and by method, the
// contribution of the line to importance.
type Line map[string]any

// sums are the sums of prune.Scores by layer.
type sums struct {
	Sums   map[string][]reports.Number `json:"sums"`
	Counts map[string][]reports.Number `json:"counts"`
}

// Lines returns the filter of attn heads --per-line, which measures the heads of a model on one line at a time: a
// pair for an encoder-decoder, and a text for other models, with which methods must be empty. It reports unknown
// pieces of the texts to messages.
func Lines(m *models.Model, methods []prune.Method, messages io.Writer) filter.Filter[Line] {
	unknown := texts.NewUnknown(m, messages)
	f := filter.Filter[Line]{Batch: 1, Write: filter.JSON[Line]}
	f.Work = func(ctx context.Context, batch []*filter.Line[Line]) error {
		pairs, of := []seq2seq.Pair{{Source: batch[0].Text}}, batch
		if m.Sizes().Decoder != nil {
			pairs, of = texts.Pairs(batch)
		}
		unknown.Pairs(pairs)
		for i, p := range pairs {
			layers := Layers(m.Attention())
			in, err := recording.Read(m, p.Source, p.Target)
			if err == nil {
				parts, record := recording.Parts(m, []probe.Reading{in}, recording.MaxWeights)
				err = measure(ctx, parts, record, layers, func(int, int) {})
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if of[i].Err = err; err != nil {
				continue
			}
			of[i].Value = Line{}
			for _, l := range layers {
				of[i].Value[l.Name] = l.Measures
			}
			if len(methods) == 0 {
				continue
			}
			probe, err := train.Probe(m, pairs[i:i+1])
			if err != nil {
				return err
			}
			list, err := prune.Importance(ctx, probe, prune.ImportanceOptions{Methods: methods})
			if err != nil {
				return err
			}
			of[i].Value[key], of[i].Err = sumsOf(list)
		}
		return nil
	}
	return f
}

// measures returns the measures of all heads of a record, by layer and measure.
func measures(r *heads.Record) map[string]map[string][]reports.Number {
	all := map[string]map[string][]reports.Number{}
	for i := range r.Layers {
		l := &r.Layers[i]
		layer := map[string][]reports.Number{}
		for h := range l.Heads {
			for _, v := range l.Measure(h, r.Special).List() {
				layer[v.Name] = append(layer[v.Name], reports.Number(v.Value))
			}
		}
		all[l.Name] = layer
	}
	return all
}

// sumsOf returns the sums of scores by method.
func sumsOf(list []prune.Scores) (map[string]sums, error) {
	all := map[string]sums{}
	for _, s := range list {
		x := sums{map[string][]reports.Number{}, map[string][]reports.Number{}}
		for layer, values := range s.Sums {
			for h, sum := range values {
				if math.IsNaN(sum) || math.IsInf(sum, 0) { // null in JSON, and so missing from the total
					return nil, fmt.Errorf("%v of head %d of %s is not finite", s.Method, h, layer)
				}
				x.Sums[layer] = append(x.Sums[layer], reports.Number(sum))
				x.Counts[layer] = append(x.Counts[layer], reports.Number(s.Counts[layer][h]))
			}
		}
		all[s.Method.String()] = x
	}
	return all, nil
}
