// Package viz draws heat maps of attention weights on a terminal, as SVG, as PNG, or as a web page
// that needs no network. It also writes them as CSV, JSON and NPY.
//
// All of these outputs are methods of Figure: its rows are queries, its columns are the keys
// that they attend to. A Chart plots lines. WriteFile chooses the format by the name of a file.
package viz

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"

	"github.com/attn-go/attn/internal/cells"
)

// Figure is a picture of the attention weights of one or more heads. It has a method for each output format:
//
//	f := viz.Figure{Title: "le chat → the cat", Panels: []viz.Panel{{
//		Title: "cross-attention, layer 0, head 3", Kind: "cross", Head: 3,
//		Rows: []string{"the", "cat"}, Columns: []string{"le", "chat"},
//		Values: []float32{0.9, 0.1, 0.2, 0.8},
//	}}}
//	err := f.SVG(file)
//
// Errors: every method rejects a figure without panels, a panel without tokens, and a panel
// whose number of values does not match its tokens, before it writes anything.
type Figure struct {
	Title   string
	Panels  []Panel
	Columns int   // panels side by side; 0 chooses; a terminal shows at most as many as fit
	Scale   Scale // shared by all panels, explained in the legend
	// Signed is for values that may be negative, such as weights without a softmax: the scale has two sides, from −m to m,
	// where m is the largest value of Scale. 0 has the colour of paper, values below are blue and values above orange.
	Signed bool

	// Unit names the values in the legend. Empty means "weight".
	Unit string
	// Hatched says what masked cells are, in the legend. Empty means "masked".
	Hatched string
	// Axes describes rows and columns if there are several panels. Empty means "rows attend to columns".
	Axes string
	// RowTitle and ColumnTitle are the axis titles of each panel. Empty means "queries" and
	// "keys" if there is one panel, and no titles if there are several.
	RowTitle, ColumnTitle string
	// Fonts provide the characters that the Go fonts lack, for PNG. The first font that has a character draws it.
	Fonts []*Font
	// Inline makes SVG omit its style element, for a page whose style sheet contains DarkFigures.
	Inline bool
}

func (f Figure) unit() string { return cells.Label(cmp.Or(f.Unit, "weight"), 40) }

func (f Figure) axes() string { return cells.Label(cmp.Or(f.Axes, "rows attend to columns"), 200) }

// Panel is the matrix of one head, or of a mean over heads.
type Panel struct {
	Title   string
	Kind    string    // "encoder", "decoder" or "cross", for tables
	Layer   int       // for tables; Mean for a mean over layers, Several if it belongs to no single layer
	Head    int       // for tables; Mean for a mean over heads, Several if it belongs to no single head
	Rows    []string  // the tokens of the queries
	Columns []string  // the tokens of the keys that they attend to
	Values  []float32 // [len(Rows) len(Columns)], row-major
	Masked  []bool    // like Values: cells whose query cannot attend to the key, drawn hatched; nil if there are none
	NewLine bool      // starts a new line of panels
}

// lines returns the panels grouped by line, with at most the given number of columns.
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

// Special values of Panel.Head and Panel.Layer.
const (
	Mean    = -1 // the mean over all of them
	Several = -2 // a matrix that belongs to no single head or layer
)

// Scale says which value gets the last colour. 0 gets the first, unless the figure is signed.
type Scale uint8

const (
	// Unit goes from 0 to 1, so that any two pictures can be compared.
	Unit Scale = iota
	// Largest goes from 0 to the largest value of the figure, or absolute value if it is signed, for figures with only
	// small weights.
	Largest
)

