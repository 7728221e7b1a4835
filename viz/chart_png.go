package viz

import (
	"image"
	"image/color"
	"math"

	"golang.org/x/image/vector"
)

// shape draws areas and lines with antialiasing. A line is filled as the area that a round
// pen covers: a box for each piece and a disc at each point.
func (c *canvas) shape(s shape) {
	var areas [][]point
	add := func(area []point) { areas = append(areas, area) }
	for _, path := range s.paths {
		switch {
		case s.filled:
			add(path)
		case s.dash != nil:
			for _, piece := range dashes(path, s.dash) {
				trace(piece, s.width, false, add)
			}
		default:
			trace(path, s.width, true, add)
		}
	}
	tint := s.tint.on(c.on)
	ink := color.NRGBA{tint.R, tint.G, tint.B, 0xff}
	if s.opacity != 0 {
		ink.A = uint8(math.Round(255 * s.opacity))
	}
	c.ink(areas, ink)
}

// ink fills areas together, so that overlaps are painted once.
func (c *canvas) ink(areas [][]point, ink color.Color) {
	x, y := newSpan(), newSpan()
	for _, area := range areas {
		for _, p := range area {
			x.add(p.x * c.scale)
			y.add(p.y * c.scale)
		}
	}
	if x.empty() {
		return
	}
	box := image.Rect(int(x.low), int(y.low), int(x.high)+1, int(y.high)+1).Intersect(c.img.Rect)
	fill := vector.NewRasterizer(box.Dx(), box.Dy())
	for _, area := range areas {
		// Make all outlines turn in the same direction: overlapping outlines with opposite directions would cancel.
		turn := 0.
		for i, p := range area {
			q := area[(i+1)%len(area)]
			turn += p.x*q.y - q.x*p.y
		}
		for i := range area {
			p := area[i]
			if turn < 0 {
				p = area[len(area)-1-i]
			}
			x, y := float32(p.x*c.scale)-float32(box.Min.X), float32(p.y*c.scale)-float32(box.Min.Y)
			if i == 0 {
				fill.MoveTo(x, y)
			} else {
				fill.LineTo(x, y)
			}
		}
		fill.ClosePath()
	}
	fill.Draw(c.img, box, image.NewUniform(ink), image.Point{})
}

// trace calls add with the areas that a line covers.
func trace(path []point, width float64, round bool, add func([]point)) {
	half := width / 2
	for i, p := range path {
		if round {
			add(moved(polygon(12, 0, half, 0), p.x, p.y))
		}
		if i == 0 {
			continue
		}
		from := path[i-1]
		dx, dy := p.x-from.x, p.y-from.y
		length := math.Hypot(dx, dy)
		if length == 0 {
			continue
		}
		dx, dy = dx/length*half, dy/length*half
		add([]point{{from.x + dy, from.y - dx}, {p.x + dy, p.y - dx}, {p.x - dy, p.y + dx}, {from.x - dy, from.y + dx}})
	}
}

// dashes cuts a line into dashes, as SVG does.
func dashes(path []point, dash []float64) (pieces [][]point) {
	on, left := 0, dash[0] // index in the pattern, and the rest of that dash or gap
	piece := []point{path[0]}
	for i := 1; i < len(path); i++ {
		from, to := path[i-1], path[i]
		length := math.Hypot(to.x-from.x, to.y-from.y)
		for done := 0.; done < length; {
			n := min(left, length-done)
			done, left = done+n, left-n
			at := point{from.x + (to.x-from.x)*done/length, from.y + (to.y-from.y)*done/length}
			piece = append(piece, at)
			if left > 0 {
				continue
			}
			if on == 0 {
				pieces = append(pieces, piece)
			}
			on = (on + 1) % len(dash)
			left = dash[on]
			piece = []point{at}
		}
	}
	if on == 0 {
		pieces = append(pieces, piece)
	}
	return pieces
}
