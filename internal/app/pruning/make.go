package pruning

import (
	"context"
	"slices"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
)

// prune makes the pruned model, checks and measures it, and calls Keep.
func (x *run) prune(ctx context.Context) error {
	r := &x.report.Result
	if x.Given == nil {
		r.Method = x.Methods[x.method].String()
	}
	removed, err := x.path(ctx, x.method, x.removes)
	if err != nil {
		return err
	}
	if x.left, err = x.make(ctx, removed, x.FineTune); err != nil {
		return err
	}
	r.Removed = append([]prune.Head{}, removed...) // a list in JSON, even if empty
	r.Left = total(x.left.Layers())
	left := x.left.Kept()
	for i := range x.report.Layers {
		x.report.Layers[i].Kept = append([]int{}, left[x.report.Layers[i].Name]...)
	}
	seen, err := x.Task.Measure(ctx, x.left, &x.Task.Reporting)
	if err != nil {
		return err
	}
	x.seen, r.After = seen, seen.Quality
	r.Low, r.High = x.interval(seen)
	if err := x.moved(ctx); err != nil {
		return err
	}
	if x.Keep == nil {
		return nil
	}
	return x.Keep(ctx, x.left, x.report)
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

// make returns the model without some heads, with compensation if that lowers the loss on the selecting part, and trained
// for a number of steps.
func (x *run) make(ctx context.Context, removed []prune.Head, steps int) (*probe.Probe, error) {
	if len(removed) == 0 {
		return x.Subject, nil
	}
	s, err := x.Subject.Without(removed)
	if err != nil {
		return nil, err
	}
	if x.Compensate != "" {
		if s, err = x.compensate(ctx, s); err != nil {
			return nil, err
		}
	}
	if steps > 0 {
		err = x.Task.Train(ctx, s, steps, x.progress("fine-tuning"))
	}
	return s, err
}

// compensate returns the better of a model and its copy with compensation.
func (x *run) compensate(ctx context.Context, s *probe.Probe) (*probe.Probe, error) {
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

// control separates the effects: it measures the pruned model without compensation and fine-tuning, and the whole model
// with the same number of training steps.
func (x *run) control(ctx context.Context) error {
	if x.Compensate == "" && x.FineTune == 0 || len(x.report.Result.Removed) == 0 {
		return nil
	}
	raw, err := x.Subject.Without(x.report.Result.Removed)
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
	if err := x.Task.Train(ctx, whole, x.FineTune, tell); err != nil {
		return err
	}
	control, err := x.Task.Measure(ctx, whole, &x.Task.Reporting)
	if err != nil {
		return err
	}
	x.report.Result.Control = &control.Quality
	return nil
}
