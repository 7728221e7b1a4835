package viz

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/cells"
)

// sheet is the layout of a picture: the positions of its parts in CSS pixels, 96 to the inch.
// SVG and PNG draw the same sheet. A figure's sheet has panels, a chart's has shapes.
type sheet struct {
	width, height float64
	title         string
	inline        bool
	texts         []caption

	panels []placed
	extent
	bar    rectangle // of colours
	ticks  []float64 // positions of its labels, from the left
	swatch rectangle // for values that are not numbers, if there are any
	veiled rectangle // for masked cells, if there are any
	unit   string    // of the values
	fonts  []*Font

	shapes []shape // later shapes are above earlier ones
	strips []strip
}

type rectangle struct{ x, y, w, h float64 }

// placed is a panel whose upper left cell is at x, y.
type placed struct {
	Panel  // thinned out if it was too large
	x, y   float64
	cw, ch float64 // width and height of a cell
}

func (p placed) width() float64  { return p.cw * float64(len(p.Columns)) }
func (p placed) height() float64 { return p.ch * float64(len(p.Rows)) }

// cell returns the rectangle of a cell.
func (p placed) cell(row, column int) rectangle {
	return rectangle{p.x + float64(column)*p.cw, p.y + float64(row)*p.ch, p.cw, p.ch}
}

// caption is a text that starts, ends or is centred at x, y, a point of its baseline. up means that it is read upwards.
type caption struct {
	text   string
	x, y   float64
	size   float64
	anchor anchor
	up     bool
	grey   bool
	bold   bool
}

func (s *sheet) write(c caption) { s.texts = append(s.texts, c) }

type anchor uint8

const (
	start anchor = iota
	middle
	end
)

// Sizes on the sheet.
const (
	edge        = 12. // margin around everything
	titleSize   = 14.
	panelSize   = 12. // of the text above a panel
	legendSize  = 10.
	smallest    = 6.5 // smallest text that is readable in print
	largestText = 12.
	tokenCells  = 20  // the longest label
	scaleStep   = 28. // the least distance between labels of a scale
	barLength   = 160.
	barHeight   = 10.
	tickLength  = 3.
	hatching    = 5. // distance between the stripes of masked cells
	legendWidth = 330.
	leastTitle  = 200. // the width that a narrow panel's title may take: the long name of a head
	boldly      = 1.08 // width of bold letters relative to regular ones
)

// layout computes the position of everything.
func (f Figure) layout() (*sheet, error) {
	e, err := f.check()
	if err != nil {
		return nil, err
	}
	s := &sheet{title: f.Title, extent: e, unit: f.unit(), inline: f.Inline, fonts: f.Fonts}
	columns := min(sideBySide(f.Columns, len(f.Panels)), len(f.Panels))
	// The largest side of a panel: a single one fills a page, several share it.
	side := 620.
	if len(f.Panels) > 1 {
		side = min(max(2200/float64(columns), 90), 270)
	}
	worst := [2]int{1, 1}
	y := edge
	if f.Title != "" {
		y += titleSize + 8
	}
	for _, row := range f.lines(columns) {
		boxes := make([]box, len(row))
		above := 0. // the height that the row needs above its cells
		for j, p := range row {
			b := newBox(p, side, f, e)
			worst = [2]int{max(worst[0], b.down), max(worst[1], b.across)}
			boxes[j], above = b, max(above, b.above)
		}
		x, bottom := edge, y
		for _, b := range boxes {
			s.addPanel(b, x, y, y+above)
			x += b.outerWidth() + 18
			bottom = max(bottom, y+above+b.height())
		}
		s.width = max(s.width, x-18+edge)
		y = bottom + 18
	}
	notes := []string{f.axes()}
	if len(f.Panels) == 1 || f.RowTitle != "" && f.ColumnTitle != "" {
		notes = nil // the axes say it already
	}
	if note := thinned(worst[0], worst[1]); note != "" {
		notes = append(notes, note)
	}
	s.colorBar(y, notes)
	if f.Title != "" {
		s.width = max(s.width, min(textWidth(cells.Label(f.Title, cellsIn(640, titleSize)), titleSize)*boldly+2*edge, 640))
		s.write(caption{text: fit(f.Title, titleSize, (s.width-2*edge)/boldly), x: edge, y: edge + titleSize, size: titleSize, bold: true})
	}
	return s, nil
}

// sideBySide returns the given number of columns for a grid of n panels or, for 0, a divisor of n if that gives a good
// shape.
func sideBySide(given, n int) int {
	switch {
	case given > 0:
		return given
	case n <= 3:
		return n
	}
	root := int(math.Ceil(math.Sqrt(float64(n))))
	for c := root; c <= 2*root; c++ {
		if n%c == 0 {
			return c
		}
	}
	return root
}

