package viz

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// strip is an area that shows the numbers at one x when the pointer is over it.
type strip struct {
	rectangle
	x, text string
}

type point struct{ x, y float64 }

// shape is a number of lines in one tint, or of areas if it is filled.
type shape struct {
	paths   [][]point
	filled  bool
	tint    tint
	width   float64   // of lines
	dash    []float64 // lengths of dashes and gaps; nil is a solid line
	opacity float64   // 0 is 1
	title   string    // shown when the pointer is over the shape
}

// frame is the plot area.
type frame struct {
	rectangle
	x, y    span // in axis coordinates
	falling bool
	ax, ay  Axis
}

// inset is the distance of the first and last points from the ends of the x axis.
const inset = 9.

// point returns the position of a pair of numbers on the sheet.
func (f frame) point(x, y float64) point { return f.at(f.ax.position(x), f.ay.position(y)) }

// shows reports whether a pair of numbers is in the plot area.
func (f frame) shows(x, y float64) bool {
	px, py := f.ax.position(x), f.ay.position(y)
	return px == px && py == py && (!f.cut() || f.inside().has(f.at(px, py)))
}

// cut reports whether parts of the chart may be outside the plot area.
func (f frame) cut() bool { return f.ax.limited() || f.ay.limited() }

// inside is the rectangle that lines are clipped to. It is a little narrower than the frame.
func (f frame) inside() rectangle {
	return rectangle{f.rectangle.x + inset, f.rectangle.y, f.w - 2*inset, f.h}
}

// at returns the position of a pair of axis coordinates on the sheet.
func (f frame) at(x, y float64) point {
	at := f.x.at(x)
	if f.falling {
		at = 1 - at
	}
	return point{f.rectangle.x + inset + at*(f.w-2*inset), f.rectangle.y + (1-f.y.at(y))*f.h}
}

// Sizes in charts.
const (
	tickSize   = 11.
	nameSize   = 11.5 // of legend and axes
	sampleSize = 26.  // width of a line in the legend
	markerSize = 3.4
	lineWidth  = 1.8
)

// margin returns the width of the y labels.
func (c Chart) margin() float64 {
	f := c.frame()
	_, texts := c.yTicks(f)
	room := 0.
	for _, text := range texts {
		room = max(room, textWidth(text, tickSize))
	}
	return room
}

// frame returns the ranges of the axes.
func (c Chart) frame() frame {
	xs, ys := c.spans()
	return frame{x: c.XAxis.open(xs, 0), y: c.YAxis.open(ys, 0.05), falling: c.Falling, ax: c.XAxis, ay: c.YAxis}
}

// yTicks returns at least three labels of y if the axis has them.
func (c Chart) yTicks(f frame) (values []float64, texts []string) {
	_, height := c.size()
	for n := int(max(3, height/45)); len(values) < 3 && n < 8; n++ {
		values, texts = f.ay.ticks(f.y, n)
	}
	return values, texts
}

func (c Chart) layout() (*sheet, error) { return Multiples{Charts: []Chart{c}}.layout() }

// layoutBehind lays out a chart that has been checked. left is the width reserved for the y labels.
func (c Chart) layoutBehind(left float64) *sheet {
	s := &sheet{title: c.Title, inline: c.Inline}
	width, height := c.size()
	s.width = width
	y := edge
	if c.Title != "" {
		s.write(caption{text: fit(c.Title, titleSize, (width-2*edge)/boldly), x: edge, y: y + titleSize, size: titleSize, bold: true})
		y += titleSize + 8
	}
	if c.Y != "" { // horizontal, because it is easier to read
		s.write(caption{text: fit(c.Y, nameSize, width-2*edge), x: edge, y: y + nameSize, size: nameSize, grey: true})
		y += nameSize + 4
	}
	f := c.frame()
	values, texts := c.yTicks(f)
	f.rectangle = rectangle{edge + left + 6, y + tickSize/2, width - 2*edge - left - 6, height}
	bottom := f.rectangle.y + f.h
	var grid [][]point
	for i, v := range values {
		at := f.at(f.x.low, v).y
		grid = append(grid, []point{{f.rectangle.x, at}, {f.rectangle.x + f.w, at}})
		s.write(caption{text: texts[i], x: f.rectangle.x - 6, y: at + 0.35*tickSize, size: tickSize, anchor: end, grey: true})
	}
	s.shapes = append(s.shapes, shape{paths: grid, tint: gridTint, width: 1})
	s.xAxis(c, f)
	y = bottom + 6
	written := c.Ticks == nil || len(c.Ticks) > 0
	if written {
		y += tickSize + 3
	}
	if written && c.X != "" {
		s.write(caption{text: fit(c.X, nameSize, f.w), x: f.rectangle.x + f.w/2, y: y + nameSize, size: nameSize, anchor: middle, grey: true})
		y += nameSize + 5
	}
	if xs, _ := c.spans(); xs.empty() {
		s.write(caption{text: "no numbers", x: f.rectangle.x + f.w/2, y: f.rectangle.y + f.h/2, size: nameSize, anchor: middle, grey: true})
	}
	s.draw(c, f)
	if c.Hover {
		s.tell(c, f)
	}
	if !c.Bare {
		y = s.legend(c, y+6)
	}
	s.height = y + edge - 4
	return s
}

