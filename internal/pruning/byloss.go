package pruning

import (
	"context"
	"fmt"
	"math"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/pruning/reports"
)

// ByLoss is an experiment on a model of any kind, of which no more is known than its loss:
// heads are scored on one part of the data, the method and the number of heads are chosen
// on another, and what is reported is measured on a third.
type ByLoss[S heads.Prunable[S]] struct {
	Subject S // with the scoring part
	// Select and Report return the loss on the other parts, in nats for each thing to be
	// predicted.
	Select, Report func(context.Context, S) (float64, error)
	// Methods are those that are tried. The model is pruned by the one that does best on
	// the selecting part.
	Methods []heads.Method
	// Goal is Left, or Drop: by which share the loss may grow on the selecting part.
	Goal      Goal
	Normalize bool
	Empty     bool // layers may lose all their heads
	// Step is how many heads go before the rest is scored again. 0 scores once, and
	// Affordable leaves it to what scoring costs.
	Step   int
	Orders int // random orders to compare with
	Seed   uint64
	// Progress, if not nil, is told how far a stage is.
	Progress func(stage string, done, all int)
}

// Run does the experiment, fills in the report, and returns what is left.
func (x *ByLoss[S]) Run(ctx context.Context, r *reports.ByLoss) (left S, err error) {
	layers := x.Subject.Layers()
	r.Layers, r.Heads = Layers(layers), total(layers)
	options := heads.ImportanceOptions{Methods: x.Methods, Normalize: x.Normalize, Seed: x.Seed, Progress: x.progress("scoring heads")}
	scores, err := heads.Importance(ctx, x.Subject, options)
	if err != nil {
		return left, err
	}
	r.Scores = Tabulate(layers, scores)
	whole, err := x.Select(ctx, x.Subject)
	if err != nil {
		return left, err
	}
	var best *heads.Pruned[S]
	tell := x.progress("choosing a method")
	for i, s := range scores {
		tell(i, len(scores))
		plan, err := x.plan(s, whole)
		if err != nil {
			return left, err
		}
		p, err := heads.Prune(ctx, x.Subject, plan)
		if err != nil {
			return left, err
		}
		loss, err := x.Select(ctx, p.Subject)
		if err != nil {
			return left, err
		}
		r.Tried = append(r.Tried, reports.Tried{Method: s.Method.String(), Removed: len(p.Removed), Step: plan.Step, Loss: reports.Number(loss)})
		last := &r.Tried[i]
		if best == nil || x.better(last, &r.Tried[r.Chosen]) {
			best, r.Chosen = &p, i
		}
	}
	tell(len(scores), len(scores))
	r.Removed = append([]heads.Head{}, best.Removed...) // in JSON a list, even of none
	r.Left = total(best.Subject.Layers())
	kept := kept(layers, best.Removed)
	for i := range r.Layers {
		r.Layers[i].Kept = kept[r.Layers[i].Name]
	}
	before, err := x.Report(ctx, x.Subject)
	if err != nil {
		return left, err
	}
	after, err := x.Report(ctx, best.Subject)
	if err != nil {
		return left, err
	}
	r.Before, r.After = reports.Number(before), reports.Number(after)
	return best.Subject, x.random(ctx, r)
}

func (x *ByLoss[S]) progress(stage string) func(done, all int) {
	return func(done, all int) {
		if x.Progress != nil {
			x.Progress(stage, done, all)
		}
	}
}

// better reports whether a method has done better than another: within a tolerated loss
// more heads are gone, or the loss is smaller.
func (x *ByLoss[S]) better(a, b *reports.Tried) bool {
	if a.Removed != b.Removed {
		return a.Removed > b.Removed
	}
	return a.Loss < b.Loss || math.IsNaN(float64(b.Loss))
}

// plan says how a method prunes whose scores are known.
func (x *ByLoss[S]) plan(s heads.Scores, whole float64) (heads.PruneOptions[S], error) {
	layers := x.Subject.Layers()
	order, all := heads.Order(layers, s, x.Empty), total(layers)
	least := max(all-len(order), 1)
	plan := heads.PruneOptions[S]{
		Method: s.Method, Importance: heads.ImportanceOptions{Normalize: x.Normalize, Seed: x.Seed},
		Keep: max(x.Goal.Left, least), EmptyLayers: x.Empty, Step: x.Step,
	}
	if x.Goal.Left > 0 && x.Goal.Left < least {
		return plan, fmt.Errorf("%s cannot be kept: at least %d must stay", reports.Counted(x.Goal.Left, "head", "heads"), least)
	}
	if x.Step == Affordable {
		plan.Step = affordable(all-plan.Keep, s.Passes)
	}
	if plan.Rescore = plan.Step > 0; !plan.Rescore {
		plan.Order = order
	}
	if x.Goal.Left > 0 {
		return plan, nil
	}
	if plan.Step == 0 {
		plan.Step = max(1, all/12)
	}
	plan.Within = func(ctx context.Context, s S) (bool, error) {
		loss, err := x.Select(ctx, s)
		const rounding = 1e-9 // so that a growth of exactly what is tolerated is
		return loss <= (1+x.Goal.Drop+rounding)*whole, err
	}
	return plan, nil
}

// random measures what is left when as many heads go in random orders: what a method must
// beat to have measured anything.
func (x *ByLoss[S]) random(ctx context.Context, r *reports.ByLoss) error {
	tell := x.progress("random orders")
	var losses []float64
	for i := range x.Orders {
		tell(i, x.Orders)
		p, err := heads.Prune(ctx, x.Subject, heads.PruneOptions[S]{
			Method: heads.Random, Importance: heads.ImportanceOptions{Seed: x.Seed + 1 + uint64(i)}, Keep: r.Left, EmptyLayers: x.Empty,
		})
		if err != nil {
			return err
		}
		loss, err := x.Report(ctx, p.Subject)
		if err != nil {
			return err
		}
		losses = append(losses, loss)
	}
	tell(x.Orders, x.Orders)
	r.Random = spread(losses)
	return nil
}

// affordable returns how many heads go before the rest is scored again, so that scoring by
// a method of so many passes takes mostPasses of them at most; 0 for scoring once.
func affordable(going int, passes float64) int {
	for step := 1; step < going; step++ {
		if rounds := (going + step - 1) / step; float64(rounds)*passes <= mostPasses {
			return step
		}
	}
	return 0
}
