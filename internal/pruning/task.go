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
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// Task is the task of a model with the data on which its quality is measured.
type Task struct {
	// Judge is the metric that pruning must preserve; Others are also reported.
	Judge  Judge
	Others []Judge
	Unit   string // of the loss: "nats per token"
	// Parts are probes on the selecting and the reporting part. Wanted, for pairs of texts, are
	// their target similarities.
	Parts  [2]*models.Probe
	Wanted [2][]float64
	Train  Train
	// Faster means that the goal is one of speed: Works then begins with the work of that goal.
	Faster bool
	// Write, if not nil, makes Judge a metric of the model's translations of the parts' sources.
	Write *Writing
}

// Train trains a model for some steps. Each round uses different examples.
type Train func(ctx context.Context, p *models.Probe, steps, round int, tell func(done, all int)) error

// Writing is the sources of the parts, and their translations.
type Writing struct {
	By         train.Metric
	Sources    [2][][]int // tokens
	References [2][][]string
}

// Part is a part of the data on which models are measured.
type Part uint8

// The parts other than the scoring part.
const (
	Selecting Part = iota // where methods and numbers of heads are chosen
	Reporting             // the source of all reported results
)

// Metric describes a measure of a model.
type Metric struct {
	Name, Unit string
	// Loss means that the metric is the loss: smaller is better. Others are at most 100, and
	// larger is better.
	Loss  bool
	Least float64 // lowest possible value of other metrics
}

// String returns the name.
func (m Metric) String() string { return m.Name }

// better reports whether a is better than b. NaN is worse than any number.
func (m Metric) better(a, b float64) bool {
	if math.IsNaN(b) {
		return !math.IsNaN(a)
	}
	if m.Loss {
		return a < b
	}
	return a > b
}

// Measured is the result of a model on a part of the data.
type Measured struct {
	Items int                 // number of sources or texts, which the bootstrap resamples
	Of    bootstrap.Statistic // the metric
	Value float64             // the metric of all items
	// Loss is the mean over its terms, KL the mean divergence from the whole model in nats per
	// term. They are NaN if the task has none.
	Loss, KL float64
	Others   []reports.Named
}

// quality returns the measurements in the form of a report.
func (m Measured) quality(parameters int) reports.Quality {
	return reports.Quality{
		Parameters: parameters, Metric: reports.Number(m.Value), Loss: reports.Number(m.Loss), KL: reports.Number(m.KL),
		Others: m.Others,
	}
}