// tell adds a strip for each x of a point. It is as wide as the area whose nearest point has this x.
func (s *sheet) tell(c Chart, f frame) {
	texts := map[float64]string{}
	for _, l := range c.Lines {
		for i, x := range l.X {
			if l.Points || !f.shows(x, l.Y[i]) {
				continue
			}
			text := texts[x]
			if text == "" {
				text = cmp.Or(c.X, "x") + " " + fourDigits(x) + ":"
			} else {
				text += ","
			}
			texts[x] = text + " " + cmp.Or(l.Name, c.Y, "y") + " " + fourDigits(l.Y[i])
		}
	}
	across := func(x float64) float64 { return f.at(f.ax.position(x), f.y.low).x }
	places := slices.SortedFunc(maps.Keys(texts), func(a, b float64) int { return cmp.Compare(across(a), across(b)) })
	for i, x := range places {
		from, to := f.rectangle.x, f.rectangle.x+f.w
		if i > 0 {
			from = (across(places[i-1]) + across(x)) / 2
		}
		if i+1 < len(places) {
			to = (across(x) + across(places[i+1])) / 2
		}
		s.strips = append(s.strips, strip{rectangle{from, f.rectangle.y, to - from, f.h}, strconv.FormatFloat(x, 'g', -1, 64), texts[x]})
	}
}

// xAxis draws the x axis with as many labels as fit.
func (s *sheet) xAxis(c Chart, f frame) {
	values, texts := f.ax.ticks(f.x, int(max(2, f.w/60)))
	if c.Ticks != nil {
		values, texts = nil, nil
		for _, v := range c.Ticks {
			if at := f.ax.position(v); at >= f.x.low && at <= f.x.high {
				values = append(values, at)
				texts = append(texts, plain(v))
			}
		}
	}
	bottom := f.rectangle.y + f.h
	axis := shape{tint: axisTint, width: 1, paths: [][]point{{{f.rectangle.x, bottom}, {f.rectangle.x + f.w, bottom}}}}
	var taken []span
	for i, v := range values {
		at := f.at(v, f.y.low).x
		axis.paths = append(axis.paths, []point{{at, bottom}, {at, bottom + 4}})
		half := textWidth(texts[i], tickSize)/2 + 3
		at = min(at, s.width-half) // at the end of the axis
		room := span{at - half, at + half}
		meets := func(t span) bool { return room.high >= t.low && t.high >= room.low }
		if !slices.ContainsFunc(taken, meets) {
			taken = append(taken, room)
			s.write(caption{text: texts[i], x: at, y: bottom + 6 + tickSize, size: tickSize, anchor: middle, grey: true})
		}
	}
	s.shapes = append(s.shapes, axis)
}

// draw adds bands, levels and lines.
func (s *sheet) draw(c Chart, f frame) {
	for _, b := range c.Bands {
		s.shapes = append(s.shapes, shape{paths: f.area(b), filled: true, tint: lineTint(b.color()), opacity: bandOpacity})
	}
	for _, l := range c.Levels {
		if at := f.ay.position(l.Y); at >= f.y.low && at <= f.y.high {
			y := f.at(f.x.low, at).y
			s.shapes = append(s.shapes, level([]point{{f.rectangle.x, y}, {f.rectangle.x + f.w, y}}))
		}
	}
	for i, l := range c.Lines {
		color := c.color(i)
		if !l.Points {
			s.shapes = append(s.shapes, stroke(l, color, f.clipped(f.runs(l.X, l.Y), false)))
		}
		bars := shape{tint: lineTint(color), width: 1.1}
		var marks []shape
		for j := range l.X {
			if !f.shows(l.X[j], l.Y[j]) {
				continue
			}
			at := f.point(l.X[j], l.Y[j])
			if l.Low != nil && finite(l.Low[j]) && finite(l.High[j]) {
				low, high := f.bar(l.X[j], l.Low[j]), f.bar(l.X[j], l.High[j])
				bars.paths = append(bars.paths, []point{{at.x, low}, {at.x, high}},
					[]point{{at.x - 3, low}, {at.x + 3, low}}, []point{{at.x - 3, high}, {at.x + 3, high}})
			}
			if l.Markers || l.Points {
				mark := marker(color, at)
				mark.title = pointTitle(c, l, j)
				marks = append(marks, mark)
			}
		}
		if bars.paths != nil {
			s.shapes = append(s.shapes, bars)
		}
		s.shapes = append(s.shapes, marks...)
	}
}

