package pruning

import (
	"context"
	"slices"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
)

// prune makes the pruned model, checks and measures it, and calls Keep.
func (x *run) prune(ctx context.Context) error {
	r := &x.report.Result
	r.Method = x.Methods[x.method].String()
	if x.pruned == nil {
		plan, err := x.plan(x.method)
		if err != nil {
			return err
		}
		tell := x.progress("pruning")
		plan.Progress = func(left, all int) { tell(all-left, all-plan.Keep) }
		pruned, err := prune.Heads(ctx, x.Subject, plan)
		if err != nil {
			return err
		}
		x.pruned = &pruned
	}
	pruned := x.pruned
	var err error
	if pruned.Subject, err = x.compensate(ctx, pruned.Subject); err != nil {
		return err
	}
	x.left = pruned.Subject
	r.Removed = append([]prune.Head{}, pruned.Removed...) // a list in JSON, even if empty
	r.Left = total(pruned.Subject.Layers())
	left := kept(x.layers, pruned.Removed)
	for i := range x.report.Layers {
		x.report.Layers[i].Kept = left[x.report.Layers[i].Name]
	}
	if x.Goal.Speed > 0 && !x.fixed(x.method) && !x.fast {
		if ok, err := x.isFast(ctx, pruned.Subject); err != nil {
			return err
		} else if !ok {
			return x.tooSlow(r.Left)
		}
	}
	seen, err := x.Task.Measure(ctx, pruned.Subject, &x.Task.Reporting)
	if err != nil {
		return err
	}
	r.After = seen.Quality
	r.Low, r.High = x.interval(seen)
	if err := x.moved(ctx); err != nil {
		return err
	}
	if x.Keep == nil {
		return nil
	}
	return x.Keep(ctx, pruned.Subject, x.report)
}

// moved adds to the report how far the weights of the remaining heads are from their own in the whole model.
func (x *run) moved(ctx context.Context) error {
	if len(x.report.Result.Removed) == 0 {
		return nil
	}
	far, err := x.Task.Reporting.reference.Moved(ctx, x.left)
	if err != nil {
		return err
	}
	for i := range x.report.Layers {
		l := &x.report.Layers[i]
		values := slices.Repeat([]reports.Number{reports.NaN}, l.Heads)
		for j, h := range l.Kept {
			values[h] = reports.Number(far[l.Name][j])
		}
		l.Measures = map[string][]reports.Number{reports.Moved: values}
	}
	return nil
}

// interval returns the 95% interval of the difference from the whole model.
func (x *run) interval(seen Measured) (low, high reports.Number) {
	l, h := stats.Difference(seen.Items, x.Resamples, x.Seed, x.Task.Reporting.whole.Of, seen.Of)
	return reports.Number(l), reports.Number(h)
}

// compensate returns a model with compensation for the heads that it has lost, if that lowers the loss on the selecting
// part. A model that is trained after each removal has got it before.
func (x *run) compensate(ctx context.Context, s *models.Probe) (*models.Probe, error) {
	if x.FineTune > 0 {
		return s, nil
	}
	return x.repair(ctx, s)
}

// repair is compensate for any model.
func (x *run) repair(ctx context.Context, s *models.Probe) (*models.Probe, error) {
	if x.Compensate == "" {
		return s, nil
	}
	better, err := s.Without(nil)
	if err != nil {
		return nil, err
	}
	if err := better.Compensate(ctx, prune.Compensations()[x.Compensate]); err != nil {
		return nil, err
	}
	before, err := s.On(x.Task.Selecting.Probe).Loss(ctx)
	if err != nil {
		return nil, err
	}
	after, err := better.On(x.Task.Selecting.Probe).Loss(ctx)
	if err != nil || !(after < before) {
		better = s
	}
	return better, err
}

// train compensates for heads that have been removed, and trains the remaining model.
func (x *run) train(ctx context.Context, s *models.Probe) (*models.Probe, error) {
	s, err := x.repair(ctx, s)
	if err != nil {
		return nil, err
	}
	err = x.Task.Train(ctx, s, x.FineTune, x.tuned, x.progress("fine-tuning"))
	x.tuned++
	return s, err
}

// control separates the effects: it measures the pruned model without compensation and fine-tuning, and the whole model
// with the same number of training steps.
func (x *run) control(ctx context.Context) error {
	if x.Compensate == "" && x.FineTune == 0 || len(x.report.Result.Removed) == 0 {
		return nil
	}
	raw, err := x.without(x.report.Result.Removed)
	if err != nil {
		return err
	}
	pruned, err := x.Task.Measure(ctx, raw, &x.Task.Reporting)
	if err != nil {
		return err
	}
	x.report.Result.Pruned = &pruned.Quality
	if x.FineTune == 0 {
		return nil
	}
	whole, err := x.Subject.Without(nil) // a copy
	if err != nil {
		return err
	}
	tell := x.progress("fine-tuning the whole model, to compare")
	if err := x.Task.Train(ctx, whole, x.FineTune*(x.tuned-x.undone), 0, tell); err != nil {
		return err
	}
	control, err := x.Task.Measure(ctx, whole, &x.Task.Reporting)
	if err != nil {
		return err
	}
	x.report.Result.Control = &control.Quality
	return nil
}
