package pruning

import (
	"context"
	"math"

	"github.com/attn-go/attn/internal/bootstrap"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/prune"
)

// Task is what a model with heads is for, and the data that tell how well it does it. S is
// the model, with the data on which its heads are scored.
type Task[S prune.Prunable[S]] interface {
	// Metric is what heads must not cost.
	Metric() Metric
	// LossUnit is what the loss is counted in: "nats per token".
	LossUnit() string
	// Gauge returns what measures models on a part of the data, against the whole model.
	Gauge(ctx context.Context, whole S, p Part) (Gauge[S], error)
	// Parameters returns how many numbers a model has.
	Parameters(s S) int
	// Works are what speed is measured of; the first is what a goal of speed is held
	// against. None if models without heads are not faster.
	Works() []Work[S]
	// Train trains a model for some steps. Each round has other examples. It returns an
	// error if it cannot.
	Train(ctx context.Context, s S, steps, round int, tell func(done, all int)) error
}

// Part is a part of the data on which models are measured.
type Part uint8

// The parts, beside that on which heads are scored.
const (
	Selecting Part = iota // where methods and numbers of heads are chosen
	Reporting             // from which everything comes that is reported
)

// Metric says what a number tells of a model.
type Metric struct {
	Name, Unit string
	// Loss says that it is the loss: smaller is better. Others are at most 100, and more
	// is better.
	Loss  bool
	Least float64 // that others can be
}

// String returns the name.
func (m Metric) String() string { return m.Name }

// better reports whether a is better than b. Nothing is worse than what is no number.
func (m Metric) better(a, b float64) bool {
	if math.IsNaN(b) {
		return !math.IsNaN(a)
	}
	if m.Loss {
		return a < b
	}
	return a > b
}

// Gauge measures models on a part of the data.
type Gauge[S any] interface {
	Measure(ctx context.Context, s S) (Measured, error)
}

// Measured is what a model does on a part of the data.
type Measured struct {
	Items int                 // sources or texts, which are drawn again by the bootstrap
	Of    bootstrap.Statistic // the metric
	Value float64             // the metric of all items
	// Loss is the mean over its terms, KL the divergence from the whole model in nats for
	// each of them; NaN where there is none.
	Loss, KL float64
	Others   []reports.Named
}

// quality returns what was measured about a model.
func (m Measured) quality(parameters int) reports.Quality {
	return reports.Quality{Parameters: parameters, Metric: reports.Number(m.Value), Loss: reports.Number(m.Loss), KL: reports.Number(m.KL), Others: m.Others}
}

// Work is something whose speed is measured.
type Work[S any] struct {
	Name          string
	Batch, Length int
	On            func(s S) func()
	Operations    func(s S) float64 // multiply-adds; nil if they are not counted
}
