package pruning

import (
	"context"
	"fmt"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
)

const choosing = "choosing heads" // a stage

// choose picks the best method, the number of heads to remove, and these heads.
func (x *run) choose(ctx context.Context) (err error) {
	defer func() { x.report.Settings.Step = x.step(x.method) }()
	if len(x.Methods) > 1 {
		err = x.compare(ctx)
	}
	if err == nil && (len(x.Methods) == 1 || x.tolerates() && x.FineTune > 0) {
		x.removes, err = x.count(ctx, x.method, x.FineTune)
	}
	if err == nil {
		_, err = x.path(ctx, x.method, x.removes)
	}
	return err
}

// compare picks the best method on the selecting part, before training: the one that can remove most heads within the
// tolerated loss or, for other goals, the one with the best metric once the goal is reached.
func (x *run) compare(ctx context.Context) error {
	tell := x.progress(choosing)
	var best reports.Number
	for i := range x.Methods {
		tell(i*x.going(i), len(x.Methods)*x.going(i))
		n, err := x.count(ctx, i, 0)
		if err != nil {
			return err
		}
		value, err := x.selected(ctx, i, n, 0)
		if err != nil {
			return err
		}
		more := x.tolerates() && n > x.removes
		less := x.tolerates() && n < x.removes
		if i == 0 || more || !less && x.metric.better(value, best) {
			x.method, x.removes, best = i, n, value
		}
	}
	tell(1, 1)
	return nil
}

// path returns the first n heads that a method removes, or fewer: see cut. With a step, the heads are scored again after
// that many, as far as they are needed.
func (x *run) path(ctx context.Context, method, n int) ([]prune.Head, error) {
	order, step := x.order(method), x.step(method)
	if step == 0 {
		return x.cut(order, n), nil
	}
	gone := &x.paths[method]
	if n = min(n, len(order)); len(*gone) < n {
		rest, err := x.scored.Without(*gone)
		if err != nil {
			return nil, err
		}
		all, tell, most := total(x.layers), x.progress(choosing), x.going(method)
		more, err := prune.Heads(ctx, rest, prune.Options[*probe.Probe]{
			Method: x.Methods[method], Importance: prune.ImportanceOptions{Normalize: x.Normalize, Seed: x.Seed},
			Keep: all - len(order), EmptyLayers: x.Empty, Layers: x.open, Step: step, Rescore: true,
			Until: func(_ context.Context, p *probe.Probe) (bool, error) {
				tell(method*most+all-total(p.Layers()), len(x.Methods)*most)
				return all-total(p.Layers()) >= n, nil
			},
		})
		if err != nil {
			return nil, err
		}
		numbers := rest.Kept()
		for _, h := range more.Removed {
			*gone = append(*gone, prune.Head{Layer: h.Layer, Number: numbers[h.Layer][h.Number]})
		}
	}
	return x.cut(*gone, n), nil
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
	return affordable(x.going(method), x.scores[method].Passes)
}

// going returns the largest number of heads that a method may have to remove.
func (x *run) going(method int) int {
	if x.Goal.Left > 0 {
		return total(x.layers) - x.Goal.Left
	}
	return len(x.order(method))
}

// tolerates reports whether the goal is a tolerated loss.
func (x *run) tolerates() bool { return x.Goal.Left == 0 && x.Goal.Speed == 0 }

// count returns the number of heads that a method is to remove from a model that is then trained for a number of steps.
func (x *run) count(ctx context.Context, method, steps int) (int, error) {
	all, most := total(x.layers), len(x.order(method))
	switch {
	case x.Goal.Left > 0 && x.Goal.Left < all-most:
		return 0, fmt.Errorf("%s cannot be kept: at least %d must stay", quote.Counted(x.Goal.Left, "head", "heads"), all-most)
	case x.Goal.Left > 0:
		return all - x.Goal.Left, nil
	case x.Goal.Speed > 0:
		return x.fastEnough(ctx, method, x.isFast)
	}
	return x.tolerated(ctx, method, steps)
}

// selected returns the metric on the selecting part without the first n heads of a method.
func (x *run) selected(ctx context.Context, method, n, steps int) (reports.Number, error) {
	removed, err := x.path(ctx, method, n)
	if err != nil {
		return 0, err
	}
	m, err := x.make(ctx, removed, steps)
	if err != nil {
		return 0, err
	}
	seen, err := x.Task.Measure(ctx, m, &x.Task.Selecting)
	return seen.Metric, err
}

// tolerated returns the number of heads that a method can remove before the metric falls too far. It assumes that the
// metric only falls: it tries steps of about a twelfth of the heads until the loss is too large, then bisects the last
// step.
func (x *run) tolerated(ctx context.Context, method, steps int) (int, error) {
	const parts = 12
	fits := func(n int) (bool, error) {
		value, err := x.selected(ctx, method, n, steps)
		return err == nil && x.Goal.tolerates(x.metric, value, x.Task.Selecting.whole.Metric), err
	}
	most := len(x.order(method))
	step := max(1, most/parts)
	good, bad := 0, most+1
	for n := step; n < bad && n <= most; n += step {
		if ok, err := fits(n); err != nil {
			return 0, err
		} else if ok {
			good = n
		} else {
			bad = n
		}
	}
	return largest(good, bad, fits)
}

// fastEnough returns the number of heads that a method must remove until the model is as fast as the
// goal requires. If removing all of them is not enough, it returns a *CheckError.
func (x *run) fastEnough(
	ctx context.Context, method int, isFast func(context.Context, *probe.Probe) (bool, error),
) (int, error) {
	slow := func(n int) (bool, error) {
		removed, err := x.path(ctx, method, n)
		if err != nil {
			return false, err
		}
		m, err := x.Subject.Without(removed)
		if err != nil {
			return false, err
		}
		fast, err := isFast(ctx, m)
		return !fast, err
	}
	most := len(x.order(method))
	if ok, err := slow(most); err != nil {
		return 0, err
	} else if ok {
		return 0, &CheckError{fmt.Sprintf("with %s left, it is not yet %g times as fast, and no more heads can be removed",
			quote.Counted(total(x.layers)-most, "head", "heads"), x.Goal.Speed)}
	}
	n, err := largest(0, most, slow)
	return n + 1, err
}

// largest returns the largest number for which a test is true. It bisects, assuming that the test is true up to some number
// and fails above: it is true for low and fails for high.
func largest(low, high int, fits func(n int) (bool, error)) (int, error) {
	for high-low > 1 {
		middle := (low + high) / 2
		ok, err := fits(middle)
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

// isFast reports whether a model is as fast as the goal requires.
func (x *run) isFast(ctx context.Context, m *probe.Probe) (bool, error) {
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