// box is a panel and the space for the text around it.
type box struct {
	placed
	left, above  float64
	rows, heads  labels
	upright      bool // the column labels are vertical
	rowTitle     string
	columnTitle  string
	down, across int
}

// labels says how the tokens of an axis are written.
type labels struct {
	size   float64 // 0 if they are not written
	stride int     // write every stride-th token
	scale  bool    // they are increasing numbers: a few labels are enough
}

// newLabels chooses how to label tokens whose cells have the given size.
func newLabels(tokens []string, cell float64) labels {
	l := labels{size: min(cell*0.8, largestText), stride: 1, scale: rising(tokens)}
	switch {
	case l.size >= smallest:
	case l.scale:
		l.size = legendSize
		for l.stride = 1; float64(l.stride)*cell < scaleStep; l.stride = rounder(l.stride) {
		}
	default:
		l.size, l.stride = smallest, int(math.Ceil((smallest+2)/cell))
	}
	return l
}

// rising reports whether the tokens are increasing numbers.
func rising(tokens []string) bool {
	last := math.Inf(-1)
	for _, token := range tokens {
		v, err := strconv.ParseFloat(token, 64)
		if err != nil || !(v > last) {
			return false
		}
		last = v
	}
	return true
}

// rounder returns the successor of n in 1, 2, 5, 10, 20, 50, ….
func rounder(n int) int {
	if strings.HasPrefix(strconv.Itoa(n), "2") {
		return n / 2 * 5
	}
	return 2 * n
}

// widest returns the width of the widest token that is written.
func (l labels) widest(tokens []string) float64 {
	w := 0.
	for _, token := range every(tokens, l.stride) {
		w = max(w, textWidth(cells.Label(token, tokenCells), l.size))
	}
	return w
}

// newBox fits a panel into a square of the given side.
func newBox(p Panel, side float64, f Figure, e extent) box {
	var b box
	many := len(f.Panels) > 1
	b.Panel, b.down, b.across = e.thin(p, int(side), int(side))
	b.cw, b.ch = cellSize(len(b.Rows), len(b.Columns), side)
	b.rows, b.heads = newLabels(b.Rows, b.ch), newLabels(b.Columns, b.cw)
	fits := func(l labels) bool { return l.stride == 1 || l.scale }
	labelled := !many || fits(b.rows) && fits(b.heads)
	b.rowTitle, b.columnTitle = f.RowTitle, f.ColumnTitle
	if !many {
		b.rowTitle, b.columnTitle = cmp.Or(b.rowTitle, "queries"), cmp.Or(b.columnTitle, "keys")
	}
	b.above = 4
	if labelled {
		widest := b.heads.widest(b.Columns)
		b.upright = widest > b.cw*float64(b.heads.stride)-1
		b.left = b.rows.widest(b.Rows) + 5
		b.above = b.heads.size + 5
		if b.upright {
			b.above = widest + 6
		}
	} else {
		b.rows.size, b.heads.size = 0, 0
	}
	if b.rowTitle != "" {
		b.left += legendSize + 6
	}
	if b.columnTitle != "" {
		b.above += legendSize + 6
	}
	if p.Title != "" {
		b.above += panelSize + 6
	}
	return b
}

// cellSize returns the width and height of a cell. Cells are square, unless the panel has many
// tokens on one side and so few on the other that it would look like a thread.
func cellSize(rows, columns int, side float64) (cw, ch float64) {
	n := float64(max(rows, columns))
	cell := min(max(math.Floor(2*side/n)/2, 1), 26)
	if cell*n > side {
		cell = side / n
	}
	lengthOf := func(n int) float64 { return max(cell, min(14, side/8/float64(n))) }
	return lengthOf(columns), lengthOf(rows)
}

// outerWidth returns the width of a panel with its labels and its title.
func (b box) outerWidth() float64 {
	return max(b.left+b.width(), min(textWidth(cells.Label(b.Title, cellsIn(leastTitle, panelSize)), panelSize), leastTitle))
}

