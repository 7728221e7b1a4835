package reports

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/cells"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/viz"
)

// Importance is the result of attn heads, in the format of its JSON output.
type Importance struct {
	Model  string   `json:"model"`
	Data   string   `json:"data"`
	Task   string   `json:"task"`  // "translation"
	Items  string   `json:"items"` // unit of the data: "texts"
	Texts  int      `json:"texts"` // lines that the model was scored on
	Layers []Layer  `json:"layers"`
	Scores []Scores `json:"scores"`
	// Composition has the largest for queries, followed by keys and values, if heads were read from weights.
	Composition []Pair `json:"composition,omitempty"`
}

// Pair is how much a head reads of what an earlier one writes.
type Pair struct {
	Reads string  `json:"reads"` // of Reads
	From  string  `json:"from"`  // "0.3"
	To    string  `json:"to"`
	Score float64 `json:"score"`
}

// Reads are what a head reads as.
var Reads = [3]string{"queries", "keys", "values"}

// WriteCircuits writes tables of the given number of heads that copy most, and of the composition.
func (r Importance) WriteCircuits(w io.Writer, t viz.Terminal, most int) error {
	d, copying := drawing{Importance: r, t: t}, column{name: "copying", format: "%.2f", full: 1}
	for _, l := range r.Layers {
		copying.values = append(copying.values, l.Measures["copying"]...)
	}
	d.flow("what the weights of", r.Model, "say, without a text")
	d.line("")
	d.table([]column{copying}, "copying", most)
	d.flow("copying: 1 makes a token", "that the head attends to", "likelier, −1 less likely")
	d.line("")
	line := ""
	for _, reads := range Reads {
		line += fmt.Sprintf("%-24s", "reads as "+reads)
	}
	d.line(line)
	for i := range most {
		line = ""
		for _, reads := range Reads {
			list := slices.DeleteFunc(slices.Clone(r.Composition), func(p Pair) bool { return p.Reads != reads })
			if i < len(list) {
				line += fmt.Sprintf("%-24s", fmt.Sprintf("%s of %s  %.3f", list[i].To, list[i].From, list[i].Score))
			}
		}
		if line != "" {
			d.line(line)
		}
	}
	_, err := io.WriteString(w, d.String())
	return err
}

// Figure returns the importance as a grid: a panel for each method and kind that has heads, a row for each layer, and a
// column for each head. Each method's largest value has the last colour.
func (r Importance) Figure() viz.Figure {
	f := viz.Figure{
		Title: fmt.Sprintf("Importance of heads: %s", r.Model),
		Unit:  "part of the method's largest", Hatched: "absent", Axes: "a row for each layer, a column for each head; values below 0 count as 0",
	}
	heads := map[string]int{} // of the widest layer, by kind
	for _, l := range r.Layers {
		heads[l.Kind] = max(heads[l.Kind], l.Heads)
	}
	for _, s := range r.Scores {
		largest := s.largest()
		for _, kind := range []string{"encoder", "decoder", "cross", "mamba"} {
			if heads[kind] == 0 {
				continue
			}
			p := viz.Panel{Kind: kind, Title: kind + ", " + s.Method, Head: viz.Mean}
			for h := range heads[kind] {
				p.Columns = append(p.Columns, fmt.Sprint(h))
			}
			for i, l := range r.Layers {
				if l.Kind != kind {
					continue
				}
				p.Rows = append(p.Rows, fmt.Sprint("layer ", l.Index))
				for h := range p.Columns {
					v := math.NaN() // the layer has fewer heads
					if h < len(s.Values[i]) {
						v = max(float64(s.Values[i][h]), 0)
					}
					if largest > 0 {
						v /= largest
					}
					p.Values, p.Masked = append(p.Values, float32(v)), append(p.Masked, h >= len(s.Values[i]))
				}
			}
			f.Panels = append(f.Panels, p)
		}
		f.Columns = cmp.Or(f.Columns, len(f.Panels))
	}
	return f
}

// largest returns the largest known score, at least 0.
func (s Scores) largest() float64 {
	largest := 0.
	for _, row := range s.Values {
		for _, v := range row {
			if v > Number(largest) {
				largest = float64(v)
			}
		}
	}
	return largest
}

// Write writes the grid of importance, if there are scores, followed by tables of importance and measures with a
// line for each head. It uses the terminal's colours and width. The table of measures has the given number of rows at
// most, and is sorted by a measure, the largest value first and heads without a value last; 0 and "" mean all heads in
// the order of the model.
func (r Importance) Write(w io.Writer, t viz.Terminal, measure string, most int) error {
	d := drawing{Importance: r, t: t}
	examples := quote.Counted(r.Texts, strings.TrimSuffix(r.Items, "s"), r.Items)
	if len(r.Scores) == 0 {
		d.flow("what the heads attend to", fmt.Sprintf("in %s of %s", examples, r.Data))
	} else {
		d.flow("importance on the "+r.Task, fmt.Sprintf("of %s of %s;", examples, r.Data), "larger is more important")
		d.line("")
		f, on := r.Figure(), t
		f.Title, on.Width = "", d.width()
		if err := f.Text(&d.Builder, on); err != nil {
			return err
		}
		d.line("")
		if columns, ranks := d.methods(); !ranks {
			d.table(columns, "", 0, "seconds")
		} else {
			d.table(columns, "", 0, "rank correlation", "seconds")
			d.flow("rank correlation:", "Spearman's,", "with leave-one-out")
		}
	}
	if len(r.Layers) > 0 && r.Layers[0].Measures != nil {
		d.line("")
		d.table(d.measures(), measure, most)
		d.flow("bound is the entropy", "of uniform weights, ln n;", "a dash does not apply")
	}
	_, err := io.WriteString(w, d.String())
	return err
}

