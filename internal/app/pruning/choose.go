package pruning

import (
	"context"
	"fmt"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
)

// choose picks the best method on the selecting part: the one that can remove most heads within
// the tolerated loss or, for other goals, the one with the best metric once the goal is reached.
// It also determines the number of heads to remove.
func (x *run) choose(ctx context.Context) error {
	defer func() { x.report.Settings.Step = x.step(x.method) }()
	if len(x.Methods) == 1 && !x.fixed(0) {
		return nil
	}
	tell := x.progress("choosing a method")
	var best reports.Number
	for i := range x.Methods {
		tell(i, len(x.Methods))
		m, n, pruned, err := x.attempt(ctx, i)
		if err != nil {
			return err
		}
		value, err := x.selected(ctx, m)
		if err != nil {
			return err
		}
		more := x.tolerates() && n > x.removes
		less := x.tolerates() && n < x.removes
		if i == 0 || more || !less && x.metric.better(value, best) {
			x.method, x.removes, x.pruned, best = i, n, pruned, value
		}
	}
	tell(len(x.Methods), len(x.Methods))
	return nil
}

// attempt prunes with a method, and returns the model and the number of removed heads. If each
// step would need training or a measurement of speed, it removes heads in one fixed order
// instead, and pruned is nil.
func (x *run) attempt(ctx context.Context, method int) (
	m *models.Probe, removed int, pruned *prune.Result[*models.Probe], err error,
) {
	if x.step(method) > 0 && x.FineTune == 0 && x.Goal.Speed == 0 {
		plan, err := x.plan(method)
		if err != nil {
			return m, 0, nil, err
		}
		p, err := prune.Heads(ctx, x.Subject, plan)
		return p.Subject, len(p.Removed), &p, err
	}
	if removed, err = x.count(ctx, x.order(method)); err != nil {
		return m, 0, nil, err
	}
	gone := x.cut(x.order(method), removed)
	m, err = x.without(gone)
	return m, len(gone), nil, err
}

// step returns the number of heads that a method removes before the remaining ones are scored
// again; 0 means that heads are scored once.
func (x *run) step(method int) int {
	if x.Even {
		return 0
	}
	if x.Step != Affordable {
		return x.Step
	}
	if x.FineTune > 0 || x.Goal.Speed > 0 {
		return 0
	}
	going := len(x.order(method))
	if x.Goal.Left > 0 {
		going = total(x.layers) - x.Goal.Left
	}
	return affordable(going, x.scores[method].Passes)
}

// fixed reports whether a method removes heads in one fixed order, scored once, without training
// in between.
func (x *run) fixed(method int) bool { return x.step(method) == 0 && x.FineTune == 0 }

// tolerates reports whether the goal is a tolerated loss.
func (x *run) tolerates() bool { return x.Goal.Left == 0 && x.Goal.Speed == 0 }

// count returns the number of heads of an order to remove.
func (x *run) count(ctx context.Context, order []prune.Head) (int, error) {
	switch {
	case x.Goal.Left > 0:
		return total(x.layers) - x.Goal.Left, nil
	case x.Goal.Speed > 0:
		return x.fastEnough(ctx, order, x.isFast)
	}
	return x.tolerated(ctx, order)
}

// plan returns the pruning options of a method.
func (x *run) plan(method int) (prune.Options[*models.Probe], error) {
	all := total(x.layers)
	order, step := x.order(method), x.step(method)
	plan := prune.Options[*models.Probe]{
		Method: x.Methods[method], Importance: prune.ImportanceOptions{Normalize: x.Normalize, Seed: x.Seed},
		Keep: max(x.Goal.Left, all-len(order)), EmptyLayers: x.Empty, Layers: x.open, Step: step, Rescore: step > 0,
	}
	if x.Goal.Left > 0 && x.Goal.Left < all-len(order) {
		return plan, fmt.Errorf("%s cannot be kept: at least %d must stay",
			quote.Counted(x.Goal.Left, "head", "heads"), all-len(order))
	}
	if step == 0 {
		plan.Order = order
	}
	if x.Even {
		plan.Keep = all - len(x.cut(order, all-plan.Keep))
	}
	if x.FineTune > 0 {
		plan.Tune = x.train
	}
	switch {
	case x.Goal.Left > 0:
		return plan, nil
	case x.fixed(method):
		plan.Keep = all - len(x.cut(order, x.removes))
		return plan, nil
	case x.Goal.Speed > 0:
		plan.Until = func(ctx context.Context, p *models.Probe) (fast bool, err error) {
			x.fast, err = x.isFast(ctx, p)
			return x.fast, err
		}
	}
	if step == 0 {
		plan.Step = max(1, all/12)
	}
	if x.Even {
		plan.Step = x.round()
	}
	if x.tolerates() {
		plan.Within = func(ctx context.Context, p *models.Probe) (bool, error) {
			ok, err := x.isTolerable(ctx, p)
			if !ok && x.FineTune > 0 {
				x.undone++
			}
			return ok, err
		}
	}
	return plan, nil
}

