package viz

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/attn-go/attn/internal/cells"
)

// Chart is a plot of numbers against other numbers: lines, single points, and bands behind
// them. Like a Figure it is a plain value with a method for each output format:
//
//	c := viz.Chart{Title: "Quality as heads are removed", X: "heads left", Y: "BLEU", Falling: true,
//		Lines:  []viz.Line{{Name: "gradient", X: left, Y: bleu, Markers: true}},
//		Levels: []viz.Level{{Name: "whole model", Y: 44.1}},
//	}
//	err := c.SVG(file)
//
// A point that is not a finite number interrupts its line; a number beyond ±1e300 does not count as finite. Lines also
// differ by their markers and dashes, so that readers can tell them apart without colour.
//
// Errors: the methods reject a chart without lines, a line without points, and slices of
// different lengths before they write anything.
type Chart struct {
	Title   string
	X, Y    string  // what the axes measure
	Lines   []Line  // later lines are in front
	Bands   []Band  // behind the lines
	Levels  []Level // for comparison
	XAxis   Axis
	YAxis   Axis
	Ticks   []float64 // positions of the x labels; nil chooses them, an empty slice omits them
	Falling bool      // x falls from left to right
	Bare    bool      // without a legend
	Hover   bool      // SVG shows the numbers of the lines under the pointer
	Inline  bool      // SVG omits its style element, for a page whose style sheet contains DarkCharts
	Width   float64   // of the picture, in CSS pixels; 0 is 560
	Height  float64   // of the plot area; 0 is 260
}

// Line is a series of points. Low and High, if not nil, are the ends of an error bar at each point.
type Line struct {
	Name      string
	X, Y      []float64
	Low, High []float64
	Color     int  // 1 to 8, or Grey; 0 is the line's index in Lines, plus 1
	Dashed    bool // for example for the counterpart of another line with the same colour
	Markers   bool // points are marked; each colour has its own shape
	Points    bool // only markers and no line, for measurements
}

// Band is the area between two lines.
type Band struct {
	Name         string
	X, Low, High []float64
	Color        int // as in Line; 0 is Grey
}

// Level is a horizontal line.
type Level struct {
	Name string
	Y    float64
}

// Grey is the colour of a line to compare others with.
const Grey = -1

// SVG draws the chart as a vector picture: on white, or on a dark ground in a browser that
// prefers dark pages. Text stays text.
func (c Chart) SVG(w io.Writer) error {
	return writeSVG(w, c)
}

// PNG draws the same picture as SVG, with scale pixels for each CSS pixel, like Figure.PNG.
//
// Errors: as for Chart, and a picture of more than 64 Mi pixels.
func (c Chart) PNG(w io.Writer, scale float64) error {
	return writePNG(w, c, scale)
}

// Limits of the numbers and sizes that can be drawn.
const (
	mostNumber              = 1e300 // twice this number is still finite
	leastWidth, leastHeight = 160., 60.
	mostSide                = 10000.
	usualWidth, usualHeight = 560., 260.
	paletteSize             = 8
)

func finite(v float64) bool { return math.Abs(v) <= mostNumber }

// check rejects charts that cannot be drawn.
func (c Chart) check() error {
	if len(c.Lines) == 0 {
		return errors.New("viz: a chart without lines")
	}
	if err := cmp.Or(c.XAxis.check("x"), c.YAxis.check("y")); err != nil {
		return err
	}
	for i, l := range c.Lines {
		name := titled("line", i, l.Name)
		switch {
		case len(l.X) == 0:
			return fmt.Errorf("viz: %s has no points", name)
		case len(l.Y) != len(l.X):
			return fmt.Errorf("viz: %s has %d x and %d y, want equal numbers", name, len(l.X), len(l.Y))
		case (l.Low != nil || l.High != nil) && (len(l.Low) != len(l.X) || len(l.High) != len(l.X)):
			return fmt.Errorf("viz: %s has %d points with error bars from %d to %d numbers, want equal numbers", name, len(l.X), len(l.Low), len(l.High))
		}
		if err := checkColor(l.Color, name); err != nil {
			return err
		}
	}
	for i, b := range c.Bands {
		name := titled("band", i, b.Name)
		if len(b.Low) != len(b.X) || len(b.High) != len(b.X) {
			return fmt.Errorf("viz: %s has %d x, %d low and %d high, want equal numbers", name, len(b.X), len(b.Low), len(b.High))
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
	return fmt.Sprintf("%s %d (%s)", what, i, cells.Label(name, 40))
}

func checkColor(color int, name string) error {
	if color != Grey && (color < 0 || color > paletteSize) {
		return fmt.Errorf("viz: %s has colour %d, want 0 to %d, or Grey", name, color, paletteSize)
	}
	return nil
}

func (c Chart) size() (width, height float64) {
	return cmp.Or(c.Width, usualWidth), cmp.Or(c.Height, usualHeight)
}

// color returns the colour of line i.
func (c Chart) color(i int) int { return cmp.Or(c.Lines[i].Color, i%paletteSize+1) }

// spans returns the ranges of the numbers on both axes, in axis coordinates. Points outside
// the limits of the x axis do not count for y.
func (c Chart) spans() (x, y span) {
	x, y = newSpan(), newSpan()
	add := func(at float64, values ...float64) {
		px := c.XAxis.position(at)
		if px != px || c.XAxis.limited() && (at < c.XAxis.Low || at > c.XAxis.High) {
			return
		}
		for _, v := range values {
			if py := c.YAxis.position(v); py == py {
				x.add(px)
				y.add(py)
			}
		}
	}
	for _, l := range c.Lines {
		for i := range l.X {
			if math.IsNaN(c.YAxis.position(l.Y[i])) {
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
		if at := c.YAxis.position(l.Y); at == at {
			y.add(at)
		}
	}
	return x, y
}
