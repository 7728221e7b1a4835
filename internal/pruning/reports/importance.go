package reports

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/viz"
)

// Importance is what attn heads has found, in the form in which it is written as JSON.
type Importance struct {
	Model  string   `json:"model"`
	Data   string   `json:"data"`
	Task   string   `json:"task,omitempty"`  // of a pretrained model's head
	Pairs  int      `json:"pairs,omitempty"` // that a translator was scored on
	Items  string   `json:"items,omitempty"` // what its data are counted in: "texts"
	Texts  int      `json:"texts,omitempty"` // that a pretrained model was scored on
	Layers []Layer  `json:"layers"`
	Scores []Scores `json:"scores"`
}

// Figure returns the grid: a panel for each method and kind, a row for each layer,
// a column for each head. Each method's largest value has the last colour.
func (r Importance) Figure() viz.Figure {
	f := viz.Figure{
		Title: fmt.Sprintf("Importance of heads: %s", r.Model),
		Unit:  "part of the method's largest", Axes: "a row for each layer, a column for each head; values below 0 count as 0",
	}
	kinds := map[string]bool{}
	for _, s := range r.Scores {
		largest := largestScore(s)
		for k := heads.Encoder; k <= heads.Cross; k++ {
			p := viz.Panel{Kind: k.String(), Title: k.String() + ", " + s.Method, Head: viz.Mean}
			widest := 0
			for _, l := range r.Layers {
				if l.Kind == k.String() {
					widest = max(widest, l.Heads)
				}
			}
			for h := range widest {
				p.Columns = append(p.Columns, fmt.Sprint(h))
			}
			for i, l := range r.Layers {
				if l.Kind != k.String() || widest == 0 {
					continue
				}
				p.Rows = append(p.Rows, fmt.Sprint("layer ", l.Index))
				for h := range widest {
					v := math.NaN()
					if h < len(s.Values[i]) {
						v = max(float64(s.Values[i][h]), 0)
						if largest > 0 {
							v /= largest
						}
					}
					p.Values = append(p.Values, float32(v))
				}
			}
			if len(p.Rows) > 0 {
				kinds[p.Kind] = true
				f.Panels = append(f.Panels, p)
			}
		}
	}
	f.Columns = len(kinds)
	return f
}

