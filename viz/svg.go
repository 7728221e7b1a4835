package viz

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"math"
	"strconv"
	"strings"
)

// SVG draws the figure as a vector picture on white, for a paper or a page.
// Cells of one colour are one path, so that files stay small; where there are
// more than a reader could tell apart, a panel is an image within the picture.
// Text stays text. A large panel is thinned out, and the legend says so.
func (f Figure) SVG(w io.Writer) error {
	s, err := f.layout()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := s.svg(&b, false); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// families are fonts that look alike, and those that have other scripts.
const families = "Helvetica, Arial, 'Liberation Sans', 'Noto Sans', 'Noto Sans CJK SC', 'DejaVu Sans', sans-serif"

// svg writes the sheet; with hover, cells show their tokens and weights to a
// pointer that rests on them.
func (s *sheet) svg(b *bytes.Buffer, hover bool) error {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" font-family="%[3]s" role="img">`+"\n",
		number(s.width), number(s.height), families)
	if s.title != "" {
		fmt.Fprintf(b, "<title>%s</title>\n", escape(visible(s.title)))
	}
	b.WriteString("<defs>\n" + `<linearGradient id="weight">`)
	// Between stops a viewer blends in sRGB; with 32 that is not seen.
	colors := s.colors()
	for i := range 33 {
		fmt.Fprintf(b, `<stop offset="%s" stop-color="%s"/>`, number(float64(i)/32), hex(colors[max(i*255/32, s.least())]))
	}
	b.WriteString("</linearGradient>\n")
	if s.holes {
		fmt.Fprintf(b, `<pattern id="hole" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`+
			`<path fill="#fff" d="M0 0h4v4h-4z"/><path fill="%s" d="M0 0h2v4h-2z"/></pattern>`+"\n", hex(holeColor))
	}
	b.WriteString("</defs>\n" + `<path fill="#fff" d="M0 0` + outline(s.width, s.height) + `"/>` + "\n")
	for _, p := range s.panels {
		if err := s.svgPanel(b, p); err != nil {
			return err
		}
	}
	fmt.Fprintf(b, `<path fill="url(#weight)" stroke="#999" stroke-width="0.5" d="M%s %s%s"/>`+"\n", number(s.bar.x), number(s.bar.y), outline(s.bar.w, s.bar.h))
	if s.holes {
		fmt.Fprintf(b, `<path fill="url(#hole)" stroke="#999" stroke-width="0.5" d="M%s %s%s"/>`+"\n", number(s.swatch.x), number(s.swatch.y), outline(s.swatch.w, s.swatch.h))
	}
	for _, c := range s.texts {
		svgText(b, c)
	}
	if hover {
		for _, p := range s.panels {
			svgHover(b, p)
		}
	}
	b.WriteString("</svg>\n")
	return nil
}

// grid makes cells the unit of what it is given to.
func grid(p placed) string {
	scale := strconv.FormatFloat(p.cw, 'g', 8, 64)
	if p.ch != p.cw {
		scale += " " + strconv.FormatFloat(p.ch, 'g', 8, 64)
	}
	return fmt.Sprintf(`transform="translate(%s %s) scale(%s)"`, number(p.x), number(p.y), scale)
}

// svgPanel draws the cells and a frame.
func (s *sheet) svgPanel(b *bytes.Buffer, p placed) error {
	if s.asImage(p) {
		// Viewers that smooth images smooth less if a cell has many pixels.
		img := s.picture(p, max(1, min(8, 1024/max(len(p.Rows), len(p.Columns)))))
		var file bytes.Buffer
		if err := png.Encode(&file, img); err != nil {
			return err
		}
		fmt.Fprintf(b, `<image x="%s" y="%s" width="%s" height="%s" preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,%s"/>`+"\n",
			number(p.x), number(p.y), number(p.width()), number(p.height()), base64.StdEncoding.EncodeToString(file.Bytes()))
	} else {
		fmt.Fprintf(b, "<g %s shape-rendering=\"crispEdges\">\n", grid(p))
		paths, colors := s.paths(p), s.colors()
		for shade := range 256 {
			if d := paths[shade]; d != nil && shade != s.paper() {
				fmt.Fprintf(b, `<path fill="%s" d="%s"/>`+"\n", hex(colors[shade]), d)
			}
		}
		b.WriteString("</g>\n")
		// The hatching must not be magnified with the cells.
		if d := paths[256]; d != nil {
			fmt.Fprintf(b, `<path fill="url(#hole)" d="%s"/>`+"\n", d)
		}
	}
	fmt.Fprintf(b, `<path fill="none" stroke="#999" stroke-width="0.5" d="M%s %s%s"/>`+"\n", number(p.x), number(p.y), outline(p.width(), p.height()))
	return nil
}

// paths returns the outlines of the cells of each shade, runs of them as one.
// Holes are the last, in the sheet's coordinates.
func (s *sheet) paths(p placed) (paths [257][]byte) {
	w := len(p.Columns)
	for i := range p.Rows {
		for j := 0; j < w; {
			shade := s.shade(p.Values[i*w+j])
			n := 1
			for j+n < w && s.shade(p.Values[i*w+j+n]) == shade {
				n++
			}
			if shade == hole {
				at := p.cell(i, j)
				paths[256] = fmt.Appendf(paths[256], "M%s %s%s", number(at.x), number(at.y), outline(float64(n)*p.cw, p.ch))
			} else {
				paths[shade] = fmt.Appendf(paths[shade], "M%d %dh%dv1h-%dz", j, i, n, n)
			}
			j += n
		}
	}
	return paths
}

// svgHover lays a clear cell with a title over each cell of a panel.
func svgHover(b *bytes.Buffer, p placed) {
	fmt.Fprintf(b, `<g class="cells" %s>`+"\n", grid(p))
	for i, row := range p.Rows {
		for j, column := range p.Columns {
			fmt.Fprintf(b, `<path d="M%d %dh1v1h-1z"><title>%s → %s: %.4g</title></path>`+"\n",
				j, i, escape(label(row, 80)), escape(label(column, 80)), p.Values[i*len(p.Columns)+j])
		}
	}
	b.WriteString("</g>\n")
}

// svgText writes a caption.
func svgText(b *bytes.Buffer, c caption) {
	fmt.Fprintf(b, `<text x="%s" y="%s" font-size="%s" xml:space="preserve"`, number(c.x), number(c.y), number(c.size))
	if c.anchor != start {
		fmt.Fprintf(b, ` text-anchor="%s"`, [...]string{"start", "middle", "end"}[c.anchor])
	}
	if c.up {
		fmt.Fprintf(b, ` transform="rotate(-90 %s %s)"`, number(c.x), number(c.y))
	}
	if c.grey {
		b.WriteString(` fill="#555"`)
	}
	if c.bold {
		b.WriteString(` font-weight="bold"`)
	}
	fmt.Fprintf(b, ">%s</text>\n", escape(c.text))
}

// outline is the rest of a path that is a box of that size.
func outline(w, h float64) string {
	return "h" + number(w) + "v" + number(h) + "h" + number(-w) + "z"
}

// number writes a coordinate, to a hundredth of a pixel.
func number(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// escape writes text so that it stays text in XML and in HTML.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return b.String()
}
