package reports

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/attn-go/attn/viz"
)

// of returns the value of a head in a list by layer and head; NaN if it was not measured.
func of(list [][]Number, layer, head int) Number {
	if layer >= len(list) || head >= len(list[layer]) {
		return NaN
	}
	return list[layer][head]
}

// measured has the values of all heads for the page: a table for each kind.
type measured struct {
	Name  string // of the method or measure
	Say   string // describes measures
	Unit  string // a unit that keeps the numbers short, such as 10⁻³; often empty
	Grids []grid
}

// grid has a row for each layer.
type grid struct {
	Kind  string
	Heads []int
	Rows  []gridRow
}

type gridRow struct {
	Name  string // shown under the pointer
	Index int
	Cells []cell
}

type cell struct {
	Class, Text, Title string
	Removed            bool
}

// Chosen returns the values of the method that the result was made with.
func (r *Report) Chosen() measured {
	s := find(r.Scores, func(s Scores) bool { return s.Method == r.Result.Method })
	if s == nil {
		return r.measured("", nil)
	}
	return r.measured(s.Method, s.Values)
}

// Measured returns the values of all methods and measures.
func (r *Report) Measured() (list []measured) {
	if len(r.Layers) == 0 {
		return nil
	}
	for _, s := range r.Scores {
		list = append(list, r.measured(s.Method, s.Values))
	}
	names := map[string]bool{}
	for _, l := range r.Layers {
		for name := range l.Measures {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		rows := make([][]Number, len(r.Layers))
		for i, l := range r.Layers {
			rows[i] = l.Measures[name]
		}
		m := r.measured(name, rows)
		if m.Say = "a measure of the weights"; name == Moved {
			m.Say = "how far the weights of the remaining heads are from their own before, as Jensen–Shannon divergence, at most 0.69"
		}
		list = append(list, m)
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

// measured returns the tables of values.
func (r *Report) measured(name string, values [][]Number) measured {
	rank, top, size := r.ranks(values)
	m, divide := measured{Name: name}, 1.
	if size > 0 && (size >= 1000 || size < 0.1) {
		exponent := int(math.Floor(math.Log10(size)))
		divide, m.Unit = math.Pow(10, float64(exponent)), "10"+superscript(exponent)
	}
	for _, k := range kindsOf(r.Layers) {
		g := grid{Kind: k.Name}
		for _, l := range k.Layers {
			row := gridRow{Name: l.Name, Index: l.Index}
			for head := range l.Heads {
				if head == len(g.Heads) {
					g.Heads = append(g.Heads, head)
				}
				v := of(values, l.at, head)
				c := r.cell(l.Layer, head, v, rank[[2]int{l.at, head}], top)
				c.Text = oneDecimal(float64(v) / divide)
				row.Cells = append(row.Cells, c)
			}
			g.Rows = append(g.Rows, row)
		}
		m.Grids = append(m.Grids, g)
	}
	return m
}

// cell returns the cell of a head without its text.
func (r *Report) cell(l *Layer, head int, v Number, rank int, top float64) cell {
	name := viz.HeadName(l.Kind, l.Index, head)
	c := cell{Removed: !l.kept(head), Title: name + ": not measured"}
	if v.Known() {
		c.Title = fmt.Sprintf("%s: %.4g, number %d of %d", name, float64(v), rank, r.Heads())
	}
	switch {
	case c.Removed:
		c.Class = "gone"
		c.Title += "; removed"
		if turn := r.turn(l.Name, head); turn > 0 {
			c.Title += fmt.Sprintf(" as number %d", turn)
		}
	case v.Known():
		// A square root scale keeps small values visible, because a few heads are far larger than the rest.
		share := 0.
		if top > 0 {
			share = math.Sqrt(max(0, min(1, float64(v)/top)))
		}
		c.Class = fmt.Sprintf("v%d", int(math.Round(shadeLevels*share)))
	}
	return c
}

func oneDecimal(v float64) string {
	if math.Abs(v) >= 99.95 {
		return fixed(Number(v), 0)
	}
	return fixed(Number(v), 1)
}

// ranks returns the rank of each head among all heads, 1 for the largest value, by layer and head. It
// also returns the largest value and the largest absolute value.
func (r *Report) ranks(values [][]Number) (rank map[[2]int]int, top, size float64) {
	var list [][2]int
	for i, l := range r.Layers {
		for head := range l.Heads {
			if v := of(values, i, head); v.Known() {
				list = append(list, [2]int{i, head})
				size = max(size, math.Abs(float64(v)))
			}
		}
	}
	slices.SortStableFunc(list, func(a, b [2]int) int { return cmp.Compare(of(values, b[0], b[1]), of(values, a[0], a[1])) })
	rank = make(map[[2]int]int)
	for i, at := range list {
		rank[at] = i + 1
	}
	if len(list) > 0 {
		top = float64(of(values, list[0][0], list[0][1]))
	}
	return rank, top, size
}
