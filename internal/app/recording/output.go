package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/tensor"
)

var _ view.Switcher = Model{}

// mostRows is the number of predictions to show.
const mostRows = 5

// Output returns what the model makes of a record's texts, as it is and with changes: the most probable tokens or classes;
// the logarithm of the probability of a translation; or how near its mean state remains.
func (m Model) Output(ctx context.Context, r *heads.Record, c view.Changes) (view.Output, error) {
	return m.output(ctx, r, func(t *tensor.Tape, in probe.Reading, x models.Batch, before *tensor.Tensor) (*tensor.Tensor, error) {
		if len(c.Off)+len(c.Patched)+len(c.Masked) == 0 {
			return before, nil
		}
		x, err := m.beside(x, c)
		if err != nil {
			return nil, err
		}
		run := m.run(c, len(x.IDs))
		if len(c.Masked) > 0 {
			if run.Masks, err = masks(in, r, c.Masked); err != nil {
				return nil, err
			}
		}
		return tensor.Slice(t, m.Model.Hidden(t, x, run), 0, 0, 1), nil
	})
}

// Against returns what the model makes of a record's texts, and what a pruned one makes of them, which must be the same as
// without the heads of off.
//
// Errors: states that differ by more than rounding.
func (m Model) Against(ctx context.Context, r *heads.Record, off map[string][]int, pruned *models.Model) (view.Output, error) {
	return m.output(ctx, r, func(t *tensor.Tape, _ probe.Reading, x models.Batch, _ *tensor.Tensor) (*tensor.Tensor, error) {
		want, got := m.Model.Hidden(t, x, m.run(view.Changes{Off: off}, 1)), pruned.Hidden(t, x, models.Run{})
		far, scale := 0., 1.
		for i, v := range want.Data() {
			far, scale = max(far, math.Abs(float64(v-got.Data()[i]))), max(scale, math.Abs(float64(v)))
		}
		if limit := 1e-4 * scale; !(far <= limit) {
			return nil, fmt.Errorf("the states of the pruned model differ by %g from those without the heads, more than %g", far, limit)
		}
		return got, nil
	})
}

// output compares the states of a record's texts with those that after returns.
func (m Model) output(ctx context.Context, r *heads.Record,
	after func(t *tensor.Tape, in probe.Reading, x models.Batch, before *tensor.Tensor) (*tensor.Tensor, error)) (y view.Output, err error) {
	in, x, at, err := m.read(r)
	if err != nil {
		return y, err
	}
	t := tensor.NewTape(tensor.Infer)
	t.SetContext(ctx)
	stopped := tensor.Catch(func() {
		var changed *tensor.Tensor
		before := m.Model.Hidden(t, x, models.Run{})
		if changed, err = after(t, in, x, before); err == nil {
			y = m.compare(t, x, at, before, changed)
		}
	})
	return y, cmp.Or(stopped, err)
}

// run returns a run that changes the first of n texts. Patched heads have their weights of the second text.
func (m Model) run(c view.Changes, n int) (r models.Run) {
	layers := map[string]int{} // numbers of heads
	for _, l := range m.Model.HeadLayers() {
		layers[l.Name] = l.Heads
	}
	r.Gates = func(layer string) *tensor.Tensor {
		if c.Off[layer] == nil {
			return nil
		}
		gates := tensor.Full(1, n, layers[layer])
		for _, h := range c.Off[layer] {
			gates.Data()[h] = 0
		}
		return gates
	}
	r.Edits = func(layer string) (e attn.Edits) {
		if c.Patched[layer] != nil {
			e.Weights = func(_ *tensor.Tape, w *tensor.Tensor) *tensor.Tensor { // [2 H Lq Lk]
				y := w.Clone()
				one, each := w.Len()/2, w.Len()/2/layers[layer]
				for _, h := range c.Patched[layer] {
					copy(y.Data()[h*each:][:each], w.Data()[one+h*each:])
				}
				return y
			}
		}
		return e
	}
	return r
}

