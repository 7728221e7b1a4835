// Package pruning is the experiment that attn prune runs: it scores heads on one
// part of the data, selects on another, and reports on a third.
package pruning

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/importance"
	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
)

// Experiment configures what is pruned and measured.
type Experiment struct {
	Subject *probe.Probe // the whole model, with the scoring part
	Task    *Task
	// Methods are the methods whose curves are measured. The model is pruned with the method that
	// does best on the selecting part.
	Methods []prune.Method
	Goal    Goal
	// Given are the heads to keep. Nil means those with the largest scores.
	Given []prune.Head
	// Normalize divides gradient scores by their layer's norm.
	Normalize bool
	// Kinds are the kinds of attention from which heads may be removed. Empty means all.
	Kinds []heads.Kind
	// Empty lets layers lose all their heads.
	Empty bool
	// Even removes the same share of heads from each layer, all scored once. Those layers of Kinds
	// that have a softmax must have equally many heads, and so must those that have none.
	Even bool
	// Step is the number of heads to remove before the rest is scored again. 0 scores once, and
	// Affordable derives the step from the cost of scoring.
	Step int
	// Compensate is the name of the compensation in prune.Compensations for all removed heads together. Empty means none.
	// Otherwise heads are scored, and curves measured, on probe.Probe.Centered: a head that is left out leaves its mean.
	Compensate string
	// FineTune is the number of training steps of the pruned model, after compensation. 0 means none.
	FineTune int
	// Resamples is the number of bootstrap samples.
	Resamples int
	Seed      uint64
	// Compare measures more than the result: the curves of Methods, Orders random orders, and all kinds of work.
	Compare bool
	Orders  int
	// SpeedTime is the duration for which a kind of work is measured, with Compare or a goal of speed. 0 skips speed; a
	// goal of speed requires more than 0.
	SpeedTime time.Duration
	// Progress, if not nil, is called with the progress of a stage.
	Progress func(stage string, done, all int)
	// Save, if not nil, is called with the report whenever it has new results that should survive
	// an interruption.
	Save func(*reports.Report) error
	// Keep, if not nil, is called with the pruned model before curves and speed are measured.
	Keep func(ctx context.Context, left *probe.Probe, r *reports.Report) error
}

// Affordable is an Experiment's Step that is as small as the cost of scoring allows: 1, or the
// least number of heads for which each method stays within mostPasses.
const Affordable = -1

// mostPasses limits the passes over the scoring part that repeated scoring may take for one
// method; a backward pass counts as 2. This is enough for a dozen heads by leave-one-out, or 40
// by gradients.
const mostPasses = 120

// Goal defines when to stop. Exactly one field is used.
type Goal struct {
	Left  int     // number of remaining heads; 0 if another field is used
	Drop  float64 // fraction of the metric that may be lost, on the selecting part
	Speed float64 // required speed-up of the first of Works; 0 if another field is used
}

// Describe returns the goal as text for users.
//
// work is the verb of the work that gets faster: "translate".
func (g Goal) Describe(m Metric, work string) string {
	switch {
	case g.Left > 0:
		return fmt.Sprintf("keep %d heads", g.Left)
	case g.Speed > 0:
		return fmt.Sprintf("%s %g times as fast", work, g.Speed)
	case m.Loss:
		return fmt.Sprintf("let the loss grow by at most %g%%", 100*g.Drop)
	}
	return fmt.Sprintf("lose at most %g%% of %s", 100*g.Drop, m)
}

// tolerates reports whether the metric may fall from whole to value.
func (g Goal) tolerates(m Metric, value, whole reports.Number) bool {
	const rounding = 1e-9 // so that a loss of exactly the tolerated size passes
	if m.Loss {
		return value <= reports.Number(1+g.Drop+rounding)*whole
	}
	return value >= reports.Number(1-g.Drop-rounding)*whole
}

// CheckError means that a goal was not reached, or that models that must agree differ.
type CheckError struct{ Reason string }

// Error returns the reason.
func (e *CheckError) Error() string { return e.Reason }

