package pruning

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/attn-go/attn/internal/bootstrap"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/train"
)

// Judge says what the predictions of a pretrained model are worth.
type Judge struct {
	Metric
	// Of returns the metric on samples of what is predicted. wanted are the similarities
	// that pairs of texts are said to have.
	Of func(list []models.Predicted, wanted []float64) bootstrap.Statistic
}

// The judges of predictions.
var (
	Loss = Judge{Metric{Name: "loss", Loss: true}, func(list []models.Predicted, _ []float64) bootstrap.Statistic {
		return ratio(list, 1, func(p models.Predicted) float64 { return p.Loss })
	}}
	Accuracy = Judge{Metric{Name: "accuracy", Unit: "%"}, func(list []models.Predicted, _ []float64) bootstrap.Statistic {
		return ratio(list, 100, func(p models.Predicted) float64 { return float64(p.Right) })
	}}
	Spearman = Judge{Metric{Name: "Spearman", Unit: "correlation × 100", Least: -100}, correlated(prune.Spearman)}
	Pearson  = Judge{Metric{Name: "Pearson", Unit: "correlation × 100", Least: -100}, correlated(prune.Pearson)}
)

// ratio is a sum over the terms of the examples of a sample, for each of these terms.
func ratio(list []models.Predicted, scale float64, of func(models.Predicted) float64) bootstrap.Statistic {
	return func(sample []int) float64 {
		sum, terms := 0., 0
		for _, i := range sample {
			sum, terms = sum+of(list[i]), terms+list[i].Terms
		}
		return scale * sum / float64(terms)
	}
}

// correlated is the correlation of cosines with the similarities that are wanted.
func correlated(of func(x, y []float64) float64) func([]models.Predicted, []float64) bootstrap.Statistic {
	return func(list []models.Predicted, wanted []float64) bootstrap.Statistic {
		return func(sample []int) float64 {
			x, y := make([]float64, len(sample)), make([]float64, len(sample))
			for at, i := range sample {
				if x[at], y[at] = list[i].Cosine, wanted[i]; math.IsNaN(x[at]) {
					return math.NaN() // and not the correlation of the others
				}
			}
			return 100 * of(x, y)
		}
	}
}

// Predictions is the task of a pretrained model.
type Predictions struct {
	// Judge is what heads must not cost, Others what is told beside it.
	Judge  Judge
	Others []Judge
	Unit   string // of the loss
	// Parts are probes on the selecting and the reporting part, and Wanted, for pairs of
	// texts, the similarities that they are said to have.
	Parts  [2]*models.Probe
	Wanted [2][]float64
	// Learn has the examples for fine-tuning, and Rate is the largest learning rate.
	Learn *models.Probe
	Rate  float64
	Seed  uint64
	// Faster says that the goal is one of speed: what it is held against comes first.
	Faster bool
	// Write, if not nil, makes Judge a metric of translations: of what the model writes for
	// the sources of the parts.
	Write *Writing
}

// Writing is the sources of the parts, and their translations.
type Writing struct {
	By         train.Metric
	Sources    [2][][]int // tokens
	References [2][][]string
	Tokens     func(source int) int // that may be written
	Text       func(tokens []int) string
}

var _ Task[*models.Probe] = (*Predictions)(nil)

// Metric returns that of the judge.
func (x *Predictions) Metric() Metric {
	if x.Write != nil {
		return judgedBy(x.Write.By)
	}
	return x.Judge.Metric
}

// LossUnit returns Unit.
func (x *Predictions) LossUnit() string { return x.Unit }

// Parameters returns how many there are, those of removed heads left out unless the model
// keeps its shapes.
func (x *Predictions) Parameters(p *models.Probe) int { return p.Parameters() }

// Train trains a model for some steps on the examples of Learn.
func (x *Predictions) Train(ctx context.Context, p *models.Probe, steps, round int, tell func(done, all int)) error {
	err := p.Train(ctx, x.Learn, models.Training{
		Steps: steps, Rate: x.Rate, Seed: x.Seed + uint64(round), Progress: func(step int) { tell(step, steps) },
	})
	if errors.Is(err, models.ErrDiverged) {
		return &CheckError{fmt.Sprintf("fine-tuning: %v", err)}
	}
	return err
}

// Gauge returns what compares predictions on a part with those of the whole model.
func (x *Predictions) Gauge(ctx context.Context, whole *models.Probe, part Part) (Gauge[*models.Probe], error) {
	r, err := models.NewReference(ctx, whole.On(x.Parts[part]))
	return &predictions{x, part, r}, err
}

// predictions measures models on one part of the data.
type predictions struct {
	*Predictions
	part      Part
	reference *models.Reference
}

func (g *predictions) Measure(ctx context.Context, p *models.Probe) (Measured, error) {
	list, err := g.reference.Compare(ctx, p)
	if err != nil {
		return Measured{}, err
	}
	all := make([]int, len(list))
	for i := range all {
		all[i] = i
	}
	value := func(j Judge) float64 { return j.Of(list, g.Wanted[g.part])(all) }
	var seen Measured
	if g.Write != nil {
		if seen, err = g.written(ctx, p); err != nil {
			return seen, err
		}
	} else {
		seen = Measured{Items: len(list), Of: g.Judge.Of(list, g.Wanted[g.part]), Value: value(g.Judge)}
	}
	seen.Loss = value(Loss)
	seen.KL = ratio(list, 1, func(p models.Predicted) float64 { return p.KL })(all)
	for _, j := range g.Others {
		seen.Others = append(seen.Others, reports.Named{Name: j.Name, Unit: j.Unit, Value: reports.Number(value(j))})
	}
	return seen, nil
}

// written has the model translate the sources of the part.
func (g *predictions) written(ctx context.Context, p *models.Probe) (Measured, error) {
	var texts []string
	for _, source := range g.Write.Sources[g.part] {
		tokens, err := p.Write(ctx, source, models.Generation{Tokens: g.Write.Tokens(len(source))})
		if err != nil {
			return Measured{}, err
		}
		texts = append(texts, g.Write.Text(tokens))
	}
	return judged(texts, g.Write.References[g.part], g.Write.By)
}