// largestScore returns the largest score that is a number, at least 0.
func largestScore(s Scores) float64 {
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

// shades are characters for parts of the largest score, from each half to the
// next.
var shades = []struct {
	from float64
	mark string
}{{0.75, "█"}, {0.5, "▓"}, {0.25, "▒"}, {0.125, "░"}, {0, "·"}}

// shade returns the character of a score.
func shade(v, largest float64) string {
	if v == 0 {
		return "·" // of a largest of 0 too
	}
	for _, s := range shades {
		if v >= s.from*largest {
			return s.mark
		}
	}
	if v < 0 {
		return "-"
	}
	return "?" // not a number
}

// Write writes the grid of importance, then tables of importance and measures, a
// line for each head: in colour, and no wider than the terminal.
func (r Importance) Write(w io.Writer, t viz.Terminal) error {
	var b strings.Builder
	examples := quote.Counted(r.Pairs, "pair", "pairs")
	if r.Task != "" {
		examples = fmt.Sprintf("the %s of %s", r.Task, quote.Counted(r.Texts, strings.TrimSuffix(r.Items, "s"), r.Items))
	}
	flow(&b, t.Width, fmt.Sprintf("importance on %s of %s;", examples, r.Data), "larger is more important")
	b.WriteByte('\n')
	r.grid(&b, t)
	b.WriteByte('\n')
	var columns []column
	rank, seconds := row{name: "rank correlation"}, row{name: "seconds"}
	ranks := false
	for _, s := range r.Scores {
		largest := largestScore(s)
		c := column{name: s.Method, format: decimals(largest), full: largest}
		for i := range r.Layers {
			c.values = append(c.values, s.Values[i]...)
		}
		columns = append(columns, c)
		rank.values, seconds.values = append(rank.values, decimal(s.Rank, "%.2f")), append(seconds.values, fmt.Sprintf("%.1f", s.Seconds))
		ranks = ranks || s.Rank.Known()
	}
	below := []row{seconds}
	if ranks {
		below = []row{rank, seconds}
	}
	r.table(&b, t, columns, below)
	if ranks {
		flow(&b, t.Width, "rank correlation:", "Spearman's,", "with leave-one-out")
	}
	if len(r.Layers) > 0 && r.Layers[0].Measures != nil {
		b.WriteByte('\n')
		columns = nil
		for _, m := range []struct {
			name, key string
			full      float64
		}{{"entropy", "entropy", 0}, {"uniform", "bound", 0}, {"distance", "distance", 0}, {"confidence", "confidence", 1},
			{"previous", "previous", 1}, {"same", "same", 1}, {"next", "next", 1}, {"special", "special", 1}} {
			c := column{name: m.name, format: "%.2f", full: m.full}
			for _, l := range r.Layers {
				c.values = append(c.values, l.Measures[m.key]...)
			}
			columns = append(columns, c)
		}
		r.table(&b, t, columns, nil)
		flow(&b, t.Width, "uniform is the entropy", "of uniform weights, ln n;", "a dash does not apply")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// column is a column of a table: a value for each head.
type column struct {
	name, format string
	values       []Number
	full         float64 // the value of the last colour; 0 has none
}

// row stands below a table.
type row struct {
	name   string
	values []string
}

// table writes columns beside the names of heads, in as few pieces as fit, about equally
// wide. For a terminal a head is in one column, for a program in three.
func (r Importance) table(b *strings.Builder, t viz.Terminal, columns []column, below []row) {
	head := fmt.Sprintf("%-8s %5s %4s", "kind", "layer", "head")
	name := func(l Layer, h int) string { return fmt.Sprintf("%-8s %5d %4d", l.Kind, l.Index, h) }
	if t.Width > 0 {
		head = fmt.Sprintf("%-13s", "head")
		name = func(l Layer, h int) string { return fmt.Sprintf("%-7s %5s", l.Kind, fmt.Sprintf("%d.%d", l.Index, h)) }
	}
	names := len(head)
	for pieces := tablePieces(columns, names, t.Width); len(columns) > 0; pieces-- {
		n := (len(columns) + pieces - 1) / pieces
		b.WriteString(head)
		for _, c := range columns[:n] {
			fmt.Fprintf(b, " %*s", c.width(), c.name)
		}
		b.WriteByte('\n')
		at := 0
		for _, l := range r.Layers {
			for h := range l.Heads {
				b.WriteString(name(l, h))
				for _, c := range columns[:n] {
					b.WriteString(" " + c.cell(at, t))
				}
				b.WriteByte('\n')
				at++
			}
		}
		for i, line := range below {
			text, end := line.name, names // a long name takes the spaces in front of the first value
			for j, c := range columns[:n] {
				end += 1 + c.width()
				text += fmt.Sprintf("%*s", end-len(text), " "+line.values[j])
			}
			b.WriteString(text + "\n")
			below[i].values = line.values[n:]
		}
		if columns = columns[n:]; len(columns) > 0 {
			b.WriteByte('\n')
		}
	}
}

// tablePieces returns how many pieces columns take so that none is wider than a terminal,
// with about as many in each.
func tablePieces(columns []column, names, width int) int {
	for pieces := 1; pieces < len(columns); pieces++ {
		fits := true
		for left, rest := pieces, columns; left > 0; left-- {
			n := (len(rest) + left - 1) / left
			used := names
			for _, c := range rest[:n] {
				used += 1 + c.width()
			}
			fits, rest = fits && (width == 0 || used <= width), rest[n:]
		}
		if fits {
			return pieces
		}
	}
	return max(1, len(columns))
}

// width returns that of the widest number or the name.
func (c column) width() int {
	width := max(5, len(c.name))
	for _, v := range c.values {
		width = max(width, len(decimal(v, c.format)))
	}
	return width
}

// cell writes a value, on its colour if the terminal has any.
func (c column) cell(at int, t viz.Terminal) string {
	v := c.values[at]
	text := fmt.Sprintf("%*s", c.width(), decimal(v, c.format))
	if c.full <= 0 || !v.Known() {
		return text
	}
	return t.Paint(float64(v)/c.full, text)
}

// decimals returns the format in which the largest of some numbers has three
// significant digits.
func decimals(largest float64) string {
	if largest <= 0 {
		return "%.3f"
	}
	return fmt.Sprintf("%%.%df", min(max(2-int(math.Floor(math.Log10(largest))), 0), 6))
}

// grid draws importance: a line for each layer, a cell for each head. Kinds stand side by
// side as far as the terminal is wide enough.
func (r Importance) grid(b *strings.Builder, t viz.Terminal) {
	const names = 19 // characters of method and layer
	var kinds []string
	heads := 0
	for _, l := range r.Layers {
		if !slices.Contains(kinds, l.Kind) {
			kinds = append(kinds, l.Kind)
		}
		heads = max(heads, l.Heads)
	}
	cell := 1
	if t.Colors != viz.NoColors && (t.Width == 0 || names+2+2*heads <= t.Width) {
		cell = 2
	}
	width := max(8, cell*heads)
	for len(kinds) > 0 {
		n := len(kinds)
		if t.Width > 0 {
			n = min(n, max(1, (t.Width-names)/(2+width)))
		}
		r.gridOf(b, t, kinds[:n], width, cell)
		if kinds = kinds[n:]; len(kinds) > 0 {
			b.WriteByte('\n')
		}
	}
	if t.Colors != viz.NoColors {
		bar := ""
		for i := range 16 {
			bar += t.Paint(float64(i)/15, " ")
		}
		flow(b, t.Width, "a cell for each head;", "- below 0,", "? not measured")
		b.WriteString("0 " + bar + " the method's largest\n")
		return
	}
	flow(b, t.Width, "a column for each head,", "relative to the method's largest:", "█ from 3/4,", "▓ from 1/2,", "▒ from 1/4,", "░ from 1/8,", "· less,", "- below 0,", "? not measured")
}

// gridOf draws importance in layers of some kinds.
func (r Importance) gridOf(b *strings.Builder, t viz.Terminal, kinds []string, width, cell int) {
	layers := 0
	for _, l := range r.Layers {
		if slices.Contains(kinds, l.Kind) {
			layers = max(layers, l.Index+1)
		}
	}
	first := fmt.Sprintf("%-13s layer", "")
	for _, k := range kinds {
		first += fmt.Sprintf("  %-*s", width, k)
	}
	b.WriteString(strings.TrimRight(first, " ") + "\n")
	for _, s := range r.Scores {
		name, largest := s.Method, largestScore(s)
		for index := range layers {
			line := fmt.Sprintf("%-13s %5d", name, index)
			name = ""
			for _, k := range kinds {
				cells, n := "", 0
				for i, l := range r.Layers {
					if l.Kind != k || l.Index != index {
						continue
					}
					for _, v := range s.Values[i] {
						mark := shade(float64(v), largest)
						switch {
						case t.Colors == viz.NoColors:
						case mark == "-" || mark == "?":
							mark += strings.Repeat(" ", cell-1)
						default:
							mark = t.Paint(float64(v)/max(largest, math.SmallestNonzeroFloat64), strings.Repeat(" ", cell))
						}
						cells, n = cells+mark, n+cell
					}
				}
				line += "  " + cells + strings.Repeat(" ", max(0, width-n))
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
}

// flow writes parts of a sentence in lines of at most so many characters, or 100.
func flow(b *strings.Builder, width int, parts ...string) {
	if width == 0 {
		width = 100
	}
	at := 0
	for i, p := range parts {
		n := utf8.RuneCountInString(p)
		switch {
		case i == 0:
		case at+1+n > width:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(p)
		at += n
	}
	b.WriteByte('\n')
}

// decimal writes a number, or a dash for what is none.
func decimal(n Number, format string) string {
	if !n.Known() {
		return "-"
	}
	return fmt.Sprintf(format, float64(n))
}