// run is a running experiment.
type run struct {
	*Experiment
	metric  Metric
	layers  []attn.LayerHeads // of the whole model
	report  *reports.Report
	scored  *probe.Probe   // the whole model as heads are scored on it: see Compensate
	scores  []prune.Scores // by Methods
	paths   [][]prune.Head // by Methods, the heads removed first: see path
	method  int            // index into Methods of the chosen method
	removes int            // number of heads to remove
	left    *probe.Probe   // the pruned model, once it exists
	seen    Measured       // of it
	// known caches measurements on the reporting part by removed heads, because orders have much
	// in common at their ends. It is limited to mostKnown models, because each measurement stores
	// the counts of every item.
	known map[string]Measured
}

// start returns the run of an experiment.
func (e *Experiment) start(r *reports.Report) *run {
	return &run{
		Experiment: e, metric: e.Task.Judge.Metric, layers: e.Subject.Layers(), report: r, known: map[string]Measured{},
		paths: make([][]prune.Head, len(e.Methods)),
	}
}

// Run runs the experiment and adds its results to the report, which already identifies the model
// and the data. After an error, including that of ctx, the report contains the results so far.
func (e *Experiment) Run(ctx context.Context, r *reports.Report) error {
	start := time.Now()
	defer func() { r.Seconds = time.Since(start).Seconds() }()
	x := e.start(r)
	x.describe()
	stages := []func(context.Context) error{x.score, x.prepare, x.choose, x.prune, x.control}
	if x.Compare {
		stages = append(stages, x.curves, x.randomBand)
	}
	for _, stage := range append(stages, x.speed) {
		if err := stage(ctx); err != nil {
			return err
		}
		r.Seconds = time.Since(start).Seconds()
		if err := x.save(); err != nil {
			return err
		}
	}
	return nil
}

func (x *run) save() error {
	if x.Save == nil {
		return nil
	}
	return x.Save(x.report)
}

// progress returns a function that reports the progress of a stage.
func (x *run) progress(stage string) func(done, all int) {
	return func(done, all int) {
		if x.Progress != nil {
			x.Progress(stage, done, all)
		}
	}
}

// describe adds to the report what is known before any measurement.
func (x *run) describe() {
	r := x.report
	s := &r.Settings
	work := ""
	if x.Goal.Speed > 0 {
		work = x.Task.Works()[0].Name
	}
	s.Goal, s.Speed = x.Goal.Describe(x.metric, work), x.Goal.Speed
	s.Normalize, s.Empty, s.Even = x.Normalize, x.Empty, x.Even
	s.Metric, s.Unit, s.Lower, s.Least = x.metric.Name, x.metric.Unit, x.metric.Loss, x.metric.Least
	s.LossUnit = x.Task.Unit
	s.Compensate = x.Compensate
	s.Step, s.FineTune, s.Resamples, s.Seed = max(x.Step, 0), x.FineTune, x.Resamples, x.Seed
	if x.Compare {
		s.Orders = x.Orders
	}
	for _, k := range x.Kinds {
		r.Settings.Kinds = append(r.Settings.Kinds, k.String())
	}
	r.Settings.Methods = []string{}
	for _, m := range x.Methods {
		if x.Given != nil {
			break
		}
		r.Settings.Methods = append(r.Settings.Methods, m.String())
	}
	r.Model.Heads, r.Model.Parameters = total(x.layers), x.Subject.Parameters()
	r.Result.Before, r.Result.After = reports.Unknown(), reports.Unknown()
	r.Result.Low, r.Result.High, r.Result.Difference = reports.NaN, reports.NaN, reports.NaN
	r.Machine = thisMachine()
	r.Layers = importance.Layers(x.layers)
}

func total(layers []attn.LayerHeads) (n int) {
	for _, l := range layers {
		n += l.Heads
	}
	return n
}