// extent is the range of a figure's values.
type extent struct {
	top     float64 // the value of the last colour
	holes   bool    // some values are not numbers
	masked  bool    // some cells are masked
	hatched string  // what these are
	outside bool    // some values are below the bottom or above the top
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

// zeroShade is the shade of 0 on a signed scale, which uses shades 1 to 255.
const zeroShade = 128

// paper returns the shade that has the colour of paper.
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

// check rejects figures that cannot be drawn, and returns the range of the others.
func (f Figure) check() (extent, error) {
	e := extent{top: 1, hatched: cells.Label(cmp.Or(f.Hatched, "masked"), 40)}
	if len(f.Panels) == 0 {
		return e, errors.New("viz: a figure without panels")
	}
	low, high := 0., 0.
	for i, p := range f.Panels {
		name := titled("panel", i, p.Title)
		rows, columns := len(p.Rows), len(p.Columns)
		if rows == 0 || columns == 0 {
			return e, fmt.Errorf("viz: %s has %d rows and %d columns of tokens, want at least one of each", name, rows, columns)
		}
		if len(p.Values)/columns != rows || len(p.Values)%columns != 0 {
			return e, fmt.Errorf("viz: %s has %d values, want %d×%d for its tokens", name, len(p.Values), rows, columns)
		}
		if p.Masked != nil && len(p.Masked) != len(p.Values) {
			return e, fmt.Errorf("viz: %s has %d mask values, want %d", name, len(p.Masked), len(p.Values))
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
	if e.signed = f.Signed; e.signed {
		high = max(high, -low)
	}
	if f.Scale == Largest && high > 0 {
		e.top = high
	}
	e.outside = low < e.bottom() || high > e.top
	return e, nil
}

// Widths at which texts are cut, in character cells, however much room they have.
const (
	longestLabel = 16 // on a terminal
	longestTitle = 2000
)

func isNumber(v float32) bool { return v-v == 0 }

// masked reports whether a cell is masked.
func (p Panel) masked(at int) bool { return p.Masked != nil && p.Masked[at] }

// Shades of special cells: hole for a value that is not a number, veil for a masked cell.
const (
	hole = -1
	veil = -2
)

// shadeOf returns the shade of a cell, which may be hole or veil.
func (e extent) shadeOf(p Panel, at int) int {
	if p.masked(at) {
		return veil
	}
	return e.shade(p.Values[at])
}

// shade returns the shade of a value, 0 to 255, or hole. Values outside the scale get the colour of its nearer end.
func (e extent) shade(v float32) int {
	if !isNumber(v) {
		return hole
	}
	if e.signed {
		return zeroShade + int(math.Round((zeroShade-1)*min(max(float64(v)/e.top, -1), 1)))
	}
	return int(math.Round(255 * min(max(float64(v)/e.top, 0), 1)))
}

// thin returns a panel with at most the given rows and columns, and the numbers of old rows and columns in each block
// that became one cell. A cell gets the largest weight of its block, because a mean would hide the few large weights
// that matter. A value that is not a number makes the cell not a number, so that it stays visible. A cell is masked if
// its whole block is masked.
func (e extent) thin(p Panel, rows, columns int) (small Panel, down, across int) {
	down = (len(p.Rows) + rows - 1) / rows
	across = (len(p.Columns) + columns - 1) / columns
	if down == 1 && across == 1 {
		return p, 1, 1
	}
	small = p
	small.Rows, small.Columns = every(p.Rows, down), every(p.Columns, across)
	w := len(small.Columns)
	small.Values = slices.Repeat([]float32{float32(math.Inf(-1))}, len(small.Rows)*w)
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

// larger returns the value that thin keeps: the larger of two, or on a signed scale the one farther from 0.
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

// every returns every n-th token, beginning with the first.
func every(tokens []string, n int) []string {
	var kept []string
	for i := 0; i < len(tokens); i += n {
		kept = append(kept, tokens[i])
	}
	return kept
}

// thinned describes the effect of thin in words, "" if there is none.
func thinned(down, across int) string {
	if down == 1 && across == 1 {
		return ""
	}
	return fmt.Sprintf("each cell is the largest of %d×%d weights", down, across)
}
