package pruning

import (
	"context"

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
	if x.Keep == nil {
		return nil
	}
	return x.Keep(ctx, pruned.Subject, x.report)
}

// interval returns the 95% interval of the difference from the whole model.
func (x *run) interval(seen Measured) (low, high reports.Number) {
	l, h := stats.Difference(seen.Items, x.Resamples, x.Seed, x.Task.Reporting.whole.Of, seen.Of)
	return reports.Number(l), reports.Number(h)
}

// tune trains the model after heads have been removed.
func (x *run) tune(ctx context.Context, s *models.Probe) (*models.Probe, error) {
	err := x.Task.Train(ctx, s, x.FineTune, x.tuned, x.progress("fine-tuning"))
	x.tuned++
	return s, err
}

// control separates the effect of fine-tuning: it measures the pruned model without fine-tuning,
// and the whole model with the same number of steps.
func (x *run) control(ctx context.Context) error {
	if x.FineTune == 0 || len(x.report.Result.Removed) == 0 {
		return nil
	}
	raw, err := x.without(x.report.Result.Removed)
	if err != nil {
		return err
	}
	whole, err := x.Subject.Without(nil) // a copy
	if err != nil {
		return err
	}
	tell := x.progress("fine-tuning the whole model, to compare")
	if err := x.Task.Train(ctx, whole, x.FineTune*(x.tuned-x.undone), 0, tell); err != nil {
		return err
	}
	for _, c := range []struct {
		m  *models.Probe
		to **reports.Quality
	}{{raw, &x.report.Result.Pruned}, {whole, &x.report.Result.Control}} {
		seen, err := x.Task.Measure(ctx, c.m, &x.Task.Reporting)
		if err != nil {
			return err
		}
		*c.to = &seen.Quality
	}
	return nil
}
