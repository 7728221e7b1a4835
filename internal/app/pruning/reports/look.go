package reports

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/attn-go/attn/prune"
)

// The methods below are called by templates. A report may come from a file: missing parts are
// NaN or empty and must not cause a panic.

// find returns the first element of a list for which is returns true, or nil.
func find[T any](list []T, is func(T) bool) *T {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return &list[i]
	}
	return nil
}

// Curve returns the curve with a name, or nil if it has no points.
func (r *Report) Curve(name string) *Curve {
	return find(r.Curves, func(c Curve) bool { return c.Name == name && len(c.Points) > 0 })
}

// AsPruned ends the name of the curve of models that were made as the result was, but with more heads left and without
// fine-tuning. The other curves are of models that were made in a simpler way.
const AsPruned = ", as pruned"

// Made returns the AsPruned curve, or nil.
func (r *Report) Made() *Curve { return r.Curve(r.Result.Method + AsPruned) }

// Main returns the curve of Made or, without one, that of the result's method, or nil.
func (r *Report) Main() *Curve { return cmp.Or(r.Made(), r.Curve(r.Result.Method)) }

// at returns the point with n heads left, or nil.
func (c *Curve) at(left int) *Point {
	if c == nil {
		return nil
	}
	return find(c.Points, func(p Point) bool { return p.Left == left })
}

// At returns the point with n heads left, or nil.
func (b *Band) At(left int) *BandPoint {
	return find(b.Points, func(p BandPoint) bool { return p.Left == left })
}

// PointOf returns the point of a method's curve with as many heads left as the result, or nil.
func (r *Report) PointOf(method string) *Point { return r.Curve(method).at(r.Result.Left) }

// MeasuredLeft reports whether PointOf returns a point for any method.
func (r *Report) MeasuredLeft() bool {
	return slices.ContainsFunc(r.Scores, func(s Scores) bool { return r.PointOf(s.Method) != nil })
}

// RandomLeft returns the metric of random orders with as many heads left as the result, or nil.
func (r *Report) RandomLeft() *Spread {
	if p := r.Random.At(r.Result.Left); p != nil && p.Metric.Mean.Known() {
		return &p.Metric
	}
	return nil
}

// HasPoints reports whether any curve has points.
func (r *Report) HasPoints() bool {
	return len(r.Random.Points) > 0 || slices.ContainsFunc(r.Curves, func(c Curve) bool { return len(c.Points) > 0 })
}

const reversedSuffix = ", reversed"

// ordered returns the method of a curve, and whether the curve removes the most important heads
// first.
func (c *Curve) ordered() (method string, reversed bool) {
	return strings.CutSuffix(c.Name, reversedSuffix)
}

// Whole returns the metric of the whole model.
func (r *Report) Whole() Number {
	if r.Result.Before.Metric.Known() {
		return r.Result.Before.Metric
	}
	for _, c := range r.Curves {
		if p := c.at(r.Heads()); p != nil {
			return p.Metric
		}
	}
	return NaN
}

// Heads returns the number of heads of the whole model.
func (r *Report) Heads() int {
	if r.Model.Heads > 0 {
		return r.Model.Heads
	}
	n := 0
	for _, l := range r.Layers {
		n += l.Heads
	}
	return n
}

// Metric is the name of the metric that pruning should preserve.
func (r *Report) Metric() string { return cmp.Or(r.Settings.Metric, "metric") }

// Unit is written after metrics outside tables, whose heads name the unit.
func (r *Report) Unit() string {
	if r.Settings.Unit == "%" {
		return "%"
	}
	return ""
}

// Digits is the number of decimals of the metric: more for a loss.
func (r *Report) Digits() int {
	if r.Settings.Lower {
		return 3
	}
	return 1
}

// possible limits a number to the range of the metric, because the interval of a difference may
// exceed it.
func (r *Report) possible(n Number) Number {
	n = max(n, Number(r.Settings.Least))
	if r.Settings.Lower {
		return n
	}
	return min(n, 100)
}

// LossUnit is the unit of the loss.
func (r *Report) LossUnit() string { return cmp.Or(r.Settings.LossUnit, "nats per token") }

// Items is the unit of the data.
func (r *Report) Items() string { return cmp.Or(r.Data.Items, "sources") }

// Known reports whether the interval of the difference is known.
func (r Result) Known() bool { return r.Low.Known() && r.High.Known() }

// Significant reports whether the interval excludes 0.
func (r Result) Significant() bool { return !(r.Low <= 0 && r.High >= 0) }

// Fewer returns the percentage of parameters that were removed, or 0 if none were.
func (r Result) Fewer() Number {
	if before, after := r.Before.Parameters, r.After.Parameters; 0 < after && after < before {
		return Number(100 * float64(before-after) / float64(before))
	}
	return 0
}

