package viz

import (
	"io"
)

// Multiples shows several charts in one picture. To make them comparable, give them the same axes (Axis): otherwise
// each chooses its own. The plot areas of charts below each other are aligned at the left.
type Multiples struct {
	Charts  []Chart
	Columns int // side by side; 0 chooses
}

// SVG draws the charts as one vector picture.
//
// Errors: as for Chart, and no charts.
func (m Multiples) SVG(w io.Writer) error {
	return writeSVG(w, m)
}

// PNG draws the same picture as SVG, with scale pixels for each CSS pixel.
//
// Errors: as for Chart.PNG, and no charts.
func (m Multiples) PNG(w io.Writer, scale float64) error {
	return writePNG(w, m, scale)
}

// layout arranges the sheets of the charts in a grid.
func (m Multiples) layout() (*sheet, error) {
	if len(m.Charts) == 0 {
		return nil, (Chart{}).check() // the same error
	}
	columns := sideBySide(m.Columns, len(m.Charts))
	all := &sheet{title: m.Charts[0].Title, inline: m.Charts[0].Inline}
	margins := make([]float64, columns) // of each column
	for i, c := range m.Charts {
		if err := c.check(); err != nil {
			return nil, err
		}
		margins[i%columns] = max(margins[i%columns], c.margin())
	}
	x, y, bottom := 0., 0., 0.
	for i, c := range m.Charts {
		if i%columns == 0 {
			x, y = 0, bottom
		}
		s := c.layoutBehind(margins[i%columns])
		all.add(s, x, y)
		x += s.width
		all.width = max(all.width, x)
		bottom = max(bottom, y+s.height)
	}
	all.height = bottom
	return all, nil
}

// add copies the content of another sheet to a position.
func (s *sheet) add(o *sheet, x, y float64) {
	for _, p := range o.shapes {
		for i, path := range p.paths {
			p.paths[i] = moved(path, x, y)
		}
		s.shapes = append(s.shapes, p)
	}
	for _, t := range o.texts {
		t.x, t.y = t.x+x, t.y+y
		s.texts = append(s.texts, t)
	}
	for _, t := range o.strips {
		t.rectangle.x, t.y = t.rectangle.x+x, t.y+y
		s.strips = append(s.strips, t)
	}
}

// moved returns a path translated by x, y.
func moved(path []point, x, y float64) []point {
	list := make([]point, len(path))
	for i, p := range path {
		list[i] = point{p.x + x, p.y + y}
	}
	return list
}
