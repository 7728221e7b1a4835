package reports

import (
	"cmp"
	"slices"

	"github.com/attn-go/attn/viz"
)

// The methods below are called by templates. Parts that were not measured are NaN or empty.

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

// Reversed ends the name of the curve that removes the most important heads first.
const Reversed = ", reversed"

// Made returns the AsPruned curve, or nil.
func (r *Report) Made() *Curve { return r.Curve(r.Result.Method + AsPruned) }

// Main returns the curve of Made or, without one, that of the result's method, or nil.
func (r *Report) Main() *Curve { return cmp.Or(r.Made(), r.Curve(r.Result.Method)) }

// At returns the point with n heads left, or nil.
func (b *Band) At(left int) *BandPoint {
	return find(b.Points, func(p BandPoint) bool { return p.Left == left })
}

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

// Moved is the name of the measure that a pruned model's remaining heads have in Layer.Measures: the Jensen–Shannon
// divergence of their weights from those in the whole model, in nats, averaged over queries.
const Moved = "moved"

// movement sums up Moved over the heads.
type movement struct {
	Mean, Most Number
	Head       string // whose weights have moved most
}

// Movement returns nil if it was not measured.
func (r *Report) Movement() *movement {
	m, n := movement{}, Number(0)
	for _, l := range r.Layers {
		for head, v := range l.Measures[Moved] {
			if !v.Known() {
				continue
			}
			if n++; v >= m.Most {
				m.Most, m.Head = v, viz.HeadName(l.Kind, l.Index, head)
			}
			m.Mean += v
		}
	}
	if n == 0 {
		return nil
	}
	m.Mean /= n
	return &m
}
