// Package viz draws attention weights: on a terminal, as SVG, PNG or a web page
// that needs no network, and writes them as CSV, JSON and NPY.
//
// All of these draw a Figure, whose rows are queries and whose columns are the keys that
// they attend to. A Chart draws lines: numbers that depend on another.
package viz

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"
)

// Figure is a picture of the attention weights of one or more heads. Every output, from a
// terminal to an array for another program, is made of this one value:
//
//	f := viz.Figure{Title: "le chat → the cat", Panels: []viz.Panel{{
//		Title: "cross layer 0, head 3", Kind: "cross", Head: 3,
//		Rows: []string{"the", "cat"}, Columns: []string{"le", "chat"},
//		Values: []float32{0.9, 0.1, 0.2, 0.8},
//	}}}
//	err := f.SVG(file)
//
// Errors: a figure without panels, or with a panel that lacks tokens or whose
// values are not as many as its tokens say, is refused by each of them before
// anything is written.
type Figure struct {
	Title   string
	Panels  []Panel
	Columns int   // panels side by side; 0 chooses, and a terminal shows no more than fit
	Scale   Scale // the same for all panels, and told in the legend

	// Unit is what a value is, for the legend. Empty means "weight".
	Unit string
	// Axes says what rows and columns are, where there are several panels. Empty
	// means "rows attend to columns".
	Axes string
	// RowTitle and ColumnTitle stand beside each panel. Empty means "queries" and
	// "keys" where there is one panel, and nothing where there are several.
	RowTitle, ColumnTitle string
	// Fonts have the characters, for PNG, that the Go fonts lack: the first that has
	// one draws it.
	Fonts []*Font
	// Inline says that SVG is for a page that holds it and DarkFigures: it has no style
	// of its own.
	Inline bool
}

func (f Figure) unit() string { return cmp.Or(f.Unit, "weight") }

func (f Figure) axes() string { return cmp.Or(f.Axes, "rows attend to columns") }

// Panel is the matrix of one head, or of a mean over heads.
type Panel struct {
	Title   string
	Kind    string    // "encoder", "decoder" or "cross", for tables
	Layer   int       // for tables; Mean for a mean over layers, Several for what is of several
	Head    int       // for tables; Mean for a mean over heads, Several for what is of several
	Rows    []string  // the tokens of the queries
	Columns []string  // the tokens of the keys that they attend to
	Values  []float32 // [len(Rows) len(Columns)], row after row
	Masked  []bool    // as Values: cells whose query cannot attend to the key, hatched; nil for none
	NewLine bool      // stands below the panels before it, however few they are
}

// lines returns the panels as they stand side by side, at most so many.
func (f Figure) lines(columns int) [][]Panel {
	var all [][]Panel
	from := 0
	for to := 1; to <= len(f.Panels); to++ {
		if to == len(f.Panels) || to-from == columns || f.Panels[to].NewLine {
			all = append(all, f.Panels[from:to])
			from = to
		}
	}
	return all
}

// What stands in place of the number of a head or layer.
const (
	Mean    = -1 // the mean over all of them
	Several = -2 // a matrix of heads, say, in which no single one is
)

// Scale says which value gets the last colour. The first is that of 0.
type Scale uint8

const (
	// Unit goes from 0 to 1, so that any two pictures compare.
	Unit Scale = iota
	// Largest goes from 0 to the largest value of the figure, for weights
	// that are spread thin.
	Largest
	// Diverging goes from less to more than 0, as far as the largest size of a
	// value either way, for differences: the colour of paper in the middle, blue
	// below and orange above.
	Diverging
)

// extent is what the values of a figure span.
type extent struct {
	top     float64 // the value of the last colour
	holes   bool    // there are values that are not numbers
	masked  bool    // there are cells that are masked
	outside bool    // there are values below 0 or above top
	signed  bool    // the scale goes from -top to top
}

// colors returns the colour of each shade.
func (e extent) colors(on Ground) (list [256]color.RGBA) {
	for shade := range list {
		if e.signed {
			list[shade] = on.Difference(float64(shade-zeroShade) / (zeroShade - 1))
		} else {
			list[shade] = on.Color(float64(shade) / 255)
		}
	}
	return list
}

// zeroShade is the shade of 0 on a scale with a sign: 128 of 1 to 255.
const zeroShade = 128

// paper returns the shade that is the colour of paper.
func (e extent) paper() int {
	if e.signed {
		return zeroShade
	}
	return 0
}

// bottom returns the value of the first colour.
func (e extent) bottom() float64 {
	if e.signed {
		return -e.top
	}
	return 0
}