// masks returns masks that hide keys of the layers of a record, for models.Run.
//
// Errors: a key that is another token when the texts are read again, as generated tokens may be.
func masks(in probe.Reading, r *heads.Record, masked map[string][]int) (func(layer string) attn.Mask, error) {
	read, err := in.Labels()
	if err != nil {
		return nil, err
	}
	all := map[string]attn.Mask{}
	for i := range r.Layers {
		l, tokens := &r.Layers[i], read.Source
		if l.Kind == heads.Decoder && read.Read != nil {
			tokens = read.Read
		}
		seen := slices.Repeat([]bool{true}, len(tokens))
		for _, key := range masked[l.Name] {
			if key >= len(tokens) || tokens[key] != l.Keys[key] {
				return nil, fmt.Errorf("token %d cannot be masked: the texts are read again as other tokens", key)
			}
			seen[key] = false
		}
		all[l.Name] = mask.Allow(seen, len(seen))
	}
	return func(layer string) attn.Mask { return all[layer] }, nil
}

// beside returns the batch of a text and, if heads are patched, of the one whose weights they are to have.
//
// Errors: those of Read; texts of different lengths; a layer without the weights of a softmax.
func (m Model) beside(x models.Batch, c view.Changes) (both models.Batch, err error) {
	if len(c.Patched) == 0 {
		return x, nil
	}
	in, err := Read(m.Model, c.Other.Source, c.Other.Target)
	if err != nil {
		return both, err
	}
	y, err := in.Batch()
	if err != nil {
		return both, err
	}
	for i, what := range []string{"text", "translation"} {
		n, other := slices.Concat(x.IDs, x.Targets), slices.Concat(y.IDs, y.Targets)
		if i < len(n) && len(n[i]) != len(other[i]) {
			return both, fmt.Errorf("the first %s has %d tokens and the second %d, want equal numbers: a patch puts the weights of a query and a key into the same place",
				what, len(n[i]), len(other[i]))
		}
	}
	for _, l := range m.Model.HeadLayers() {
		if l.Signed && c.Patched[l.Name] != nil {
			return both, fmt.Errorf("heads of %s cannot have the weights of another text: they do not mix values by those of one softmax", l.Name)
		}
	}
	return models.Batch{IDs: slices.Concat(x.IDs, y.IDs), Types: slices.Concat(x.Types, y.Types), Targets: slices.Concat(x.Targets, y.Targets)}, nil
}

// read returns the texts of a record and their tokens, and the position whose predictions count: lens.All for the last.
func (m Model) read(r *heads.Record) (in probe.Reading, x models.Batch, at int, err error) {
	if r.Layer(heads.Alignment, 0) != nil {
		return in, x, 0, errors.New("an alignment compares vectors and has no heads; a record of one text has those of the model")
	}
	if in, err = probe.Read(m.Model, r.Source, r.Target); err != nil {
		return in, x, 0, err
	}
	if x, err = in.Batch(); err != nil {
		return in, x, 0, err
	}
	at = lens.All
	if h := m.Model.Head(); h != nil && h.Task == models.MaskedWords {
		at, err = lens.MaskPosition(m.Model, "the text", x.IDs[0])
	}
	return in, x, at, err
}

// compare describes the states of two runs.
func (m Model) compare(t *tensor.Tape, x models.Batch, at int, before, after *tensor.Tensor) (y view.Output) {
	if metric, what, label := m.single(t, x); metric != nil {
		number := func(hidden *tensor.Tensor) float64 { return float64(metric.Values(t, m.Model, hidden, x).Data()[0]) }
		return view.Output{What: what, Rows: []view.OutputRow{{Label: label, Before: number(before), After: number(after)}}}
	}
	g := lens.Logits{At: at}
	one, two := g.Probabilities(t, m.Model, before, x), g.Probabilities(t, m.Model, after, x)
	_, order := tensor.TopK(tensor.Reshape(nil, one, -1), min(mostRows, one.Len()))
	_, others := tensor.TopK(tensor.Reshape(nil, two, -1), min(mostRows, two.Len()))
	for _, i := range others {
		if !slices.Contains(order, i) {
			order = append(order, i)
		}
	}
	y.What = "probability of " + string(m.Model.Head().Task)
	for _, i := range order {
		y.Rows = append(y.Rows, view.OutputRow{Label: m.label(i), Before: float64(one.Data()[i]), After: float64(two.Data()[i])})
	}
	return y
}

