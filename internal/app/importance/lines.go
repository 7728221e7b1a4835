package importance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/internal/app/texts"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
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
		for i, p := range pairs {
			layers := Layers(m.HeadLayers())
			in, err := recording.Read(m, p.Source, p.Target)
			if err == nil {
				unknown.Read(in)
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

// merged is the output of attn shards --merge --sums.
type merged struct {
	Model string
	Lines int
	Sums  map[string]json.RawMessage
	Means map[string]json.RawMessage
	path  string
}

func (f *merged) bad(format string, args ...any) error { return input.Errorf(f.path, format, args...) }

// Merged returns the report of the lines that attn shards --merge --sums has added up, which are those of
// Lines. It equals the report of Measure on all pairs. id is the identity of the model in such files, and
// dir its name in the report. If complete is false, methods that the file lacks are missing in the report.
//
// Errors: *input.Error for a file of another model or of other lines.
func Merged(path string, m *models.Model, dir, id string, complete bool, o Options) (reports.Importance, error) {
	var r reports.Importance
	if len(o.Methods) == 0 {
		o.Methods = tasks.DefaultMethods()
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	f := &merged{path: path}
	if err := json.Unmarshal(data, f); err != nil || f.Model == "" || f.Means == nil {
		return r, f.bad("is not what attn shards --merge --sums writes")
	}
	if f.Model != id {
		return r, f.bad("was made with model %.12s, not %.12s", f.Model, id)
	}
	layers := m.HeadLayers()
	r = reports.Importance{Model: dir, Data: path, Task: tasks.Translation, Items: "pairs", Texts: f.Lines, Layers: Layers(layers)}
	if err := f.measures(r.Layers); err != nil {
		return r, err
	}
	if m.Sizes().Decoder == nil { // its lines have no scores
		r.Task, r.Items, r.Scores = tasks.Attention, "texts", []reports.Scores{}
		return r, nil
	}
	free, err := prune.Importance(context.Background(), layersOnly(layers), prune.ImportanceOptions{
		Methods: []prune.Method{prune.WeightNorm, prune.Random}, Seed: o.Seed,
	})
	if err != nil {
		return r, err
	}
	scores, err := f.scores(r.Layers, free, complete, o)
	if err != nil {
		return r, err
	}
	r.Scores = Tabulate(layers, scores)
	return r, nil
}

// measures sets the measures of layers.
func (f *merged) measures(layers []reports.Layer) error {
	for i := range layers {
		l := &layers[i]
		if err := json.Unmarshal(f.Means[l.Name], &l.Measures); err != nil {
			return f.bad("has no measures of %s, want the lines of attn heads --per-line", l.Name)
		}
		for _, m := range (heads.Measures{}).List() {
			if n := len(l.Measures[m.Name]); n != l.Heads {
				return f.bad("has %s of %d heads of %s, want %d", m.Name, n, l.Name, l.Heads)
			}
		}
	}
	return nil
}

// scores returns the scores by all methods. Those of free need no data.
func (f *merged) scores(layers []reports.Layer, free []prune.Scores, complete bool, o Options) (list []prune.Scores, err error) {
	var all map[string]sums
	if raw := f.Sums[key]; raw != nil {
		if err := strictjson.Lenient(raw, &all); err != nil {
			return nil, f.bad("importance: %v", err)
		}
	}
	for _, method := range o.Methods {
		x, there := all[method.String()]
		i := slices.IndexFunc(free, func(s prune.Scores) bool { return s.Method == method })
		switch {
		case i >= 0:
			list = append(list, free[i])
			continue
		case !there && complete:
			return nil, f.bad("has no %v, want the lines of attn heads --per-line with --method %v", method, method)
		case !there:
			continue
		}
		s := prune.Scores{Method: method, Values: map[string][]float64{}}
		for _, l := range layers {
			if n, counts := len(x.Sums[l.Name]), len(x.Counts[l.Name]); n != l.Heads || counts != l.Heads {
				return nil, f.bad("has %v of %d heads of %s, and %d counts, want %d of both", method, n, l.Name, counts, l.Heads)
			}
			for h, sum := range x.Sums[l.Name] {
				s.Values[l.Name] = append(s.Values[l.Name], float64(sum/x.Counts[l.Name][h]))
			}
		}
		if o.Normalize {
			s.Normalize()
		}
		list = append(list, s)
	}
	return list, nil
}

// layersOnly is a subject without data.
type layersOnly []attn.LayerHeads

func (l layersOnly) Layers() []attn.LayerHeads { return l }
func (l layersOnly) Batches() []int            { return nil }

func (l layersOnly) Run(*tensor.Tape, int, prune.Pass) prune.Outcome { panic("there are no data") }
