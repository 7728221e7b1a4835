package viz

import (
	"io"
)

// Multiples is several charts in one picture, for comparison: give them the same
// axes (Axis), or each chooses its own. Charts below each other begin at the same x.
type Multiples struct {
	Charts  []Chart
	Columns int // side by side; 0 chooses
}

// SVG draws the charts as one vector picture.
//
// Errors: those of Chart, and no charts.
func (m Multiples) SVG(w io.Writer) error {
	s, err := m.layout()
	if err != nil {
		return err
	}
	return s.writeSVG(w)
}

// PNG draws the picture of SVG in pixels, so many for each pixel of CSS.
//
// Errors: those of Chart.PNG, and no charts.
func (m Multiples) PNG(w io.Writer, scale float64) error {
	s, err := m.layout()
	if err != nil {
		return err
	}
	return s.writePNG(w, scale)
}

// layout puts the sheets of the charts beside and below each other.
func (m Multiples) layout() (*chartSheet, error) {
	if len(m.Charts) == 0 {
		return (Chart{}).layout() // the same error
	}
	columns := m.Columns
	if columns <= 0 {
		columns = sideBySide(len(m.Charts))
	}
	all := &chartSheet{title: m.Charts[0].Title, inline: m.Charts[0].Inline}
	margins := make([]float64, columns) // of the charts below each other
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
		for _, p := range s.shapes {
			for j, path := range p.paths {
				moved := make([]point, len(path))
				for k, at := range path {
					moved[k] = point{at.x + x, at.y + y}
				}
				p.paths[j] = moved
			}
			all.shapes = append(all.shapes, p)
		}
		for _, t := range s.texts {
			t.x, t.y = t.x+x, t.y+y
			all.texts = append(all.texts, t)
		}
		for _, t := range s.strips {
			t.rectangle.x, t.y = t.rectangle.x+x, t.y+y
			all.strips = append(all.strips, t)
		}
		x += s.width
		all.width = max(all.width, x)
		bottom = max(bottom, y+s.height)
	}
	all.height = bottom
	return all, nil
}