// score measures the importance of heads on the scoring part. If ctx ends, the report contains
// the scores so far.
func (x *run) score(ctx context.Context) error {
	var err error
	if x.scored = x.Subject; x.Compensate != "" {
		if x.scored, err = x.Subject.Centered(ctx); err != nil {
			return err
		}
	}
	if x.Given != nil { // as if they alone had a score
		values := map[string][]float64{}
		for _, l := range x.layers {
			values[l.Name] = make([]float64, l.Heads)
		}
		for _, h := range x.Given {
			values[h.Layer][h.Number] = 1
		}
		x.scores, x.Step = []prune.Scores{{Method: x.Methods[0], Values: values}}, 0
		return nil
	}
	x.scores, err = prune.Importance(ctx, x.scored, prune.ImportanceOptions{
		Methods: x.Methods, Normalize: x.Normalize, Seed: x.Seed, Progress: x.progress("scoring heads"),
	})
	x.report.Scores = importance.Tabulate(x.layers, x.scores)
	if err != nil {
		_ = x.save() // the first error matters
	}
	return err
}

// prepare measures the whole model on the other two parts.
func (x *run) prepare(ctx context.Context) (err error) {
	tell := x.progress("measuring the whole model")
	tell(0, 2)
	selecting, reporting := &x.Task.Selecting, &x.Task.Reporting
	for i, part := range []*Part{selecting, reporting} {
		if part.reference, err = probe.NewReference(ctx, x.Subject.On(part.Probe)); err != nil {
			return err
		}
		if part.whole, err = x.Task.Measure(ctx, x.Subject, part); err != nil {
			return err
		}
		tell(i+1, 2)
	}
	x.report.Result.Before = reporting.whole.Quality
	if x.tolerates() && !x.metric.Loss && !(selecting.whole.Metric > 0) {
		return &CheckError{fmt.Sprintf("the whole model's %s is %.4g on the selecting part: there is nothing to lose",
			x.metric, selecting.whole.Metric)}
	}
	return nil
}

// order returns the heads in the order in which a method removes them.
func (x *run) order(method int) []prune.Head {
	return x.orderBy(x.scores[method])
}

// orderBy returns the heads that may be removed, in the order of their scores.
func (x *run) orderBy(s prune.Scores) []prune.Head {
	order := slices.DeleteFunc(prune.Order(x.layers, s, x.Empty), func(h prune.Head) bool { return !x.open(h.Layer) })
	if !x.Even {
		return order
	}
	// The least important group of each layer, then the next one of each; those of layers with fewer groups in later rounds.
	groups, taken := map[string]int{}, map[string]int{}
	for _, l := range x.layers {
		groups[l.Name] = l.Heads / max(1, l.Group)
	}
	sizes, rounds := x.groups(), make([][]prune.Head, len(x.rounds()))
	for _, h := range order {
		n := groups[h.Layer]
		round := ((taken[h.Layer]/sizes[h.Layer]+1)*len(rounds) + n - 1) / n // from 1
		rounds[round-1] = append(rounds[round-1], h)
		taken[h.Layer]++
	}
	return slices.Concat(rounds...)
}

// groups returns, by layer, the number of heads that share keys and values.
func (x *run) groups() map[string]int {
	sizes := map[string]int{}
	for _, l := range x.layers {
		if l.Heads > 0 {
			sizes[l.Name] = l.Group
		}
	}
	return sizes
}

// rounds returns the numbers of heads that are removed after each round if the same share is taken from each layer, in
// whole groups: one round for each group of the layer with most.
func (x *run) rounds() (ends []int) {
	open, most := []attn.LayerHeads{}, 0
	for _, l := range x.layers {
		if l.Heads > 0 && x.open(l.Name) {
			open, most = append(open, l), max(most, l.Heads/l.Group)
		}
	}
	for round := 1; round <= most; round++ {
		end := 0
		for _, l := range open {
			end += round * (l.Heads / l.Group) / most * l.Group
		}
		ends = append(ends, end)
	}
	return ends
}

// open reports whether heads may be removed from a layer.
func (e *Experiment) open(layer string) bool {
	kind, _ := heads.Place(layer)
	return len(e.Kinds) == 0 || slices.Contains(e.Kinds, kind)
}
