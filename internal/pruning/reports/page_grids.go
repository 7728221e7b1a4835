package reports

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/attn-go/attn/internal/quote"
)

// gridTable shows the heads of one kind: a row for each layer.
type gridTable struct {
	Kind  string
	Heads []int
	Rows  []gridRow
}

type gridRow struct {
	Name  string // for the pointer
	Index int
	Cells []gridCell
}

type gridCell struct {
	Class, Text, Title string
	Removed            bool
}

// chosenGrids returns the heads of the chosen method, and what its numbers mean.
func (r *Report) chosenGrids() (grids []gridTable, say string) {
	s := r.scores(r.Result.Method)
	if len(r.Layers) == 0 {
		return nil, ""
	}
	grids, unit := r.grids(s.value)
	if s == nil {
		return grids, "Importance was not measured. Crossed out: removed."
	}
	say = fmt.Sprintf("Importance by %s", r.Result.Method)
	if unit != "" {
		say += ", in units of " + unit
	}
	if r.Settings.Normalize {
		say += ", divided by the norm of the layer"
	}
	say += "; the darker, the more (lighter on a dark ground), with the root of the number. Hollow and struck out: removed."
	if r.Settings.Step > 0 {
		say += fmt.Sprintf(" The numbers are those of the whole model; removal scored again after every %s.", quote.Counted(r.Settings.Step, "head", "heads"))
	}
	return grids, say
}

// grids returns a table for each kind, with values in a unit that leaves them
// short.
func (r *Report) grids(value func(layer, head int) Number) (list []gridTable, unit string) {
	top := r.largest(value)
	rank := r.ranks(value)
	size := 0. // the largest in either direction sets the unit
	for i, l := range r.Layers {
		for head := range l.Heads {
			if v := value(i, head); v.Known() {
				size = max(size, math.Abs(float64(v)))
			}
		}
	}
	divide := 1.
	if size > 0 && (size >= 1000 || size < 0.1) {
		exponent := int(math.Floor(math.Log10(size)))
		divide = math.Pow(10, float64(exponent))
		unit = "10" + superscript(exponent)
	}
	names, layers := r.kinds()
	for _, kind := range names {
		t := gridTable{Kind: kind}
		for _, i := range layers[kind] {
			l := &r.Layers[i]
			row := gridRow{Name: l.Name, Index: l.Index}
			for head := range l.Heads {
				if head == len(t.Heads) {
					t.Heads = append(t.Heads, head)
				}
				v := value(i, head)
				cell := gridCell{Text: oneDecimal(float64(v) / divide), Removed: !l.kept(head), Title: fmt.Sprintf("%s, head %d: not measured", l.Name, head)}
				if v.Known() {
					cell.Title = fmt.Sprintf("%s, head %d: %.4g, number %d of %d", l.Name, head, float64(v), rank[i][head], r.heads())
				}
				if cell.Removed {
					cell.Class = "gone"
					cell.Title += "; removed"
					if turn := r.turn(l.Name, head); turn > 0 {
						cell.Title += fmt.Sprintf(" as number %d", turn)
					}
				} else if s := share(v, top); !math.IsNaN(s) {
					cell.Class = fmt.Sprintf("v%d", int(math.Round(shadeLevels*s)))
				}
				row.Cells = append(row.Cells, cell)
			}
			t.Rows = append(t.Rows, row)
		}
		list = append(list, t)
	}
	return list, unit
}

func oneDecimal(v float64) string {
	if math.Abs(v) >= 99.95 {
		return fixed(Number(v), 0)
	}
	return fixed(Number(v), 1)
}

// ranks returns the place of each head among all, 1 for the largest value.
func (r *Report) ranks(value func(layer, head int) Number) [][]int {
	type place struct{ layer, head int }
	var list []place
	ranks := make([][]int, len(r.Layers))
	for i, l := range r.Layers {
		ranks[i] = make([]int, max(l.Heads, 0))
		for head := range l.Heads {
			if value(i, head).Known() {
				list = append(list, place{i, head})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b place) int {
		switch v, w := value(a.layer, a.head), value(b.layer, b.head); {
		case v > w:
			return -1
		case v < w:
			return 1
		}
		return 0
	})
	for i, p := range list {
		ranks[p.layer][p.head] = i + 1
	}
	return ranks
}

// scoreTables are all values of one method, or of one measure.
type scoreTables struct {
	Name, Say string
	Grids     []gridTable
}

func (r *Report) scoreTables() (list []scoreTables) {
	if len(r.Layers) == 0 {
		return nil
	}
	for i := range r.Scores {
		s := &r.Scores[i]
		t := scoreTables{Name: s.Method}
		var unit string
		t.Grids, unit = r.grids(s.value)
		if unit != "" {
			t.Say = "in units of " + unit
		}
		list = append(list, t)
	}
	names := map[string]bool{}
	for _, l := range r.Layers {
		for name := range l.Measures {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		t := scoreTables{Name: name, Say: "a measure of the weights"}
		var unit string
		t.Grids, unit = r.grids(func(layer, head int) Number {
			if list := r.Layers[layer].Measures[name]; head < len(list) {
				return list[head]
			}
			return NaN
		})
		if unit != "" {
			t.Say += ", in units of " + unit
		}
		list = append(list, t)
	}
	return list
}