// bar returns the height of an end of an error bar, limited to the plot area.
func (f frame) bar(x, y float64) float64 {
	at := f.ay.position(y)
	if at != at { // not on a logarithmic axis
		at = f.y.low
	}
	return f.at(f.ax.position(x), min(max(at, f.y.low), f.y.high)).y
}

// pointTitle describes a point in words.
func pointTitle(c Chart, l Line, j int) string {
	text := fmt.Sprintf("%s: %s %s, %s %s", l.Name, fourDigits(l.X[j]), cmp.Or(c.X, "x"), cmp.Or(c.Y, "y"), fourDigits(l.Y[j]))
	if l.Low != nil && finite(l.Low[j]) && finite(l.High[j]) {
		text += fmt.Sprintf(" (%.4g to %.4g)", l.Low[j], l.High[j])
	}
	return text
}

// fourDigits writes a number with four significant digits, or as a whole number if it is large.
func fourDigits(v float64) string {
	if size := math.Abs(v); size >= 1e4 && size < 1e9 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// runs returns the pieces of a line between points that are not numbers.
func (f frame) runs(x, y []float64) (runs [][]point) {
	open := false
	for i := range x {
		if px, py := f.ax.position(x[i]), f.ay.position(y[i]); px != px || py != py {
			open = false
			continue
		}
		if !open {
			runs = append(runs, nil)
			open = true
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], f.point(x[i], y[i]))
	}
	return runs
}

// clipped returns the pieces of lines, or of the outlines of areas, that are in the plot area.
func (f frame) clipped(lines [][]point, closed bool) (pieces [][]point) {
	if !f.cut() {
		return lines
	}
	for _, line := range lines {
		pieces = append(pieces, clip(line, closed, f.inside())...)
	}
	return pieces
}

// area returns the outlines of a band, one for each piece between points that are not numbers.
func (f frame) area(b Band) [][]point {
	high := make([]float64, len(b.X)) // NaN if either end is not a number
	low := make([]float64, len(b.X))
	for i := range b.X {
		high[i], low[i] = b.High[i], b.Low[i]
		if math.IsNaN(f.ay.position(low[i])) || math.IsNaN(f.ay.position(high[i])) {
			high[i], low[i] = math.NaN(), math.NaN()
		}
	}
	areas, below := f.runs(b.X, high), f.runs(b.X, low)
	for i := range areas {
		for j := len(below[i]) - 1; j >= 0; j-- {
			areas[i] = append(areas[i], below[i][j])
		}
	}
	return f.clipped(areas, true)
}

// legend adds a sample and the name of each line, band and level in rows below y. It returns
// the y where the legend ends.
func (s *sheet) legend(c Chart, y float64) float64 {
	x := edge
	first := true
	entry := func(name string, sample func(a, b point) []shape) {
		if name == "" {
			return
		}
		name = fit(name, nameSize, s.width-2*edge-sampleSize-6)
		room := sampleSize + 6 + textWidth(name, nameSize)
		if first {
			y += 14
			first = false
		} else if x+room > s.width-edge {
			x, y = edge, y+17
		}
		s.shapes = append(s.shapes, sample(point{x, y - 4}, point{x + sampleSize, y - 4})...)
		s.write(caption{text: name, x: x + sampleSize + 6, y: y, size: nameSize})
		x += room + 16
	}
	for i, l := range c.Lines {
		entry(l.Name, func(a, b point) (list []shape) {
			if !l.Points {
				list = append(list, stroke(l, c.color(i), [][]point{{a, b}}))
			}
			if l.Markers || l.Points {
				list = append(list, marker(c.color(i), point{(a.x + b.x) / 2, a.y}))
			}
			return list
		})
	}
	for _, band := range c.Bands {
		entry(band.Name, func(a, b point) []shape {
			box := []point{{a.x, a.y - 5}, {b.x, a.y - 5}, {b.x, a.y + 5}, {a.x, a.y + 5}}
			return []shape{{paths: [][]point{box}, filled: true, tint: lineTint(band.color()), opacity: bandOpacity}}
		})
	}
	for _, l := range c.Levels {
		if !finite(l.Y) {
			continue
		}
		entry(l.Name, func(a, b point) []shape { return []shape{level([]point{a, b})} })
	}
	return y
}