// single returns the metric of an output that is one number, with its description and the name of what it is of; nil for
// an output of logits.
func (m Model) single(t *tensor.Tape, x models.Batch) (metric lens.Metric, what, label string) {
	head := m.Model.Head()
	switch {
	case x.Targets != nil && len(x.Targets[0]) > 1:
		return lens.Probability{}, "logarithm of the probability of the second text", m.Model.Decode(x.Targets[0][1:])
	case head == nil || head.Task == models.TokenClasses || head.Task == models.AnswerSpan:
		mean, err := models.PoolingByName("mean")
		if err != nil {
			panic(err) // it exists
		}
		e := models.NewEmbedder(m.Model, []models.Pooling{mean})
		return lens.Similarity{Embedder: e, Vector: slices.Clone(e.Forward(t, x).Data())}, "cosine with the mean state of all heads", "mean state"
	}
	return nil, "", ""
}

// label returns the name of a token or a class.
func (m Model) label(i int) string {
	if names := m.Model.Head().Labels; names != nil {
		return names[i]
	}
	t, err := m.Model.Tokenizer()
	if err != nil {
		panic(err) // New has opened it
	}
	return lens.TokenText(t.Target(), i)
}

// Effects returns for each layer how the output changes without each of its heads: the logit of the most probable token
// or class minus that of the next one, the logarithm of the probability of a translation, or the cosine of mean states.
func (m Model) Effects(ctx context.Context, r *heads.Record) (map[string][]float64, error) {
	_, x, at, err := m.read(r)
	if err != nil {
		return nil, err
	}
	t := tensor.NewTape(tensor.Infer)
	t.SetContext(ctx)
	var metric lens.Metric
	err = tensor.Catch(func() {
		if metric, _, _ = m.single(t, x); metric == nil {
			metric = lens.Best(t, m.Model, x, at)
		}
	})
	if err != nil {
		return nil, err
	}
	l, err := lens.New(m.Model, metric)
	if err != nil {
		return nil, err
	}
	_, list, err := l.Effects(ctx, x, "zero", lens.Zero, lens.Sites(m.Model, lens.Head))
	all := map[string][]float64{}
	for _, e := range list {
		all[e.Layer] = append(all[e.Layer], e.Effect)
	}
	return all, err
}

// mostLabels is the number of predictions of a layer at a position.
const mostLabels = 3

// Predictions implements view.Switcher: the logit lens.
func (m Model) Predictions(ctx context.Context, r *heads.Record) (y view.Predictions, err error) {
	_, x, _, err := m.read(r)
	if err != nil {
		return y, err
	}
	l, err := lens.New(m.Model, nil)
	if err != nil {
		return y, err
	}
	all, err := l.LogitLens(ctx, x, mostLabels)
	if err != nil {
		return y, err
	}
	for _, states := range all {
		row := make([][]view.Prediction, len(states))
		for i, list := range states {
			for _, p := range list {
				row[i] = append(row[i], view.Prediction{Label: m.label(p.Token), Probability: p.Probability})
			}
		}
		y.Layers = append(y.Layers, row)
	}
	ids := x.IDs[0]
	if x.Targets != nil {
		ids = x.Targets[0]
	}
	for _, id := range ids {
		y.Tokens = append(y.Tokens, m.label(id))
	}
	return y, nil
}
