package viz

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"strings"
)

// tint is a colour for white and one for a dark page. class is its CSS class, which the style of the page refers to.
type tint struct {
	class       string
	light, dark color.RGBA
}

// on returns the colour for a ground.
func (t tint) on(g Ground) color.RGBA {
	switch g {
	case OnLight:
		return t.light
	case OnDark:
		return t.dark
	}
	_, a, b := oklab(t.light)
	return inGamut(0.6, math.Hypot(a, b), math.Atan2(b, a))
}

// The colours of lines were found by a search: all colours of a set are far from each other in Oklab, also for people
// with each kind of colour blindness, and each has a contrast of at least 3 to the ground. TestLineColors checks this.
var lineTints = [paletteSize + 1]tint{
	{"c0", rgb(0x7d828c), rgb(0x8f96a3)}, // grey
	{"c1", rgb(0x3837b2), rgb(0x4e83f3)}, // blue
	{"c2", rgb(0xe75c15), rgb(0xfa9527)}, // orange
	{"c3", rgb(0x83015c), rgb(0xb05492)}, // plum
	{"c4", rgb(0x0da195), rgb(0x06d3ba)}, // teal
	{"c5", rgb(0x1172a2), rgb(0xaae9ff)}, // steel
	{"c6", rgb(0x8c5757), rgb(0xe1573d)}, // brown, red
	{"c7", rgb(0x463801), rgb(0xfed87d)}, // olive, yellow
	{"c8", rgb(0x9868ea), rgb(0xaea2fe)}, // violet
}

var (
	paperTint = tint{"paper", rgb(0xffffff), rgb(0x181b23)}
	gridTint  = tint{"grid", rgb(0xe6e8ec), rgb(0x2b303b)}
	axisTint  = tint{"axis", rgb(0x9aa0aa), rgb(0x6b7280)}
	levelTint = tint{"level", rgb(0x333333), rgb(0xc9cfda)}
	inkTint   = tint{"ink", rgb(0x000000), rgb(0xe3e6ec)} // of texts
	greyTint  = tint{"grey", rgb(0x555555), rgb(0xa3abba)}
)

func rgb(v uint32) color.RGBA { return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff} }

func lineTint(color int) tint { return lineTints[max(color, 0)] } // the entry of Grey is at 0

func (b Band) color() int { return cmp.Or(b.Color, Grey) }

const bandOpacity = 0.22

// DarkCharts returns a style sheet with the colours of Inline charts on a dark ground. Put it
// inside a condition such as
//
//	@media screen and (prefers-color-scheme: dark)
//
// Where the condition is false, charts keep the colours that are in the pictures.
func DarkCharts() string {
	var b strings.Builder
	for _, t := range append(lineTints[:], paperTint, gridTint, axisTint, levelTint) {
		fmt.Fprintf(&b, ".chart .%s{color:%s}", t.class, hex(t.dark))
	}
	return b.String() + darkText("chart")
}

// darkText returns rules for the texts of pictures of a class on a dark ground: first black texts, then grey ones.
func darkText(class string) string {
	return fmt.Sprintf(".%[1]s text{fill:%[2]s}.%[1]s text[fill]{fill:%[3]s}", class, hex(inkTint.dark), hex(greyTint.dark))
}

// stroke returns the pieces of a line as a shape.
func stroke(l Line, color int, runs [][]point) shape {
	s := shape{paths: runs, tint: lineTint(color), width: lineWidth}
	if l.Dashed {
		s.dash, s.width = []float64{5, 4}, 1.4
	}
	return s
}

func level(line []point) shape {
	return shape{paths: [][]point{line}, tint: levelTint, width: 1.2, dash: []float64{1.5, 3}}
}

// marker returns the shape that marks a point in a colour.
func marker(color int, at point) shape {
	outline := markers[max(color, 0)]
	path := make([]point, len(outline))
	for i, p := range outline {
		path[i] = point{at.x + markerSize*p.x, at.y + markerSize*p.y}
	}
	return shape{paths: [][]point{path}, filled: true, tint: lineTint(color)}
}

// markers has outlines with about the area of a circle of radius 1.
var markers = [paletteSize + 1][]point{
	polygon(12, 0, 0.8, 0),     // a small dot
	polygon(16, 0, 1, 0),       // a dot
	polygon(4, 0.5, 1.25, 0),   // a square
	polygon(3, 0, 1.35, 0),     // a triangle
	polygon(4, 0, 1.35, 0),     // a diamond
	polygon(3, 0.5, 1.35, 0),   // a triangle that points down
	polygon(4, 0.5, 1.6, 0.55), // a diagonal cross
	polygon(4, 0, 1.6, 0.55),   // a cross
	polygon(5, 0, 1.5, 0.7),    // a star
}

// polygon returns the corners of a polygon with n sides. turn rotates it, as a fraction of the
// angle between two corners. inner, if not 0, is the radius of extra corners halfway between.
func polygon(n int, turn, radius, inner float64) (list []point) {
	for i := range n {
		corner := func(at, radius float64) {
			sin, cos := math.Sincos(2 * math.Pi * at / float64(n))
			list = append(list, point{radius * sin, -radius * cos})
		}
		corner(float64(i)+turn, radius)
		if inner != 0 {
			corner(float64(i)+turn+0.5, inner)
		}
	}
	return list
}
