package reports

import (
	"math"
	"slices"
	"strings"

	"github.com/attn-go/attn/prune"
)

// What page and summary ask of a report. It may come from a file: whatever is
// missing there is NaN or nothing, and never a panic.

// scores returns those of a method, or nil.
func (r *Report) scores(method string) *Scores {
	for i := range r.Scores {
		if r.Scores[i].Method == method {
			return &r.Scores[i]
		}
	}
	return nil
}

// value returns the importance of a head; NaN if it was not measured.
func (s *Scores) value(layer, head int) Number {
	if s == nil || layer >= len(s.Values) || head >= len(s.Values[layer]) {
		return NaN
	}
	return s.Values[layer][head]
}

// curve returns that of a name, or nil.
func (r *Report) curve(name string) *Curve {
	for i := range r.Curves {
		if r.Curves[i].Name == name && len(r.Curves[i].Points) > 0 {
			return &r.Curves[i]
		}
	}
	return nil
}

// at returns the point with so many heads left, or nil.
func (c *Curve) at(left int) *Point {
	if c == nil {
		return nil
	}
	for i := range c.Points {
		if c.Points[i].Left == left {
			return &c.Points[i]
		}
	}
	return nil
}

// at returns the point with so many heads left, or nil.
func (b *Band) at(left int) *BandPoint {
	for i := range b.Points {
		if b.Points[i].Left == left {
			return &b.Points[i]
		}
	}
	return nil
}

const reversedSuffix = ", reversed"

// ordered returns the method of a curve, and whether its most important heads
// go first.
func (c *Curve) ordered() (method string, reversed bool) {
	return strings.CutSuffix(c.Name, reversedSuffix)
}

// whole returns the metric of the whole model.
func (r *Report) whole() Number {
	if r.Result.Before.Metric.Known() {
		return r.Result.Before.Metric
	}
	for _, c := range r.Curves {
		if p := c.at(r.heads()); p != nil {
			return p.Metric
		}
	}
	return NaN
}

// kinds returns the layers of each kind, by their places in the report: first
// those of the encoder, of the decoder and across, then what else there is.
func (r *Report) kinds() (names []string, layers map[string][]int) {
	names = []string{"encoder", "decoder", "cross"}
	layers = make(map[string][]int)
	for i, l := range r.Layers {
		if !slices.Contains(names, l.Kind) {
			names = append(names, l.Kind)
		}
		layers[l.Kind] = append(layers[l.Kind], i)
	}
	return slices.DeleteFunc(names, func(name string) bool { return layers[name] == nil }), layers
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

// turn returns when a head was removed, from 1; 0 if it was not.
func (r *Report) turn(layer string, head int) int {
	return 1 + slices.Index(r.Result.Removed, prune.Head{Layer: layer, Number: head})
}

// share is what a value is of the largest, from 0 to 1, on a scale on which it
// is seen: of its root, because a few heads tower over all the others.
func share(v, top Number) float64 {
	if !v.Known() {
		return math.NaN()
	}
	if !(top > 0) {
		return 0
	}
	return math.Sqrt(max(0, min(1, float64(v/top))))
}

// largest returns the largest value of all heads; NaN if none was measured.
func (r *Report) largest(value func(layer, head int) Number) Number {
	top := NaN
	for i, l := range r.Layers {
		for head := range l.Heads {
			if v := value(i, head); v.Known() && !(v <= top) {
				top = v
			}
		}
	}
	return top
}
