package viz

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/cells"
)

// Terminal describes the terminal that a figure is drawn on. The zero value has no colours and unlimited width.
type Terminal struct {
	Colors Colors
	Width  int  // in characters, the limit on each line; 0 means none
	Light  bool // the background is light
	Dark   bool // the background is dark; with neither set, colours suit both
	ASCII  bool // with NoColors: maps and legends are pure ASCII
}

// shades are characters with five degrees of ink, for weights up to 1/8, 1/4, 1/2, 3/4 and above.
var shades = []shade{{1. / 8, "·", "."}, {1. / 4, "░", ":"}, {1. / 2, "▒", "+"}, {3. / 4, "▓", "#"}, {2, "█", "@"}}

type shade struct {
	below        float32
	whole, ascii string
}

// narrowest is the least width for drawing, in characters.
const narrowest = 24

func (t Terminal) check() error {
	if t.Width != 0 && t.Width < narrowest {
		return fmt.Errorf("viz: a width of %d characters, want at least %d", t.Width, narrowest)
	}
	return nil
}

// most returns the number of characters on a line.
func (t Terminal) most() int { return cmp.Or(t.Width, longestTitle) }

// sign returns a character, or the one that replaces it in pure ASCII.
func (t Terminal) sign(whole, ascii string) string {
	if t.ASCII {
		return ascii
	}
	return whole
}

// Limits of a map with a label for every cell. Larger maps are drawn dense.
const (
	mostRows   = 100
	mostChunks = 3
)

// Text draws the figure for a terminal. A single panel is drawn with its tokens and cells two characters wide, in
// several pieces if it is wider than the terminal. A panel that is too large for that is drawn dense, with cells half a
// character high, and thinned out if necessary. Several panels are drawn small, side by side. A legend explains the
// shades and says if something is thinned out.
func (f Figure) Text(w io.Writer, t Terminal) error {
	e, err := f.check()
	if err != nil {
		return err
	}
	if err := t.check(); err != nil {
		return err
	}
	d := &drawing{t: t, extent: e, unit: f.unit()}
	d.text(f.Title)
	switch p := f.Panels[0]; {
	case len(f.Panels) > 1:
		d.thumbnails(f)
	case d.fits(p):
		d.text(p.Title)
		d.full(p)
	default:
		d.text(p.Title)
		d.dense(p)
	}
	d.legend()
	_, err = io.WriteString(w, d.String())
	return err
}

// drawing is a figure or chart that is being drawn on a terminal.
type drawing struct {
	strings.Builder
	t   Terminal
	now string // the code of the current colour

	extent
	unit  string   // of the values
	notes []string // for the legend
}

// text writes a caption line, cut to the width.
func (d *drawing) text(s string) {
	if s == "" {
		return
	}
	d.WriteString(cells.Label(s, d.t.most()))
	d.line()
}

// marginOf returns the width of the labels at the left.
func (d *drawing) marginOf(tokens []string, most int) int {
	margin := 0
	for _, token := range tokens {
		margin = max(margin, cells.Width(cells.Label(token, most)))
	}
	return margin
}

func (d *drawing) longest() int {
	return min(longestLabel, d.t.most()/3)
}

// chunk returns the number of columns that fit side by side.
func (d *drawing) chunk(p Panel) int {
	if d.t.Width == 0 {
		return len(p.Columns)
	}
	return (d.t.Width - d.marginOf(p.Rows, d.longest()) - 1) / 2
}

// fits reports whether there is room for a panel with all its tokens.
func (d *drawing) fits(p Panel) bool {
	chunk := d.chunk(p)
	return len(p.Rows) <= mostRows && len(p.Columns) <= mostChunks*min(chunk, 2*mostRows)
}

// full draws a panel with all its tokens.
func (d *drawing) full(p Panel) {
	margin, chunk := d.marginOf(p.Rows, d.longest()), max(d.chunk(p), 1)
	for from := 0; from == 0 || from < len(p.Columns); from += chunk {
		to := min(from+chunk, len(p.Columns))
		if chunk < len(p.Columns) {
			d.text(fmt.Sprintf("columns %d to %d of %d", from, to-1, len(p.Columns)))
		}
		d.heads(p.Columns[from:to], margin)
		for i, token := range p.Rows {
			d.right(cells.Label(token, d.longest()), margin)
			for j := from; j < to; j++ {
				d.cell(p, i*len(p.Columns)+j)
			}
			d.line()
		}
	}
}

// cell draws a cell two characters wide.
func (d *drawing) cell(p Panel, at int) {
	v, shade := p.Values[at], d.shadeOf(p, at)
	mark := "  "
	switch {
	case shade == veil:
		d.hatch(2)
		return
	case d.t.Colors == NoColors:
		mark = d.ink(v) + d.ink(v)
		if d.signed && v < 0 {
			mark = d.ink(v) + "-"
		}
	case shade == hole:
		d.set(d.ground(shade, false) + ";30")
		mark = "??"
	default:
		d.set(d.ground(shade, false))
	}
	d.WriteString(mark)
}

// hatch draws masked cells, n characters wide.
func (d *drawing) hatch(n int) {
	if d.t.Colors != NoColors {
		d.plain()
		d.set("90")
	}
	d.WriteString(strings.Repeat(d.stroke(), n))
	d.plain()
}

// stroke returns the character of masked cells.
func (d *drawing) stroke() string { return d.t.sign("╱", "/") }

