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
	return writeSVG(w, m)
}

// PNG draws the picture of SVG in pixels, so many for each pixel of CSS.
//
// Errors: those of Chart.PNG, and no charts.
func (m Multiples) PNG(w io.Writer, scale float64) error {
	return writePNG(w, m, scale)
}

// layout puts the sheets of the charts beside and below each other.
func (m Multiples) layout() (*sheet, error) {
	if len(m.Charts) == 0 {
		return (Chart{}).layout() // the same error
	}
	columns := m.Columns
	if columns <= 0 {
		columns = sideBySide(len(m.Charts))
	}
	all := &sheet{title: m.Charts[0].Title, inline: m.Charts[0].Inline}
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
		all.add(s, x, y)
		x += s.width
		all.width = max(all.width, x)
		bottom = max(bottom, y+s.height)
	}
	all.height = bottom
	return all, nil
}

// add puts what is on another sheet at a place.
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

// moved returns a path at another place.
func moved(path []point, x, y float64) []point {
	list := make([]point, len(path))
	for i, p := range path {
		list[i] = point{p.x + x, p.y + y}
	}
	return list
}
