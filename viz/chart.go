package viz

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// Chart is a picture of numbers that depend on another: lines, single points, and
// bands behind them. Like a Figure it is a value that every output is made of:
//
//	c := viz.Chart{Title: "What is left", X: "heads left", Y: "BLEU", Falling: true,
//		Lines:  []viz.Line{{Name: "gradient", X: left, Y: bleu, Markers: true}},
//		Levels: []viz.Level{{Name: "whole model", Y: 44.1}},
//	}
//	err := c.SVG(file)
//
// A point that is not a finite number interrupts its line; beyond ±1e300 nothing
// counts as finite. Lines differ by their markers and dashes too, so that who
// cannot tell the colours apart, or prints without them, can tell the lines apart.
//
// Errors: a chart without lines, a line without points, and numbers that are not
// as many as they should be are refused before anything is written.
type Chart struct {
	Title   string
	X, Y    string  // what the axes measure
	Lines   []Line  // the last one is in front of the others
	Bands   []Band  // behind the lines
	Levels  []Level // to compare with
	XAxis   Axis
	YAxis   Axis
	Ticks   []float64 // where x is written; nil chooses, with an empty list another chart has the axis
	Falling bool      // x falls from left to right
	Bare    bool      // without a legend
	Hover   bool      // SVG tells the numbers of lines where a pointer rests
	Inline  bool      // SVG is for a page that holds it and DarkCharts: it has no style of its own
	Width   float64   // of the picture, in pixels of CSS; 0 is 560
	Height  float64   // of the area that lines take; 0 is 260
}

// Line is a row of points. Low and High, if they are not nil, are the ends of
// an error bar at each point.
type Line struct {
	Name      string
	X, Y      []float64
	Low, High []float64
	Color     int  // 1 to 8, or Grey; 0 is the line's place among the lines
	Dashed    bool // as is fit for a counterpart of another line with its colour
	Markers   bool // the points are marked, each colour's in its own shape
	Points    bool // nothing but the marks of points, as measurements are
}

// Band is the area between two lines.
type Band struct {
	Name         string
	X, Low, High []float64
	Color        int // as of a line; 0 is Grey
}

// Level is a horizontal line.
type Level struct {
	Name string
	Y    float64
}

// Grey is the colour of what others are compared with.
const Grey = -1

// SVG draws the chart as a vector picture: on white, and in a browser that prefers dark
// pages on a dark ground. Text stays text.
func (c Chart) SVG(w io.Writer) error {
	return writeSVG(w, c)
}

// PNG draws the picture of SVG in pixels, so many for each pixel of CSS, as
// Figure's does.
//
// Errors: those of Chart, and a picture of more than 64 Mi pixels.
func (c Chart) PNG(w io.Writer, scale float64) error {
	return writePNG(w, c, scale)
}

// Limits of numbers that are drawn, and of sizes.
const (
	mostNumber              = 1e300 // twice that is finite still
	leastWidth, leastHeight = 160., 60.
	mostSide                = 10000.
	usualWidth, usualHeight = 560., 260.
	paletteSize             = 8
)

func finite(v float64) bool { return math.Abs(v) <= mostNumber }

// check refuses charts that cannot be drawn.
func (c Chart) check() error {
	if len(c.Lines) == 0 {
		return errors.New("viz: a chart without lines")
	}
	if err := errors.Join(c.XAxis.check("x"), c.YAxis.check("y")); err != nil {
		return err
	}
	for i, l := range c.Lines {
		name := titled("line", i, l.Name)
		switch {
		case len(l.X) == 0:
			return fmt.Errorf("viz: %s has no points", name)
		case len(l.Y) != len(l.X):
			return fmt.Errorf("viz: %s has %d x and %d y, want as many", name, len(l.X), len(l.Y))
		case (l.Low != nil || l.High != nil) && (len(l.Low) != len(l.X) || len(l.High) != len(l.X)):
			return fmt.Errorf("viz: %s has %d points with error bars from %d to %d numbers, want as many", name, len(l.X), len(l.Low), len(l.High))
		}
		if err := checkColor(l.Color, name); err != nil {
			return err
		}
	}
	for i, b := range c.Bands {
		name := titled("band", i, b.Name)
		if len(b.Low) != len(b.X) || len(b.High) != len(b.X) {
			return fmt.Errorf("viz: %s has %d x, %d low and %d high, want as many", name, len(b.X), len(b.Low), len(b.High))
		}
		if err := checkColor(b.Color, name); err != nil {
			return err
		}
	}
	w, h := c.size()
	if !(w >= leastWidth && h >= leastHeight && w <= mostSide && h <= mostSide) {
		return fmt.Errorf("viz: a chart of %g×%g pixels, want at least %g×%g and at most %g", w, h, leastWidth, leastHeight, mostSide)
	}
	return nil
}

func titled(what string, i int, name string) string {
	if name == "" {
		return fmt.Sprintf("%s %d", what, i)
	}
	return fmt.Sprintf("%s %d (%s)", what, i, label(name, 40))
}

func checkColor(color int, name string) error {
	if color != Grey && (color < 0 || color > paletteSize) {
		return fmt.Errorf("viz: %s has colour %d, want at most %d", name, color, paletteSize)
	}
	return nil
}

func (c Chart) size() (width, height float64) {
	width, height = c.Width, c.Height
	if width == 0 {
		width = usualWidth
	}
	if height == 0 {
		height = usualHeight
	}
	return width, height
}

// color returns the colour of line i.
func (c Chart) color(i int) int {
	if chosen := c.Lines[i].Color; chosen != 0 {
		return chosen
	}
	return i%paletteSize + 1
}

// spans returns what the places of the numbers span, x and y. What a given end of
// the x axis cuts off has no say in y.
func (c Chart) spans() (x, y span) {
	x, y = newSpan(), newSpan()
	add := func(at float64, values ...float64) {
		px := c.XAxis.place(at)
		if px != px || c.XAxis.limited() && (at < c.XAxis.Low || at > c.XAxis.High) {
			return
		}
		for _, v := range values {
			if py := c.YAxis.place(v); py == py {
				x.add(px)
				y.add(py)
			}
		}
	}
	for _, l := range c.Lines {
		for i := range l.X {
			if math.IsNaN(c.YAxis.place(l.Y[i])) {
				continue
			}
			add(l.X[i], l.Y[i])
			if l.Low != nil && finite(l.Low[i]) && finite(l.High[i]) {
				add(l.X[i], l.Low[i], l.High[i])
			}
		}
	}
	for _, b := range c.Bands {
		for i := range b.X {
			if finite(b.Low[i]) && finite(b.High[i]) {
				add(b.X[i], b.Low[i], b.High[i])
			}
		}
	}
	for _, l := range c.Levels {
		if at := c.YAxis.place(l.Y); at == at {
			y.add(at)
		}
	}
	return x, y
}