// ink returns the character of a value, on a signed scale that of its absolute value.
func (d *drawing) ink(v float32) string {
	size := float64(v)
	if d.signed {
		size = math.Abs(size)
	}
	weight := float32(min(size/d.top, 1))
	if at := slices.IndexFunc(shades, func(s shade) bool { return weight < s.below }); at >= 0 && isNumber(v) {
		return d.t.sign(shades[at].whole, shades[at].ascii)
	}
	return "?"
}

// small draws a row of a panel with one character per cell; with colours it draws two rows.
func (d *drawing) small(p Panel, row int) {
	for j := range p.Columns {
		at := row*len(p.Columns) + j
		upper, lower := d.shadeOf(p, at), veil
		if d.t.Colors == NoColors {
			if upper == veil {
				d.hatch(1)
			} else {
				d.WriteString(d.ink(p.Values[at]))
			}
			continue
		}
		below := at + len(p.Columns)
		if below < len(p.Values) {
			lower = d.shadeOf(p, below)
		}
		switch { // half of a character cannot be hatched, so it shows the background
		case upper == veil && lower == veil && d.masked:
			d.hatch(1)
		case upper == veil:
			d.set(d.ground(lower, true) + ";49")
			d.WriteString("▄")
		case lower == veil:
			d.set(d.ground(upper, true) + ";49")
			d.WriteString("▀")
		default:
			d.set(d.ground(upper, true) + ";" + d.ground(lower, false))
			d.WriteString("▀")
		}
	}
	d.plain()
}

// step is the number of rows of cells in a line of small cells.
func (d *drawing) step() int {
	if d.t.Colors == NoColors {
		return 1
	}
	return 2
}

// dense draws a panel with many tokens, thinned out to the width of the terminal and to about
// two screens of lines. Column numbers are above it; row numbers and tokens are at the left.
func (d *drawing) dense(p Panel) {
	width := cmp.Or(d.t.Width, 2*mostRows)
	digits := len(fmt.Sprint(len(p.Rows) - 1))
	margin := min(d.marginOf(p.Rows, d.longest()), 8)
	left := digits + 1 + margin + 1
	small, down, across := d.thin(p, 60*d.step(), width-left)
	if note := thinned(down, across); note != "" {
		d.notes = append(d.notes, note)
	}
	d.pad(left)
	for j := 0; j < len(small.Columns); j += 10 {
		number := fmt.Sprint(j * across)
		if j+len(number) <= len(small.Columns) {
			d.WriteString(number)
			if j+10 < len(small.Columns) {
				d.pad(10 - len(number))
			}
		}
	}
	d.line()
	for i := 0; i < len(small.Rows); i += d.step() {
		fmt.Fprintf(d, "%*d ", digits, i*down)
		d.right(cells.Label(small.Rows[i], margin), margin)
		d.small(small, i)
		d.line()
	}
}

// legend explains the shades.
func (d *drawing) legend() {
	if d.t.Colors == NoColors {
		var parts []string
		from := 0.
		for _, s := range shades {
			parts = append(parts, fmt.Sprintf("%s from %.3g", strings.Repeat(d.t.sign(s.whole, s.ascii), 2), from*d.top))
			from = float64(s.below)
		}
		d.notes = append(parts, d.notes...)
	} else {
		d.line() // otherwise the bar would look like another row
		fmt.Fprintf(d, "%.3g ", d.bottom())
		for i := range 16 {
			d.set(d.ground(max(i*255/15, d.least()), false))
			d.WriteByte(' ')
		}
		d.plain()
		fmt.Fprintf(d, " %.3g", d.top)
		d.line()
	}
	if d.signed && d.t.Colors == NoColors {
		d.notes = append(d.notes, "- is below 0")
	}
	if d.top != 1 {
		d.notes = append(d.notes, fmt.Sprintf("the largest %s is %.3g", d.unit, d.top))
	}
	if d.masked {
		d.notes = append(d.notes, d.stroke()+" is "+d.hatched)
	}
	if d.holes {
		mark := "??"
		if d.t.Colors != NoColors {
			mark = "red"
		}
		d.notes = append(d.notes, mark+" is not a number")
	}
	if d.outside {
		d.notes = append(d.notes, fmt.Sprintf("values outside %.3g to %.3g look like the ends", d.bottom(), d.top))
	}
	for i, note := range d.notes {
		d.notes[i] = cells.Label(note, d.t.most())
	}
	for _, line := range cells.Lines(d.notes, "  ", d.t.most()) {
		d.text(line)
	}
}

// heads writes the column tokens vertically, aligned at the bottom.
func (d *drawing) heads(columns []string, margin int) {
	heads := make([][]string, len(columns)) // grapheme clusters
	height := 0
	for j, token := range columns {
		heads[j] = cells.Clusters(cells.Label(token, d.longest()))
		height = max(height, len(heads[j]))
	}
	for line := range height {
		d.pad(margin + 1)
		for _, h := range heads {
			c := " "
			if at := line - (height - len(h)); at >= 0 {
				c = h[at]
			}
			d.WriteString(c)
			d.pad(2 - cells.Width(c))
		}
		d.WriteByte('\n')
	}
}

func (d *drawing) pad(n int) { d.WriteString(strings.Repeat(" ", max(n, 0))) }

// right writes a label that ends at a column, and a space.
func (d *drawing) right(label string, column int) {
	d.pad(column - cells.Width(label))
	d.WriteString(label + " ")
}