// Judge computes a metric of a model's predictions.
type Judge struct {
	Metric
	// Of returns the metric on samples of predictions. wanted are the target similarities of
	// pairs of texts.
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

// judges are the judges by the values of --metric.
var judges = map[string]Judge{"loss": Loss, "accuracy": Accuracy, "spearman": Spearman, "pearson": Pearson}

// ratio is a sum over the examples of a sample, divided by their number of terms.
func ratio(list []models.Predicted, scale float64, of func(models.Predicted) float64) bootstrap.Statistic {
	return func(sample []int) float64 {
		sum, terms := 0., 0
		for _, i := range sample {
			sum, terms = sum+of(list[i]), terms+list[i].Terms
		}
		return scale * sum / float64(terms)
	}
}

// correlated is the correlation of cosines with the target similarities.
func correlated(of func(x, y []float64) float64) func([]models.Predicted, []float64) bootstrap.Statistic {
	return func(list []models.Predicted, wanted []float64) bootstrap.Statistic {
		return func(sample []int) float64 {
			x, y := make([]float64, len(sample)), make([]float64, len(sample))
			for at, i := range sample {
				if x[at], y[at] = list[i].Cosine, wanted[i]; math.IsNaN(x[at]) {
					return math.NaN() // rather than the correlation of the others
				}
			}
			return 100 * of(x, y)
		}
	}
}

// Metric is the metric that pruning must preserve.
func (x *Task) Metric() Metric {
	if x.Write != nil {
		return judgedBy(x.Write.By)
	}
	return x.Judge.Metric
}

func judgedBy(m train.Metric) Metric {
	if m == train.MetricExact {
		return Metric{Name: m.String(), Unit: "%"}
	}
	return Metric{Name: m.String()}
}

// TrainProbe returns a Task.Train on the examples of a probe. rate is the largest learning rate.
func TrainProbe(learn *models.Probe, rate float64, seed uint64) Train {
	return func(ctx context.Context, p *models.Probe, steps, round int, tell func(done, all int)) error {
		return tuned(p.Train(ctx, learn, models.Training{
			Steps: steps, Rate: rate, Seed: seed + uint64(round), Progress: func(step int) { tell(step, steps) },
		}))
	}
}

// TrainTranslator is TrainProbe for a translator of attn train, with the label smoothing of attn
// train. It skips pairs that are longer than both the scored pairs and the usual limit.
func TrainTranslator(
	m *models.Model, learn, scoring []seq2seq.Pair, rate float64, smoothing float32, seed uint64,
) Train {
	most := longest(m.Translator, scoring)
	return func(ctx context.Context, p *models.Probe, steps, round int, tell func(done, all int)) error {
		done := 0
		return tuned(train.FineTune(ctx, p.Model(), learn, train.Settings{
			Batch: min(64, len(learn)), LR: rate, Warmup: max(1, steps/10), Smoothing: smoothing, Clip: 1,
			MaxLength: most, Seed: seed + uint64(round),
		}, steps, func(train.Progress) {
			done++
			tell(done, steps)
		}))
	}
}

// longest returns the maximum length in tokens of a training pair: that of the scored pairs or
// the usual limit, whichever is larger.
func longest(v *models.Translator, pairs []seq2seq.Pair) int {
	const usual = 200
	n := usual
	for _, p := range pairs {
		n = max(n, len(v.Source.Encode(p.Source))+1, len(v.Target.Encode(p.Target))+1)
	}
	return n
}

// tuned returns the error of training, a *CheckError if the model has diverged.
func tuned(err error) error {
	if errors.Is(err, models.ErrDiverged) {
		return &CheckError{fmt.Sprintf("fine-tuning: %v", err)}
	}
	return err
}

// gauge measures models on one part of the data, against the whole model.
type gauge struct {
	*Task
	part      Part
	reference *models.Reference
}

// gauge returns a gauge that compares predictions on a part with those of the whole model.
func (x *Task) gauge(ctx context.Context, whole *models.Probe, part Part) (*gauge, error) {
	r, err := models.NewReference(ctx, whole.On(x.Parts[part]))
	return &gauge{x, part, r}, err
}

func (g *gauge) Measure(ctx context.Context, p *models.Probe) (Measured, error) {
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

// written measures the model's translations of the part's sources.
func (g *gauge) written(ctx context.Context, p *models.Probe) (Measured, error) {
	written, err := p.Write(ctx, g.Write.Sources[g.part], models.Generation{})
	if err != nil {
		return Measured{}, err
	}
	texts := make([]string, len(written))
	for i, tokens := range written {
		texts[i] = p.Model().Decode(tokens)
	}
	return judged(texts, g.Write.References[g.part], g.Write.By)
}

// judged measures translations with a metric, and with the other one.
func judged(written []string, references [][]string, by train.Metric) (Measured, error) {
	j, err := train.Judge(written, references)
	if err != nil {
		return Measured{}, err
	}
	seen := Measured{Items: j.Len(), Of: func(sample []int) float64 { return j.Sample(by, sample) }, Value: j.Value(by)}
	for _, m := range []train.Metric{train.MetricExact, train.MetricBLEU} {
		if m != by {
			other := judgedBy(m)
			named := reports.Named{Name: other.Name, Unit: other.Unit, Value: reports.Number(j.Value(m))}
			seen.Others = append(seen.Others, named)
		}
	}
	return seen, nil
}