// check refuses figures that cannot be drawn and measures the others.
func (f Figure) check() (extent, error) {
	e := extent{top: 1}
	if len(f.Panels) == 0 {
		return e, errors.New("viz: a figure without panels")
	}
	low, high := 0., 0.
	for i, p := range f.Panels {
		name := fmt.Sprintf("panel %d", i)
		if p.Title != "" {
			name = fmt.Sprintf("panel %d (%s)", i, label(p.Title, 40))
		}
		rows, columns := len(p.Rows), len(p.Columns)
		if rows == 0 || columns == 0 {
			return e, fmt.Errorf("viz: %s has %d rows and %d columns of tokens, want at least one of each", name, rows, columns)
		}
		if len(p.Values)/columns != rows || len(p.Values)%columns != 0 {
			return e, fmt.Errorf("viz: %s has %d values, want %d×%d for its tokens", name, len(p.Values), rows, columns)
		}
		if p.Masked != nil && len(p.Masked) != len(p.Values) {
			return e, fmt.Errorf("viz: %s says of %d cells whether they are masked, want %d", name, len(p.Masked), len(p.Values))
		}
		for i, v := range p.Values {
			if p.masked(i) {
				e.masked = true
				continue
			}
			if !isNumber(v) {
				e.holes = true
				continue
			}
			low, high = min(low, float64(v)), max(high, float64(v))
		}
	}
	if f.Scale == Largest && high > 0 {
		e.top = high
	}
	if f.Scale == Diverging {
		e.signed = true
		if e.top = max(high, -low); e.top == 0 {
			e.top = 1
		}
	}
	e.outside = low < e.bottom() || high > e.top
	return e, nil
}

func isNumber(v float32) bool { return v-v == 0 }

// masked reports whether the cell of a value is.
func (p Panel) masked(at int) bool { return p.Masked != nil && p.Masked[at] }

// What stands where shades are counted for a value that is not a number, and for a cell
// that is masked.
const (
	hole = -1
	veil = -2
)

// shadeOf returns the shade of a cell of a panel, hole or veil.
func (e extent) shadeOf(p Panel, at int) int {
	if p.masked(at) {
		return veil
	}
	return e.shade(p.Values[at])
}

// shade returns the number of a value's colour, 0 to 255, or hole. Values
// outside the scale get the colour of its end.
func (e extent) shade(v float32) int {
	if !isNumber(v) {
		return hole
	}
	if e.signed {
		return zeroShade + int(math.Round((zeroShade-1)*min(max(float64(v)/e.top, -1), 1)))
	}
	return int(math.Round(255 * min(max(float64(v)/e.top, 0), 1)))
}

// thin returns a panel with at most so many rows and columns, and how many of
// the old ones each of the new stands for. A weight becomes the largest of its
// block, since attention is made of few large weights that a mean would wash
// away; a value that is no number spoils its block, since it must not go unseen. A
// block is masked if all of it is.
func (e extent) thin(p Panel, rows, columns int) (small Panel, down, across int) {
	down = (len(p.Rows) + rows - 1) / rows
	across = (len(p.Columns) + columns - 1) / columns
	if down == 1 && across == 1 {
		return p, 1, 1
	}
	small = p
	small.Rows, small.Columns = every(p.Rows, down), every(p.Columns, across)
	w := len(small.Columns)
	small.Values = make([]float32, len(small.Rows)*w)
	for i := range small.Values {
		small.Values[i] = float32(math.Inf(-1))
	}
	if p.Masked != nil {
		small.Masked = slices.Repeat([]bool{true}, len(small.Values))
	}
	for i := range p.Rows {
		for j := range p.Columns {
			from, to := i*len(p.Columns)+j, i/down*w+j/across
			if p.masked(from) {
				continue
			}
			v := p.Values[from]
			if !isNumber(v) {
				v = float32(math.NaN())
			}
			small.Values[to] = e.larger(small.Values[to], v)
			if p.Masked != nil {
				small.Masked[to] = false
			}
		}
	}
	return small, down, across
}

// larger returns what thin keeps of two values: the larger, on a scale with a sign the
// one that is farther from 0.
func (e extent) larger(a, b float32) float32 {
	switch {
	case !e.signed:
		return max(a, b)
	case math.IsInf(float64(a), -1): // nothing yet
		return b
	case a != a || b != b:
		return float32(math.NaN())
	case math.Abs(float64(b)) > math.Abs(float64(a)):
		return b
	}
	return a
}

// every returns the first of each n tokens.
func every(tokens []string, n int) []string {
	var kept []string
	for i := 0; i < len(tokens); i += n {
		kept = append(kept, tokens[i])
	}
	return kept
}

// thinned tells in words what thin has done, "" if nothing.
func thinned(down, across int) string {
	if down == 1 && across == 1 {
		return ""
	}
	return fmt.Sprintf("each cell is the largest of %d×%d weights", down, across)
}
