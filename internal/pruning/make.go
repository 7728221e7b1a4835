package pruning

import (
	"context"
	"errors"
	"fmt"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/seq2seq"
)

// prune makes the model, checks it, measures it, and hands it over.
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
		pruned, err := heads.Prune(ctx, x.probe, plan)
		if err != nil {
			return err
		}
		x.pruned = &pruned
	}
	pruned := x.pruned
	x.compact = pruned.Subject.Translator()
	r.Removed = append([]heads.Head{}, pruned.Removed...) // in JSON a list, even of none
	r.Left = total(x.compact.Layers())
	left := kept(x.Model.Layers(), pruned.Removed)
	for i := range x.report.Layers {
		x.report.Layers[i].Kept = left[x.report.Layers[i].Name]
	}
	if x.Goal.Speed > 0 && !x.fixed(x.method) && !x.fast {
		if ok, err := x.isFast(ctx, x.compact); err != nil {
			return err
		} else if !ok {
			return x.tooSlow(r.Left)
		}
	}
	masked, err := x.masked(ctx)
	if err != nil {
		return err
	}
	seen, err := x.reporter.measure(ctx, x.compact)
	if err != nil {
		return err
	}
	r.After = x.reporter.quality(x.compact, seen)
	r.Low, r.High = x.interval(seen)
	if x.Keep == nil {
		return nil
	}
	return x.Keep(x.compact, masked, x.report)
}

// masked returns the pruned model in the shapes of the whole one, and proves that
// it says the same.
func (x *run) masked(ctx context.Context) (*seq2seq.Translator, error) {
	masked := x.compact.Expand()
	reference, err := seq2seq.NewReference(ctx, x.compact, x.Parts.Select)
	if err != nil {
		return nil, err
	}
	largest, scale, err := reference.Difference(ctx, masked)
	if err != nil {
		return nil, err
	}
	x.report.Result.Difference = reports.Number(largest)
	if limit := agreement * max(scale, 1); !(largest <= limit) {
		return nil, &CheckError{fmt.Sprintf("the compact and the masked model differ by %g in a logit, more than %g", largest, limit)}
	}
	return masked, nil
}

// agreement is how much the logits of two forms of a model may differ by
// rounding, as a part of the largest.
const agreement = 1e-4

// interval returns the 95% interval of the difference from the whole model.
func (x *run) interval(seen measured) (low, high reports.Number) {
	l, h := seq2seq.Bootstrap(x.reporter.whole.judged, seen.judged, x.Metric, x.Resamples, x.Seed)
	return reports.Number(l), reports.Number(h)
}

// tune trains what is left after heads have gone.
func (x *run) tune(ctx context.Context, p *seq2seq.Probe) (*seq2seq.Probe, error) {
	err := x.train(ctx, "fine-tuning", p.Translator(), x.FineTune, x.tuned)
	x.tuned++
	return p, err
}

// train trains a model for some steps. Each round has other pairs.
func (x *run) train(ctx context.Context, stage string, m *seq2seq.Translator, steps, round int) error {
	tell := x.progress(stage)
	settings := seq2seq.Settings{
		Epochs: 1, Batch: min(64, len(x.Train)), LR: x.Rate, Warmup: max(1, steps/10), Smoothing: x.Smoothing, Clip: 1, MaxLength: longest(x.Model, x.Parts.Score),
		Seed: x.Seed + uint64(round),
	}
	done := 0
	err := seq2seq.FineTune(ctx, m, x.Train, settings, steps, func(seq2seq.Progress) {
		done++
		tell(done, steps)
	})
	if errors.Is(err, seq2seq.ErrDiverged) {
		return &CheckError{fmt.Sprintf("%s: %v", stage, err)}
	}
	return err
}

// longest returns how many tokens a pair may have that is learnt: as many as one that
// heads were scored on, or as are usual.
func longest(m *seq2seq.Translator, pairs []seq2seq.Pair) int {
	const usual = 200
	n := usual
	for _, p := range pairs {
		n = max(n, len(m.Source.Encode(p.Source))+1, len(m.Target.Encode(p.Target))+1)
	}
	return n
}

// control tells apart what fine-tuning has done: it measures the pruned model
// without it, and the whole model with as many steps of it.
func (x *run) control(ctx context.Context) error {
	if x.FineTune == 0 || len(x.report.Result.Removed) == 0 {
		return nil
	}
	raw, err := x.without(x.report.Result.Removed)
	if err != nil {
		return err
	}
	whole, err := x.Model.Keep(nil)
	if err != nil {
		return err
	}
	if err := x.train(ctx, "fine-tuning the whole model, to compare", whole, x.FineTune*(x.tuned-x.undone), 0); err != nil {
		return err
	}
	for _, c := range []struct {
		m  *seq2seq.Translator
		to **reports.Quality
	}{{raw, &x.report.Result.Pruned}, {whole, &x.report.Result.Control}} {
		seen, err := x.reporter.measure(ctx, c.m)
		if err != nil {
			return err
		}
		q := x.reporter.quality(c.m, seen)
		*c.to = &q
	}
	return nil
}