// drawing is an importance that is being drawn on a terminal.
type drawing struct {
	Importance
	strings.Builder
	t viz.Terminal
}

func (d *drawing) line(text string) { d.WriteString(strings.TrimRight(text, " ") + "\n") }

// width returns the width of the terminal, or 100 columns.
func (d *drawing) width() int { return cmp.Or(d.t.Width, 100) }

// flow writes parts of a sentence in lines that fit the width.
func (d *drawing) flow(parts ...string) {
	for _, line := range cells.Lines(parts, " ", d.width()) {
		d.line(line)
	}
}

// column is a column of a table: a value for each head.
type column struct {
	name, format string
	values       []Number
	full         float64           // the value of the last colour; 0 for no colours
	below        map[string]string // further lines, by name
}

// methods returns a column for each method, and whether any has a rank correlation.
func (d *drawing) methods() (columns []column, ranks bool) {
	for _, s := range d.Scores {
		c := column{name: s.Method, format: decimals(s.largest()), full: s.largest()}
		c.below = map[string]string{"rank correlation": decimal(s.Rank, "%.2f"), "seconds": fmt.Sprintf("%.1f", s.Seconds)}
		for i := range d.Layers {
			c.values = append(c.values, s.Values[i]...)
		}
		columns, ranks = append(columns, c), ranks || s.Rank.Known()
	}
	return columns, ranks
}

// measures returns a column for each measure.
func (d *drawing) measures() (columns []column) {
	for _, m := range (heads.Measures{}).List() {
		c := column{name: m.Name, format: "%.2f", full: 1}
		if m.Name == "entropy" || m.Name == "bound" || m.Name == "distance" { // they have no common limit
			c.full = 0
		}
		for _, l := range d.Layers {
			c.values = append(c.values, l.Measures[m.Name]...)
		}
		columns = append(columns, c)
	}
	return columns
}

// table writes a line for each head, at most the given number if it is not 0, sorted by a column if it is named,
// followed by the lines of below. If the terminal is too narrow for all columns, it writes several pieces.
func (d *drawing) table(columns []column, by string, most int, below ...string) {
	head := fmt.Sprintf("%-8s %5s %4s", "kind", "layer", "head")
	name := func(l Layer, h int) string { return fmt.Sprintf("%-8s %5d %4d", l.Kind, l.Index, h) }
	if d.t.Width > 0 {
		head = fmt.Sprintf("%-13s", "head")
		name = func(l Layer, h int) string { return fmt.Sprintf("%-7s %5s", l.Kind, viz.ShortHeadName(l.Index, h)) }
	}
	var names []string
	var order []int
	for _, l := range d.Layers {
		for h := range l.Heads {
			names, order = append(names, name(l, h)), append(order, len(order))
		}
	}
	if c := find(columns, func(c column) bool { return c.name == by }); c != nil {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c.values[b], c.values[a]) }) // NaN is smallest
	}
	order = order[:min(cmp.Or(most, len(order)), len(order))]
	for i, piece := range pieces(columns, len(head), d.t.Width) {
		if i > 0 {
			d.line("")
		}
		line := head
		for _, c := range piece {
			line += fmt.Sprintf(" %*s", c.width(), c.name)
		}
		d.line(line)
		for _, at := range order {
			d.WriteString(names[at])
			for _, c := range piece {
				d.WriteString(" " + c.cell(at, d.t))
			}
			d.WriteByte('\n')
		}
		for _, text := range below {
			line, end := text, len(head) // a long name takes the spaces before the first value
			for _, c := range piece {
				end += 1 + c.width()
				line += fmt.Sprintf("%*s", end-len(line), " "+c.below[text])
			}
			d.line(line)
		}
	}
}

// pieces splits columns into as few pieces as possible that fit the width, with about the same
// number in each.
func pieces(columns []column, names, width int) (list [][]column) {
	for n := 1; n <= len(columns); n++ {
		list = nil
		fits := true
		for rest := columns; len(rest) > 0; {
			left := n - len(list)
			piece := rest[:(len(rest)+left-1)/left]
			list, rest = append(list, piece), rest[len(piece):]
			used := names
			for _, c := range piece {
				used += 1 + c.width()
			}
			fits = fits && (width == 0 || used <= width)
		}
		if fits {
			break
		}
	}
	return list
}

// width returns the larger of the widest number and the name.
func (c column) width() int {
	width := max(5, len(c.name))
	for _, v := range c.values {
		width = max(width, len(decimal(v, c.format)))
	}
	return width
}

// cell writes a value, on its colour if the terminal has colours.
func (c column) cell(at int, t viz.Terminal) string {
	v := c.values[at]
	text := fmt.Sprintf("%*s", c.width(), decimal(v, c.format))
	if c.full <= 0 || !v.Known() {
		return text
	}
	return t.Paint(float64(v)/c.full, text)
}

// decimals returns the format that gives the largest number three significant digits.
func decimals(largest float64) string {
	if largest <= 0 {
		return "%.3f"
	}
	return fmt.Sprintf("%%.%df", min(max(2-int(math.Floor(math.Log10(largest))), 0), 6))
}

// decimal writes a number, or a dash if it is unknown.
func decimal(n Number, format string) string {
	if !n.Known() {
		return "-"
	}
	return fmt.Sprintf(format, float64(n))
}