// Harm returns how much worse the model may be by its interval; 0 or less if it is better.
func (r *Report) Harm() Number {
	if r.Settings.Lower {
		return r.Result.High
	}
	return -r.Result.Low
}

// kind has the layers of one kind of attention.
type kind struct {
	Name   string
	Layers []placed
}

// placed is a layer with its index in the report.
type placed struct {
	*Layer
	at int
}

// kindsOf returns the layers of each kind in the order encoder, decoder, cross, other kinds.
func kindsOf(layers []Layer) []kind {
	kinds := []kind{{Name: "encoder"}, {Name: "decoder"}, {Name: "cross"}}
	for i := range layers {
		l := placed{&layers[i], i}
		at := slices.IndexFunc(kinds, func(k kind) bool { return k.Name == l.Kind })
		if at < 0 {
			at, kinds = len(kinds), append(kinds, kind{Name: l.Kind})
		}
		kinds[at].Layers = append(kinds[at].Layers, l)
	}
	return slices.DeleteFunc(kinds, func(k kind) bool { return k.Layers == nil })
}

// Kinds returns the layers of each kind and, if there are several kinds, of all of them.
func (r *Report) Kinds() []kind {
	kinds := kindsOf(r.Layers)
	if len(kinds) < 2 {
		return kinds
	}
	all := kind{Name: "all"}
	for _, k := range kinds {
		all.Layers = append(all.Layers, k.Layers...)
	}
	return append(kinds, all)
}

// Heads returns how many heads the layers had.
func (k kind) Heads() (n int) {
	for _, l := range k.Layers {
		n += l.Heads
	}
	return n
}

// Lost returns how many heads were removed.
func (k kind) Lost() (n int) {
	for _, l := range k.Layers {
		n += l.lost()
	}
	return n
}

// Left returns how many heads are left.
func (k kind) Left() int { return k.Heads() - k.Lost() }

// Share returns the percentage of heads that were removed.
func (k kind) Share() Number { return Number(100 * float64(k.Lost()) / float64(k.Heads())) }

// Bar returns the fraction of heads that is left, in 24ths.
func (k kind) Bar() int {
	if k.Heads() <= 0 {
		return 0
	}
	return (24*k.Left() + k.Heads()/2) / k.Heads()
}

// Emptied returns the names of layers that lost all their heads.
func (r *Report) Emptied() (names []string) {
	for _, k := range kindsOf(r.Layers) {
		for _, l := range k.Layers {
			if l.Heads > 0 && l.lost() == l.Heads {
				names = append(names, l.Name)
			}
		}
	}
	return names
}

func (l *Layer) kept(head int) bool { return slices.Contains(l.Kept, head) }

// lost returns how many heads were removed from a layer.
func (l *Layer) lost() int {
	n := 0
	for head := range l.Heads {
		if !l.kept(head) {
			n++
		}
	}
	return n
}

// turn returns the position of a head in the order of removal, from 1; 0 if it was not removed.
func (r *Report) turn(layer string, head int) int {
	return 1 + slices.Index(r.Result.Removed, prune.Head{Layer: layer, Number: head})
}

// wholeWork names the works that use the whole model.
var wholeWork = map[string]string{"translate": "translation", "encode": "encoding", "read": "reading"}

// Whole returns the name of a work that uses the whole model; empty for other works.
func (s Speed) Whole() string { return wholeWork[s.Work] }

// Known reports whether the interval of the ratio is known.
func (s Speed) Known() bool { return s.Low.Known() && s.High.Known() }

// Result reports whether the interval of the ratio excludes 1.
func (s Speed) Result() bool { return s.Known() && (s.Low > 1 || s.High < 1) }

// Change returns the ratio in words, such as "12% faster".
func (s Speed) Change() string { return faster(float64(s.Ratio)) }

// Gained returns the percentage of the possible gain in speed that was reached: 100 for all of it,
// 0 for none. It is unknown if the interval of the ratio includes 1.
func (s Speed) Gained() Number {
	if !s.Result() || !(s.Bound > 1.005) { // nothing to gain, or unknown
		return Number(math.NaN())
	}
	return 100 * (s.Ratio - 1) / (s.Bound - 1)
}

// MainSpeed returns the speed of the whole model, otherwise the first measurement, or nil.
func (r *Report) MainSpeed() *Speed {
	if s := find(r.Speed, func(s Speed) bool { return s.Ratio.Known() && s.Whole() != "" }); s != nil {
		return s
	}
	return find(r.Speed, func(s Speed) bool { return s.Ratio.Known() })
}

// Works returns the first measurement of each of two kinds of work.
func (r *Report) Works() (list []Speed) {
	for _, s := range r.Speed {
		if len(list) < 2 && (list == nil || list[0].Work != s.Work) {
			list = append(list, s)
		}
	}
	return list
}
