package importance

import (
	"context"
	"encoding/json"
	"os"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
)

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
	layers := m.Attention()
	r = reports.Importance{Model: dir, Data: path, Task: tasks.Translation, Items: "pairs", Texts: f.Lines, Layers: Layers(layers)}
	if err := f.measures(r.Layers); err != nil {
		return r, err
	}
	if m.Sizes().Decoder == nil { // its lines have no scores
		r.Task, r.Items, r.Scores = tasks.Attention, "texts", []reports.Scores{}
		return r, nil
	}
	scores, err := f.scores(r.Layers, complete, o)
	if err != nil {
		return r, err
	}
	free, err := prune.Importance(context.Background(), layersOnly(layers), prune.ImportanceOptions{
		Methods: []prune.Method{prune.WeightNorm, prune.Random}, Seed: o.Seed,
	})
	if err != nil {
		return r, err
	}
	var list []prune.Scores
	for _, method := range o.Methods {
		for _, s := range slices.Concat(scores, free) {
			if s.Method == method {
				list = append(list, s)
			}
		}
	}
	r.Scores = Tabulate(layers, list)
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

// scores returns the scores by the methods that need data.
func (f *merged) scores(layers []reports.Layer, complete bool, o Options) (list []prune.Scores, err error) {
	var all map[string]sums
	if raw := f.Sums[key]; raw != nil {
		if err := strictjson.Lenient(raw, &all); err != nil {
			return nil, f.bad("importance: %v", err)
		}
	}
	for _, method := range o.Methods {
		x, there := all[method.String()]
		switch {
		case method == prune.WeightNorm || method == prune.Random: // they need no data
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
type layersOnly []*attn.MultiHead

func (l layersOnly) Layers() []*attn.MultiHead { return l }
func (l layersOnly) Batches() []int            { return nil }

func (l layersOnly) Run(*tensor.Tape, int, prune.Pass) prune.Outcome { panic("there are no data") }
