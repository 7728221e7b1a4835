package pruning

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/pruning/reports"
)

// levels are how many heads have gone at the points of a curve: about every tenth
// part of them, all that can go, and as many as the pruned model has lost.
func levels(all, most, chosen int) []int {
	const parts = 10
	list := []int{0, most, min(chosen, most)}
	for i := 1; i < parts; i++ {
		list = append(list, min(int(math.Round(float64(all*i)/parts)), most))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// cut returns the first n heads of an order, or all if there are fewer. Any number
// will do: the heads of a translator share no keys and values.
func cut(order []heads.Head, n int) []heads.Head { return order[:min(n, len(order))] }

// curves measures each method's order on the reporting part, and the chosen
// method's from its other end.
func (x *run) curves(ctx context.Context) error {
	type line struct {
		name  string
		order []heads.Head
	}
	var lines []line
	for i, m := range x.Methods {
		lines = append(lines, line{m.String(), x.order(i)})
	}
	lines = append(lines, line{x.Methods[x.method].String() + ", reversed", x.orderBy(reversed(x.scores[x.method]))})
	all := total(x.Model.Layers())
	points := levels(all, len(lines[0].order), len(x.report.Result.Removed))
	tell := x.progress("curves")
	for i, l := range lines {
		curve := reports.Curve{Name: l.name}
		for j, n := range points {
			tell(i*len(points)+j, len(lines)*len(points))
			seen, err := x.after(ctx, cut(l.order, n))
			if err != nil {
				if j > 0 { // what has been measured is kept
					x.report.Curves = append(x.report.Curves, curve)
				}
				return err
			}
			low, high := x.interval(seen)
			curve.Points = append(curve.Points, reports.Point{
				Left: all - len(cut(l.order, n)), Metric: reports.Number(seen.value(x.Metric)), Loss: reports.Number(seen.loss), KL: reports.Number(seen.kl), Low: low, High: high,
			})
		}
		x.report.Curves = append(x.report.Curves, curve)
	}
	tell(len(lines)*len(points), len(lines)*len(points))
	return nil
}

// mostKnown bounds what is remembered: about 100 kB a model and 1,000 sentences.
const mostKnown = 1000

// after measures the model without some heads on the reporting part.
func (x *run) after(ctx context.Context, removed []heads.Head) (measured, error) {
	if len(removed) == 0 {
		return x.reporter.whole, ctx.Err()
	}
	left := kept(x.Model.Layers(), removed)
	key := fmt.Sprint(left) // maps are printed in the order of their keys
	if seen, ok := x.known[key]; ok {
		return seen, ctx.Err()
	}
	m, err := x.Model.Keep(left)
	if err != nil {
		return measured{}, err
	}
	seen, err := x.reporter.measure(ctx, m)
	if err == nil && len(x.known) < mostKnown {
		x.known[key] = seen
	}
	return seen, err
}

// reversed returns scores by which the most important head is the least.
func reversed(s heads.Scores) heads.Scores {
	values := map[string][]float64{}
	for layer, list := range s.Values {
		for _, v := range list {
			values[layer] = append(values[layer], -v)
		}
	}
	s.Values = values
	return s
}

// randomBand measures random orders on the reporting part: what a method must
// beat to have measured anything.
func (x *run) randomBand(ctx context.Context) error {
	all := total(x.Model.Layers())
	x.report.Random.Orders = x.Orders
	if x.Orders == 0 {
		return nil
	}
	orders := make([][]heads.Head, x.Orders)
	for i := range orders {
		s, err := heads.Importance(ctx, x.probe, heads.ImportanceOptions{Methods: []heads.Method{heads.Random}, Seed: x.Seed + 1 + uint64(i)})
		if err != nil {
			return err
		}
		orders[i] = x.orderBy(s[0])
	}
	points := levels(all, len(orders[0]), len(x.report.Result.Removed))
	tell := x.progress("random orders")
	for i, n := range points {
		var metric, loss, kl []float64
		for j, order := range orders {
			tell(i*len(orders)+j, len(points)*len(orders))
			seen, err := x.after(ctx, cut(order, n))
			if err != nil {
				return err
			}
			metric, loss, kl = append(metric, seen.value(x.Metric)), append(loss, seen.loss), append(kl, seen.kl)
		}
		x.report.Random.Points = append(x.report.Random.Points, reports.BandPoint{
			Left: all - len(cut(orders[0], n)), Metric: spread(metric), Loss: spread(loss), KL: spread(kl),
		})
	}
	tell(len(points)*len(orders), len(points)*len(orders))
	return nil
}