// isTolerable reports whether a model's metric on the selecting part is within
// the tolerated loss.
func (x *run) isTolerable(ctx context.Context, m *models.Probe) (bool, error) {
	value, err := x.selected(ctx, m)
	return err == nil && x.Goal.tolerates(x.metric, value, x.Task.Selecting.whole.Metric), err
}

// selected returns the metric of a model on the selecting part, with compensation.
func (x *run) selected(ctx context.Context, m *models.Probe) (reports.Number, error) {
	m, err := x.compensate(ctx, m)
	if err != nil {
		return 0, err
	}
	seen, err := x.Task.Measure(ctx, m, &x.Task.Selecting)
	return seen.Metric, err
}

// tolerated returns the number of heads of an order that can be removed before the metric falls
// too far. It assumes that the metric only falls: it tries steps of about a twelfth of the heads
// until the loss is too large, then bisects the last step.
func (x *run) tolerated(ctx context.Context, order []prune.Head) (int, error) {
	const parts = 12
	step := max(1, len(order)/parts)
	good, bad := 0, len(order)+1
	for n := step; n < bad && n <= len(order); n += step {
		if ok, err := x.try(ctx, order, n, x.isTolerable); err != nil {
			return 0, err
		} else if ok {
			good = n
		} else {
			bad = n
		}
	}
	return x.largest(ctx, order, good, bad, x.isTolerable)
}

// fastEnough returns the number of heads of an order to remove until the model is as fast as the
// goal requires. If removing all of them is not enough, it returns a *CheckError.
func (x *run) fastEnough(ctx context.Context, order []prune.Head, isFast test) (int, error) {
	if ok, err := x.try(ctx, order, len(order), isFast); err != nil {
		return 0, err
	} else if !ok {
		return 0, x.tooSlow(total(x.layers) - len(order))
	}
	n, err := x.largest(ctx, order, 0, len(order), func(ctx context.Context, m *models.Probe) (bool, error) {
		fast, err := isFast(ctx, m)
		return !fast, err
	})
	return n + 1, err
}

// tooSlow returns the error for a goal of speed that was not reached.
func (x *run) tooSlow(left int) error {
	return &CheckError{fmt.Sprintf("with %s left, it is not yet %g times as fast, and no more heads can be removed",
		quote.Counted(left, "head", "heads"), x.Goal.Speed)}
}

// test checks a condition on a model.
type test = func(context.Context, *models.Probe) (bool, error)

// largest returns the largest number of heads of an order that can be removed such that a test
// succeeds. It bisects, assuming that the test succeeds up to some number and fails above: it
// succeeds for low and fails for high.
func (x *run) largest(ctx context.Context, order []prune.Head, low, high int, holds test) (int, error) {
	for high-low > 1 {
		middle := (low + high) / 2
		ok, err := x.try(ctx, order, middle, holds)
		if err != nil {
			return 0, err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// try runs a test on the model without the first n heads of an order.
func (x *run) try(ctx context.Context, order []prune.Head, n int, ask test) (bool, error) {
	m, err := x.without(x.cut(order, n))
	if err != nil {
		return false, err
	}
	return ask(ctx, m)
}

// isFast reports whether a model is as fast as the goal requires.
func (x *run) isFast(ctx context.Context, m *models.Probe) (bool, error) {
	w := x.Task.Works()[0]
	s, err := turns(ctx, x.SpeedTime, w.On(x.Subject), w.On(m))
	return float64(s.Ratio) >= x.Goal.Speed, err
}

// affordable returns the number of heads to remove before the rest is scored again, such that a
// method whose scoring takes the given number of passes needs at most mostPasses in total. 0
// means that heads are scored once.
func affordable(going int, passes float64) int {
	for step := 1; step < going; step++ {
		if rounds := (going + step - 1) / step; float64(rounds)*passes <= mostPasses {
			return step
		}
	}
	return 0
}
