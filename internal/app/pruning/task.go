package pruning

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/train"
)

// Task is the task of a model with the data on which its quality is measured.
type Task struct {
	// Judge is the metric that pruning must preserve; Others are also reported.
	Judge  Judge
	Others []Judge
	Unit   string // of the loss: "nats per token"
	// Methods and numbers of heads are chosen on Selecting; all reported results are from Reporting.
	Selecting, Reporting Part
	Train                Train
	// Faster means that the goal is one of speed: Works then begins with the work of that goal.
	Faster bool
}

// Part is a part of the data on which models are measured, other than the scoring part.
type Part struct {
	Probe *probe.Probe
	// Wanted, for pairs of texts, are their target similarities.
	Wanted []float64
	// Sources, as tokens, and References are for a Judge of translations, and nil otherwise.
	Sources    [][]int
	References [][]string

	reference *probe.Reference // predictions of the whole model
	whole     Measured         // the result of the whole model
}

// Train trains a model for some steps.
type Train func(ctx context.Context, p *probe.Probe, steps int, tell func(done, all int)) error

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
func (m Metric) better(a, b reports.Number) bool {
	if math.IsNaN(float64(b)) {
		return !math.IsNaN(float64(a))
	}
	if m.Loss {
		return a < b
	}
	return a > b
}

// Measured is the result of a model on a part of the data.
type Measured struct {
	Items int             // number of sources or texts, which the bootstrap resamples
	Of    stats.Statistic // the metric
	reports.Quality
}

// outcome has the predictions of a model on a part of the data, and its translations if a Judge needs them.
type outcome struct {
	predicted []probe.Predicted
	wanted    []float64 // as in Part
	written   *train.Judged
}

// Judge computes a metric of an outcome.
type Judge struct {
	Metric
	Writes bool // Of samples translations of the sources; if false, predictions
	// Of returns the metric on samples of the translations or predictions.
	Of func(o outcome) stats.Statistic
}

// The judges of predictions.
var (
	Loss = Judge{Metric{Name: "loss", Loss: true}, false, func(o outcome) stats.Statistic {
		return ratio(o.predicted, 1, func(p probe.Predicted) float64 { return p.Loss })
	}}
	Accuracy = Judge{Metric{Name: "accuracy", Unit: "%"}, false, func(o outcome) stats.Statistic {
		return ratio(o.predicted, 100, func(p probe.Predicted) float64 { return float64(p.Right) })
	}}
	divergence = Judge{Metric{Name: "KL", Unit: "nats", Loss: true}, false, func(o outcome) stats.Statistic {
		return ratio(o.predicted, 1, func(p probe.Predicted) float64 { return p.KL })
	}}
	Spearman = Judge{Metric{Name: "Spearman", Unit: "correlation × 100", Least: -100}, false, correlated(prune.Spearman)}
	Cosine   = Judge{Metric{Name: "cosine", Unit: "× 100", Least: -100}, false, func(o outcome) stats.Statistic {
		return ratio(o.predicted, 100, func(p probe.Predicted) float64 { return p.Cosine })
	}}
	Pearson = Judge{Metric{Name: "Pearson", Unit: "correlation × 100", Least: -100}, false, correlated(prune.Pearson)}
)

// The judges of translations.
var (
	BLEU  = Judge{Metric{Name: train.MetricBLEU.String()}, true, translated(train.MetricBLEU)}
	Exact = Judge{Metric{Name: train.MetricExact.String(), Unit: "%"}, true, translated(train.MetricExact)}
)

func translated(m train.Metric) func(outcome) stats.Statistic {
	return func(o outcome) stats.Statistic {
		return func(sample []int) float64 { return o.written.Sample(m, sample) }
	}
}

// judges are the judges by the values of --metric.
var judges = map[string]Judge{
	"loss": Loss, "accuracy": Accuracy, "spearman": Spearman, "pearson": Pearson, "cosine": Cosine, "bleu": BLEU, "exact": Exact,
}

// ratio is a sum over the examples of a sample, divided by their number of terms.
func ratio(list []probe.Predicted, scale float64, of func(probe.Predicted) float64) stats.Statistic {
	return func(sample []int) float64 {
		sum, terms := 0., 0
		for _, i := range sample {
			sum, terms = sum+of(list[i]), terms+list[i].Terms
		}
		return scale * sum / float64(terms)
	}
}

// correlated is the correlation of cosines with the target similarities.
func correlated(of func(x, y []float64) float64) func(outcome) stats.Statistic {
	return func(o outcome) stats.Statistic {
		return func(sample []int) float64 {
			x, y := make([]float64, len(sample)), make([]float64, len(sample))
			for at, i := range sample {
				if x[at], y[at] = o.predicted[i].Cosine, o.wanted[i]; math.IsNaN(x[at]) {
					return math.NaN() // rather than the correlation of the others
				}
			}
			return 100 * of(x, y)
		}
	}
}

// TrainProbe returns a Task.Train on the examples of a probe.
func TrainProbe(learn *probe.Probe, o train.Tuning) Train {
	return func(ctx context.Context, p *probe.Probe, steps int, tell func(done, all int)) error {
		o.Steps, o.Progress = steps, func(step int) { tell(step, steps) }
		return tuned(train.FineTune(ctx, p, learn, o))
	}
}

// tuned returns the error of training, a *CheckError if the model has diverged.
func tuned(err error) error {
	if errors.Is(err, models.ErrDiverged) {
		return &CheckError{fmt.Sprintf("fine-tuning: %v", err)}
	}
	return err
}

// Measure measures a model on a part, against the whole model.
func (x *Task) Measure(ctx context.Context, p *probe.Probe, on *Part) (Measured, error) {
	list, err := on.reference.Compare(ctx, p)
	if err != nil {
		return Measured{}, err
	}
	o := outcome{predicted: list, wanted: on.Wanted}
	if x.Judge.Writes {
		if o.written, err = on.translate(ctx, p); err != nil {
			return Measured{}, err
		}
	}
	value := func(j Judge) reports.Number { return reports.Number(j.Of(o)(stats.Numbers(o.items(j)))) }
	seen := Measured{o.items(x.Judge), x.Judge.Of(o), reports.Quality{
		Parameters: p.Parameters(), Metric: value(x.Judge), Loss: value(Loss), KL: value(divergence),
	}}
	for _, j := range x.Others {
		seen.Others = append(seen.Others, reports.Named{Name: j.Name, Unit: j.Unit, Value: value(j)})
	}
	return seen, nil
}

// items returns the number of translations or predictions that a judge samples.
func (o outcome) items(j Judge) int {
	if j.Writes {
		return o.written.Len()
	}
	return len(o.predicted)
}

// translate compares the model's translations of the sources with the references.
func (x *Part) translate(ctx context.Context, p *probe.Probe) (*train.Judged, error) {
	written, err := p.Write(ctx, x.Sources, models.Generation{})
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(written))
	for i, tokens := range written {
		texts[i] = p.Model().Decode(tokens)
	}
	return train.Judge(texts, x.References)
}
