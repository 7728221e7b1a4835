package pruning

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/prune"
)

// levels are the numbers of removed heads at the points of a curve: steps of about a tenth of the
// heads, all removable heads, and the number removed from the pruned model.
func levels(all, most, chosen int) []int {
	const parts = 10
	list := []int{0, most, min(chosen, most)}
	for i := 1; i < parts; i++ {
		list = append(list, min(int(math.Round(float64(all*i)/parts)), most))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// cut returns the first n heads of an order, or all if there are fewer. It rounds n down so as
// not to split heads that share keys and values, which are adjacent, or a round that removes
// heads from each layer.
func (x *run) cut(order []prune.Head, n int) []prune.Head {
	if x.Even {
		whole := 0
		for _, end := range x.rounds() {
			if end <= min(n, len(order)) {
				whole = end
			}
		}
		return order[:whole]
	}
	sizes, whole := x.groups(), 0
	for whole < len(order) {
		size := sizes[order[whole].Layer]
		if whole+size > min(n, len(order)) {
			break
		}
		whole += size
	}
	return order[:whole]
}

// levels are the prefixes of an order at the points of a curve.
func (x *run) levels(order []prune.Head) (list [][]prune.Head) {
	for _, n := range levels(total(x.layers), len(order), len(x.report.Result.Removed)) {
		if gone := x.cut(order, n); len(list) == 0 || len(gone) > len(list[len(list)-1]) {
			list = append(list, gone)
		}
	}
	return list
}

// curves measures each method's order on the reporting part, the chosen method's order in reverse, and, if the heads of
// the result were removed in another way than those, what it would be with fewer heads removed.
func (x *run) curves(ctx context.Context) error {
	type line struct {
		name   string
		levels [][]prune.Head
		after  func(context.Context, []prune.Head) (Measured, error)
	}
	var lines []line
	chosen := x.Methods[x.method].String()
	if x.step(x.method) > 0 || x.Compensate != "" {
		lines = append(lines, line{chosen + reports.AsPruned, x.levels(x.report.Result.Removed), x.afterPruning})
	}
	for i, m := range x.Methods {
		lines = append(lines, line{m.String(), x.levels(x.order(i)), x.after})
	}
	lines = append(lines, line{chosen + reports.Reversed, x.levels(x.orderBy(reversed(x.scores[x.method]))), x.after})
	all, tell := total(x.layers), x.progress("curves")
	done, points := 0, 0
	for _, l := range lines {
		points += len(l.levels)
	}
	for _, l := range lines {
		curve := reports.Curve{Name: l.name}
		for j, gone := range l.levels {
			tell(done, points)
			done++
			seen, err := l.after(ctx, gone)
			if err != nil {
				if j > 0 { // keep the measurements so far
					x.report.Curves = append(x.report.Curves, curve)
				}
				return err
			}
			low, high := x.interval(seen)
			curve.Points = append(curve.Points, reports.Point{
				Left: all - len(gone), Metric: seen.Metric, Loss: seen.Loss, KL: seen.KL,
				Low: low, High: high,
			})
		}
		x.report.Curves = append(x.report.Curves, curve)
	}
	tell(points, points)
	return nil
}

// afterPruning measures the model that loses some heads as the result has lost more, before training.
func (x *run) afterPruning(ctx context.Context, removed []prune.Head) (Measured, error) {
	switch {
	case len(removed) == 0:
		return x.Task.Reporting.whole, ctx.Err()
	case len(removed) == len(x.report.Result.Removed) && x.FineTune == 0:
		return x.seen, ctx.Err()
	}
	m, err := x.make(ctx, removed, 0)
	if err != nil {
		return Measured{}, err
	}
	return x.Task.Measure(ctx, m, &x.Task.Reporting)
}

// mostKnown limits the number of cached measurements: about 100 kB per model for 1,000 sentences.
const mostKnown = 1000

// after measures the model without some heads on the reporting part.
func (x *run) after(ctx context.Context, removed []prune.Head) (Measured, error) {
	if len(removed) == 0 {
		return x.Task.Reporting.whole, ctx.Err()
	}
	m, err := x.scored.Without(removed)
	if err != nil {
		return Measured{}, err
	}
	key := fmt.Sprint(m.Kept()) // maps are printed in the order of their keys
	if seen, ok := x.known[key]; ok {
		return seen, ctx.Err()
	}
	seen, err := x.Task.Measure(ctx, m, &x.Task.Reporting)
	if err == nil && len(x.known) < mostKnown {
		x.known[key] = seen
	}
	return seen, err
}

// reversed returns scores in which the most important head is the least important.
func reversed(s prune.Scores) prune.Scores {
	values := map[string][]float64{}
	for layer, list := range s.Values {
		for _, v := range list {
			values[layer] = append(values[layer], -v)
		}
	}
	s.Values = values
	return s
}

// randomBand measures random orders on the reporting part. A useful method must do better than
// these.
func (x *run) randomBand(ctx context.Context) error {
	all := total(x.layers)
	x.report.Random.Orders = x.Orders
	if x.Orders == 0 {
		return nil
	}
	orders := make([][]prune.Head, x.Orders)
	for i := range orders {
		s, err := prune.Importance(ctx, x.Subject, prune.ImportanceOptions{
			Methods: []prune.Method{prune.Random}, Seed: x.Seed + 1 + uint64(i),
		})
		if err != nil {
			return err
		}
		orders[i] = x.orderBy(s[0])
	}
	points := x.levels(orders[0])
	tell := x.progress("random orders")
	for i, point := range points {
		var metric, loss, kl []reports.Number
		for j, order := range orders {
			tell(i*len(orders)+j, len(points)*len(orders))
			seen, err := x.after(ctx, x.cut(order, len(point)))
			if err != nil {
				return err
			}
			metric, loss, kl = append(metric, seen.Metric), append(loss, seen.Loss), append(kl, seen.KL)
		}
		x.report.Random.Points = append(x.report.Random.Points, reports.BandPoint{
			Left: all - len(point), Metric: spread(metric), Loss: spread(loss), KL: spread(kl),
		})
	}
	tell(len(points)*len(orders), len(points)*len(orders))
	return nil
}
