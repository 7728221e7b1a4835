package viz

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/attn-go/attn/internal/cells"
)

// Size of a chart's plot area on a terminal: rows, and columns if the terminal's width is unknown.
const (
	chartRows    = 14
	chartColumns = 72
)

// seriesMarks are drawn for lines and points on a terminal without Unicode.
const seriesMarks = "*o+x#@%&"

// Text draws the chart for a terminal. Lines and points are Braille dots, eight to a character; with ASCII they are one
// character per line. Bands are omitted, and the legend says so.
//
// Errors: as for Chart, and a width of less than 24 characters.
func (c Chart) Text(w io.Writer, t Terminal) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := t.check(); err != nil {
		return err
	}
	d := &drawing{t: t}
	d.text(c.Title)
	d.text(c.Y)
	f := c.frame()
	values, texts := f.ay.ticks(f.y, chartRows/3)
	left := 0
	for _, text := range texts {
		left = max(left, cells.Width(text))
	}
	columns := max(min(chartColumns, t.most())-left-2, 8)
	// A sheet whose units are dots: points are at integer coordinates.
	f.rectangle = rectangle{-inset, 0, float64(2*columns-1) + 2*inset, float64(4*chartRows - 1)}
	p := plot{columns: columns, cells: make([]cellDots, columns*chartRows)}
	for _, l := range c.Levels {
		if at := f.ay.position(l.Y); at >= f.y.low && at <= f.y.high {
			y := f.at(f.x.low, at).y
			for x := 0; x < 2*columns; x += 4 {
				p.dot(point{float64(x), y}, -1)
			}
		}
	}
	for i, l := range c.Lines {
		if !l.Points {
			for _, run := range f.clipped(f.runs(l.X, l.Y), false) {
				p.line(run, i)
			}
			continue
		}
		for j := range l.X {
			if f.shows(l.X[j], l.Y[j]) {
				p.mark(f.point(l.X[j], l.Y[j]), i)
			}
		}
	}
	at := map[int]string{}
	for i, v := range values {
		at[int(math.Round(f.at(f.x.low, v).y))/4] = texts[i]
	}
	for row := range chartRows {
		d.right(at[row], left)
		d.WriteString(t.sign("│", "|"))
		for column := range columns {
			d.dots(c, p.cells[row*columns+column])
		}
		d.line()
	}
	d.xNumbers(f, left+2, columns)
	if c.X != "" {
		d.pad(left + 2)
		d.WriteString(cells.Label(c.X, columns))
		d.line()
	}
	if !c.Bare {
		d.series(c)
	}
	_, err := io.WriteString(w, d.String())
	return err
}

// plot is a grid of characters with their dots.
type plot struct {
	columns int
	cells   []cellDots
}

// cellDots has the dots of a character. owner is the number of their series plus 1, 0 if
// there are none, or negative for a level.
type cellDots struct {
	set   uint8
	owner int
	mark  bool // a single point
}

// at returns the character at a position, and the column and row of the dot within it. It
// returns nil if the position is outside.
func (p *plot) at(to point) (c *cellDots, i, j int) {
	i, j = int(math.Round(to.x)), int(math.Round(to.y))
	if i < 0 || j < 0 || i >= 2*p.columns || j/4*p.columns+i/2 >= len(p.cells) {
		return nil, 0, 0
	}
	return &p.cells[j/4*p.columns+i/2], i % 2, j % 4
}

// dot sets the dot at a position, if the position is inside.
func (p *plot) dot(to point, series int) {
	c, i, j := p.at(to)
	if c == nil {
		return
	}
	// Braille numbers the upper six dots column by column, then the two lowest.
	c.set |= [4][2]uint8{{1, 8}, {2, 16}, {4, 32}, {64, 128}}[j][i]
	if series >= 0 || c.owner == 0 {
		c.owner = series + 1
	}
}

// mark sets a whole character: a single dot is hard to see.
func (p *plot) mark(to point, series int) {
	if c, _, _ := p.at(to); c != nil {
		*c = cellDots{set: 1, owner: series + 1, mark: true}
	}
}

// line sets the dots between consecutive points.
func (p *plot) line(run []point, series int) {
	for i, b := range run {
		a := run[max(i-1, 0)]
		steps := max(1, int(math.Ceil(max(math.Abs(b.x-a.x), math.Abs(b.y-a.y)))))
		for k := range steps + 1 {
			at := float64(k) / float64(steps)
			p.dot(point{a.x + at*(b.x-a.x), a.y + at*(b.y-a.y)}, series)
		}
	}
}

// dots writes a character of the plot area.
func (d *drawing) dots(c Chart, cell cellDots) {
	if cell.set == 0 {
		d.plain()
		d.WriteByte(' ')
		return
	}
	if d.t.ASCII {
		mark := byte('-')
		if cell.owner > 0 {
			mark = seriesMarks[(cell.owner-1)%len(seriesMarks)]
		}
		d.WriteByte(mark)
		return
	}
	d.paint(c, cell.owner)
	if cell.mark {
		d.WriteString("•")
		return
	}
	d.WriteRune(0x2800 + rune(cell.set))
}

// paint switches to the colour of a series.
func (d *drawing) paint(c Chart, owner int) {
	tint := levelTint
	if owner > 0 {
		tint = lineTint(c.color(owner - 1))
	}
	switch d.t.Colors {
	case NoColors:
	case Colors16:
		d.set(fmt.Sprint([...]int{37, 94, 33, 35, 36, 96, 31, 93, 95}[max(owner, 0)%9]))
	default:
		d.set(d.t.code(tint.on(d.t.on()), true))
	}
}

// xNumbers writes as many x labels as fit.
func (d *drawing) xNumbers(f frame, left, columns int) {
	values, texts := f.ax.ticks(f.x, max(2, columns/12))
	line := []rune(strings.Repeat(" ", columns))
	end := -1
	for i, v := range values {
		at := f.x.at(v)
		if f.falling {
			i = len(values) - 1 - i
			at = 1 - f.x.at(values[i])
		}
		text := []rune(texts[i])
		from := min(max(int(at*float64(columns-1))-len(text)/2, 0), columns-len(text))
		if from <= end {
			continue
		}
		copy(line[from:], text)
		end = from + len(text)
	}
	d.pad(left)
	d.WriteString(strings.TrimRight(string(line), " "))
	d.line()
}

// series writes the names of lines and points with their marks.
func (d *drawing) series(c Chart) {
	entry := func(name string, owner int) {
		if name == "" {
			return
		}
		if d.t.ASCII {
			d.WriteByte(seriesMarks[(owner-1)%len(seriesMarks)])
		} else {
			d.paint(c, owner)
			if c.Lines[owner-1].Points {
				d.WriteString("•")
			} else {
				d.WriteString("⣿")
			}
			d.plain()
		}
		d.WriteString(" " + cells.Label(name, d.t.most()-2))
		d.line()
	}
	for i, l := range c.Lines {
		entry(l.Name, i+1)
	}
	for _, l := range c.Levels {
		if l.Name != "" {
			d.text("- " + l.Name)
		}
	}
	if len(c.Bands) > 0 {
		d.text("bands are in SVG and PNG only")
	}
}
