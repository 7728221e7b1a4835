package recording

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/tensor"
)

var _ view.Switcher = Model{}

// mostRows is the number of predictions to show.
const mostRows = 5

// Output returns what the model makes of a record's texts with all heads and without some: the most probable tokens or
// classes; the logarithm of the probability of a translation; or how near its mean state remains.
func (m Model) Output(ctx context.Context, r *heads.Record, off map[string][]int) (view.Output, error) {
	x, at, err := m.read(r)
	if err != nil {
		return view.Output{}, err
	}
	run := models.Run{Gates: func(layer string) *tensor.Tensor {
		for _, l := range m.Model.HeadLayers() {
			if l.Name == layer && off[layer] != nil {
				gates := tensor.Full(1, l.Heads)
				for _, h := range off[layer] {
					if h < l.Heads {
						gates.Data()[h] = 0
					}
				}
				return gates
			}
		}
		return nil
	}}
	t := tensor.NewTape(tensor.Infer)
	t.SetContext(ctx)
	var y view.Output
	err = tensor.Catch(func() {
		before := m.Model.Hidden(t, x, models.Run{})
		y = m.compare(t, x, at, before, m.Model.Hidden(t, x, run))
	})
	return y, err
}

// read returns the tokens of a record, and the position whose predictions count: lens.All for the last.
func (m Model) read(r *heads.Record) (x models.Batch, at int, err error) {
	in, err := probe.Read(m.Model, r.Source, r.Target)
	if err != nil {
		return x, 0, err
	}
	if x, err = in.Batch(); err != nil {
		return x, 0, err
	}
	at = lens.All
	if h := m.Model.Head(); h != nil && h.Task == models.MaskedWords {
		mask, err := m.Model.MaskToken()
		if err != nil {
			return x, 0, err
		}
		if at = slices.Index(x.IDs[0], mask); at < 0 {
			return x, 0, errors.New("the text has no mask token, at which the model would predict a word")
		}
	}
	return x, at, nil
}

// compare describes the states of two runs.
func (m Model) compare(t *tensor.Tape, x models.Batch, at int, before, after *tensor.Tensor) (y view.Output) {
	head := m.Model.Head()
	switch {
	case x.Targets != nil && len(x.Targets[0]) > 1:
		p := lens.Probability{}
		y.What = "logarithm of the probability of the second text"
		y.Rows = []view.OutputRow{{Label: m.Model.Decode(x.Targets[0][1:]), Before: float64(p.Values(t, m.Model, before, x).Data()[0]), After: float64(p.Values(t, m.Model, after, x).Data()[0])}}
	case head == nil || head.Task == models.TokenClasses || head.Task == models.AnswerSpan:
		y.What = "cosine with the mean state of all heads"
		y.Rows = []view.OutputRow{{Label: "mean state", Before: 1, After: cosine(tensor.MeanAxis(t, before, 1).Data(), tensor.MeanAxis(t, after, 1).Data())}}
	default:
		one, two := m.probabilities(t, x, at, before), m.probabilities(t, x, at, after)
		y.What = "probability of " + string(head.Task)
		order := largest(one, mostRows)
		for _, i := range largest(two, mostRows) {
			if !slices.Contains(order, i) {
				order = append(order, i)
			}
		}
		for _, i := range order {
			y.Rows = append(y.Rows, view.OutputRow{Label: m.label(i), Before: one[i], After: two[i]})
		}
	}
	return y
}

// probabilities returns those of all tokens or classes.
func (m Model) probabilities(t *tensor.Tape, x models.Batch, at int, hidden *tensor.Tensor) []float64 {
	head := m.Model.Head()
	var logits *tensor.Tensor
	if head.Task.PerToken() {
		if at == lens.All {
			at = hidden.Dim(1) - 1
		}
		logits = head.Logits(t, tensor.Slice(t, hidden, 1, at, at+1))
	} else {
		logits = head.Of(t, hidden, x)
	}
	return tensor.Softmax(t, tensor.Reshape(t, logits, -1)).Float64s()
}

// label returns the name of a token or a class.
func (m Model) label(i int) string {
	if names := m.Model.Head().Labels; names != nil {
		return names[i]
	}
	return m.Model.Decode([]int{i})
}

// largest returns the places of the n largest numbers.
func largest(x []float64, n int) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(x[j], x[i]) })
	return order[:min(n, len(order))]
}

func cosine(a, b []float32) float64 {
	ab, aa, bb := 0., 0., 0.
	for i := range a {
		ab += float64(float64(a[i]) * float64(b[i]))
		aa += float64(float64(a[i]) * float64(a[i]))
		bb += float64(float64(b[i]) * float64(b[i]))
	}
	return ab / math.Sqrt(aa*bb)
}

// Effects returns for each layer how the output changes without each of its heads: the logit of the most probable token
// or class minus that of the next one, the logarithm of the probability of a translation, or the cosine of mean states.
func (m Model) Effects(ctx context.Context, r *heads.Record) (map[string][]float64, error) {
	x, at, err := m.read(r)
	if err != nil {
		return nil, err
	}
	metric, err := m.metric(ctx, x, at)
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

// metric returns the number that Effects measures.
func (m Model) metric(ctx context.Context, x models.Batch, at int) (y lens.Metric, err error) {
	head := m.Model.Head()
	err = tensor.Catch(func() {
		t := tensor.NewTape(tensor.Infer)
		t.SetContext(ctx)
		switch {
		case x.Targets != nil && len(x.Targets[0]) > 1:
			y = lens.Probability{}
		case head == nil || head.Task == models.TokenClasses || head.Task == models.AnswerSpan:
			mean, err := models.PoolingByName("mean")
			if err != nil {
				panic(err) // it exists
			}
			e := models.NewEmbedder(m.Model, []models.Pooling{mean})
			y = lens.Similarity{Embedder: e, Vector: slices.Clone(e.Forward(t, x).Data())}
		default:
			two := largest(m.probabilities(t, x, at, m.Model.Hidden(t, x, models.Run{})), 2)
			g := lens.Logits{Terms: []lens.Logit{{Token: two[0], Factor: 1}}, At: at}
			if len(two) > 1 {
				g.Terms = append(g.Terms, lens.Logit{Token: two[1], Factor: -1})
			}
			y = g
		}
	})
	return y, err
}