// addPanel puts a panel with its text on the sheet: its labels begin at x, its title is below
// top, and its cells begin at y.
func (s *sheet) addPanel(b box, x, top, y float64) {
	b.x, b.y = x+b.left, y
	s.panels = append(s.panels, b.placed)
	if b.Title != "" {
		s.write(caption{text: fit(b.Title, panelSize, max(b.outerWidth(), leastTitle)), x: x, y: top + panelSize, size: panelSize})
		top = y - b.above + panelSize + 6
	} else {
		top = y - b.above
	}
	if b.columnTitle != "" {
		text, at := fit(b.columnTitle, legendSize, max(b.width(), leastTitle)), top+legendSize-1
		s.write(caption{text: text, x: b.x + b.width()/2, y: at, size: legendSize, anchor: middle, grey: true})
	}
	if b.rowTitle != "" {
		text, at := fit(b.rowTitle, legendSize, max(b.height(), leastTitle)), x+legendSize-1
		s.write(caption{text: text, x: at, y: b.y + b.height()/2, size: legendSize, anchor: middle, up: true, grey: true})
	}
	if b.rows.size == 0 {
		return
	}
	// Text looks centred when its baseline is a third of its size below the middle.
	mid := func(cell, size float64) float64 { return cell/2 + 0.34*size }
	for i := 0; i < len(b.Rows); i += b.rows.stride {
		at := b.cell(i, 0)
		s.write(caption{text: cells.Label(b.Rows[i], tokenCells), x: b.x - 4, y: at.y + mid(b.ch, b.rows.size), size: b.rows.size, anchor: end})
	}
	for j := 0; j < len(b.Columns); j += b.heads.stride {
		at := b.cell(0, j)
		c := caption{text: cells.Label(b.Columns[j], tokenCells), size: b.heads.size}
		if b.upright {
			c.x, c.y, c.up = at.x+mid(b.cw, c.size), b.y-4, true
		} else {
			c.x, c.y, c.anchor = at.x+b.cw/2, b.y-5, middle
		}
		s.write(c)
	}
}

// colorBar places the colour bar, with the notes below it.
func (s *sheet) colorBar(y float64, notes []string) {
	add := func(c caption) {
		c.size, c.grey = legendSize, true
		s.write(c)
	}
	s.width = max(s.width, legendWidth)
	s.bar = rectangle{edge + 4, y, barLength, barHeight}
	scale := span{s.bottom(), s.top}
	values, numbers := scale.ticks(5)
	for n := 4; n > 1 && crowded(numbers, barLength/(scale.high-scale.low)*(values[1]-values[0])); n-- {
		values, numbers = scale.ticks(n)
	}
	for i, v := range values {
		at := s.bar.x + scale.at(v)*barLength
		s.ticks = append(s.ticks, at)
		add(caption{text: numbers[i], x: at, y: y + barHeight + legendSize + 4, anchor: middle})
	}
	says := s.unit
	if s.top != 1 {
		says = fmt.Sprintf("%s; the largest is %s", says, strings.ReplaceAll(fmt.Sprintf("%.3g", s.top), "-", "−"))
		if s.signed {
			says = s.unit + ", signed"
		}
	}
	right := s.bar.x + barLength + 22
	add(caption{text: says, x: right, y: y + barHeight - 1})
	s.width = max(s.width, right+textWidth(says, legendSize)+edge)
	swatch := func(text string) rectangle {
		r := rectangle{right, y + barHeight + 5, 16, barHeight}
		add(caption{text: text, x: right + 21, y: r.y + barHeight - 1})
		right += 21 + textWidth(text, legendSize) + 14
		s.width = max(s.width, right-14+edge)
		return r
	}
	if s.masked {
		s.veiled = swatch(s.hatched)
	}
	if s.holes {
		s.swatch = swatch("not a number")
	}
	if s.outside {
		notes = append(notes, fmt.Sprintf("values outside %.3g to %.3g have the colour of the nearer end", s.bottom(), s.top))
	}
	y += barHeight + legendSize + 8
	for _, note := range notes {
		y += legendSize + 3
		add(caption{text: note, x: edge, y: y})
	}
	s.height = y + edge
}

// crowded reports whether numbers are too wide for the given distance between them.
func crowded(numbers []string, step float64) bool {
	return slices.ContainsFunc(numbers, func(text string) bool { return textWidth(text, legendSize)+4 > step })
}

// cellsIn returns more cells than text of a width on the sheet can have: no letter is narrower than an eighth of its size.
func cellsIn(width, size float64) int { return int(max(width, 0)/size*8) + 2 }

// fit cuts a text to a width on the sheet.
func fit(text string, size, width float64) string {
	text = cells.Label(text, min(cellsIn(width, size), longestTitle))
	if textWidth(text, size) <= width {
		return text
	}
	width -= textWidth("…", size)
	for i, r := range text {
		if width -= textWidth(string(r), size); width < 0 {
			return text[:i] + "…"
		}
	}
	return text
}
