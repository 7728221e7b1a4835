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
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/cells"
)

// SVG draws the figure as a vector picture: on white, or on a dark ground in a browser that prefers dark pages. To keep
// files small, cells of one colour are one path, and a panel with more cells than a reader could tell apart is an
// embedded image. A large panel is thinned out, and the legend says so. Text stays text.
func (f Figure) SVG(w io.Writer) error {
	return writeSVG(w, f)
}

// drawable is implemented by all types with a layout.
type drawable interface{ layout() (*sheet, error) }

func writeSVG(w io.Writer, d drawable) error {
	s, err := d.layout()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	s.svg(&b, false)
	_, err = w.Write(b.Bytes())
	return err
}

// families lists similar fonts, and fonts for other scripts.
const families = "Helvetica, Arial, 'Liberation Sans', 'Noto Sans', 'Noto Sans CJK SC', 'DejaVu Sans', sans-serif"

// svg writes the sheet. With hover, a cell shows its tokens and weight when the pointer is over it. Colours are
// attributes, so that the style sheet of a page can override them. Charts have no ids, so that a page may contain many.
func (s *sheet) svg(b *bytes.Buffer, hover bool) {
	class := "chart"
	if s.panels != nil {
		class = "map"
	}
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" class="%[1]s" width="%[2]s" height="%[3]s" viewBox="0 0 %[2]s %[3]s" font-family="%[4]s" role="img">`+"\n",
		class, number(s.width), number(s.height), families)
	if s.title != "" {
		fmt.Fprintf(b, "<title>%s</title>\n", escape(cells.Label(s.title, longestTitle)))
	}
	if !s.inline {
		b.WriteString("<style>@media screen and (prefers-color-scheme:dark){" + s.dark() + "}</style>\n")
	}
	paper := fmt.Sprintf(`color="%s" fill="currentColor"`, hex(paperTint.light))
	if s.panels != nil {
		s.svgDefs(b)
		paper = `fill="#fff"`
	}
	fmt.Fprintf(b, `<path class="paper" %s d="M0 0%s"/>`+"\n", paper, outline(s.width, s.height))
	for _, p := range s.panels {
		s.svgPanel(b, p)
	}
	if s.panels != nil {
		s.svgLegend(b)
	}
	for _, p := range s.shapes {
		svgShape(b, p)
	}
	for _, c := range s.texts {
		svgText(b, c)
	}
	if hover {
		for _, p := range s.panels {
			svgHover(b, p, s.hatched)
		}
	}
	if s.strips != nil {
		b.WriteString(`<g class="strips" fill-opacity="0">` + "\n")
		for _, t := range s.strips {
			fmt.Fprintf(b, `<path data-x="%s" d="M%s %s%s"><title>%s</title></path>`+"\n",
				t.x, number(t.rectangle.x), number(t.y), outline(t.w, t.h), escape(cells.Label(t.text, longestTitle)))
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
}

// svgDefs writes the colours of the legend and the hatching.
func (s *sheet) svgDefs(b *bytes.Buffer) {
	b.WriteString("<defs>\n")
	for on, id := range [...]string{OnLight: "weight", OnDark: "weight-dark"} {
		fmt.Fprintf(b, `<linearGradient id="%s">`, id)
		// Viewers interpolate between stops in sRGB; with 33 stops the difference is invisible.
		colors := s.colors(Ground(on))
		for i := range 33 {
			fmt.Fprintf(b, `<stop offset="%s" stop-color="%s"/>`, number(float64(i)/32), hex(colors[max(i*255/32, s.least())]))
		}
		b.WriteString("</linearGradient>\n")
	}
	if s.masked {
		fmt.Fprintf(b, `<pattern id="masked" width="%[1]g" height="%[1]g" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">`+
			`<path class="mask" fill="%[2]s" d="M0 0%[3]s"/><path class="stripe" fill="%[4]s" d="M0 0%[5]s"/></pattern>`+"\n",
			hatching, hex(maskTint.light), outline(hatching, hatching), hex(stripeTint.light), outline(hatching, 1))
	}
	b.WriteString("</defs>\n")
}

// svgLegend draws the colour bar and the swatches beside it.
func (s *sheet) svgLegend(b *bytes.Buffer) {
	swatch := func(class, fill string, r rectangle) {
		fmt.Fprintf(b, `<path class="%s" fill="%s" stroke="#999" stroke-width="0.5" d="M%s %s%s"/>`+"\n", class, fill, number(r.x), number(r.y), outline(r.w, r.h))
	}
	swatch("bar", "url(#weight)", s.bar)
	for _, x := range s.ticks {
		fmt.Fprintf(b, `<path stroke="#999" stroke-width="0.5" d="M%s %sv%s"/>`+"\n", number(x), number(s.bar.y+s.bar.h), number(tickLength))
	}
	if s.masked {
		swatch("veil", "url(#masked)", s.veiled)
	}
	if s.holes {
		swatch(holeTint.class, hex(holeTint.light), s.swatch)
	}
}

// dark returns the style rules for a dark ground. It includes only those shades that the picture has.
func (s *sheet) dark() string {
	if s.panels == nil {
		return DarkCharts()
	}
	var used [256]bool
	for _, p := range s.panels {
		for i := range p.Values {
			if shade := s.shadeOf(p.Panel, i); shade >= 0 && !s.asImage(p) {
				used[shade] = true
			}
		}
	}
	return s.darkShades(used) + darkRest(s.colors(OnDark)[s.paper()])
}

// darkShades returns the rules of the used shades.
func (e extent) darkShades(used [256]bool) string {
	var b strings.Builder
	for shade, c := range e.colors(OnDark) {
		if used[shade] && shade != e.paper() {
			fmt.Fprintf(&b, ".map .%s{fill:%s}", e.class(shade), hex(c))
		}
	}
	return b.String()
}

// darkRest returns all other rules, given the colour of 0.
func darkRest(zero color.RGBA) string {
	var b strings.Builder
	for _, t := range []tint{paperTint, {class: "zero", dark: zero}, holeTint, maskTint, stripeTint} {
		fmt.Fprintf(&b, ".map .%s{fill:%s}", t.class, hex(t.dark))
	}
	b.WriteString(".map .bar{fill:url(#weight-dark)}.map .day{display:none}.map .night{display:inline}")
	return b.String() + darkText("map")
}

// DarkFigures returns a style sheet with the colours of Inline figures on a dark ground. It corresponds to DarkCharts.
func DarkFigures() string {
	used := [256]bool(slices.Repeat([]bool{true}, 256))
	plain, signed := extent{top: 1}, extent{top: 1, signed: true}
	return plain.darkShades(used) + signed.darkShades(used) + darkRest(plain.colors(OnDark)[plain.paper()])
}

// class returns the CSS class of the cells of a shade: d… if the scale is signed, s… if not.
func (e extent) class(shade int) string {
	if e.signed {
		return fmt.Sprint("d", shade)
	}
	return fmt.Sprint("s", shade)
}

// grid returns attributes that make a cell the unit of an element's coordinates.
func grid(p placed) string {
	scale := strconv.FormatFloat(p.cw, 'g', 8, 64)
	if p.ch != p.cw {
		scale += " " + strconv.FormatFloat(p.ch, 'g', 8, 64)
	}
	return fmt.Sprintf(`transform="translate(%s %s) scale(%s)"`, number(p.x), number(p.y), scale)
}

// svgPanel draws the cells and a frame.
func (s *sheet) svgPanel(b *bytes.Buffer, p placed) {
	paths := s.paths(p)
	if s.asImage(p) {
		for on, attributes := range [...]string{OnLight: `class="day"`, OnDark: `class="night" display="none"`} {
			// Viewers that smooth images smooth less if a cell has many pixels.
			img := s.picture(p, max(1, min(8, 1024/max(len(p.Rows), len(p.Columns)))), Ground(on))
			var file bytes.Buffer
			_ = png.Encode(&file, img) // writing to a Buffer cannot fail
			fmt.Fprintf(b, `<image %s x="%s" y="%s" width="%s" height="%s" preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,%s"/>`+"\n",
				attributes, number(p.x), number(p.y), number(p.width()), number(p.height()), base64.StdEncoding.EncodeToString(file.Bytes()))
		}
	} else {
		colors := s.colors(OnLight)
		fmt.Fprintf(b, `<path class="zero" fill="%s" d="M%s %s%s"/>`+"\n", hex(colors[s.paper()]), number(p.x), number(p.y), outline(p.width(), p.height()))
		fmt.Fprintf(b, "<g %s shape-rendering=\"crispEdges\">\n", grid(p))
		for shade := range 256 {
			if d := paths[shade]; d != nil && shade != s.paper() {
				fmt.Fprintf(b, `<path class="%s" fill="%s" d="%s"/>`+"\n", s.class(shade), hex(colors[shade]), d)
			}
		}
		if d := paths[holePath]; d != nil {
			fmt.Fprintf(b, `<path class="hole" fill="%s" d="%s"/>`+"\n", hex(holeTint.light), d)
		}
		b.WriteString("</g>\n")
	}
	if d := paths[veilPath]; d != nil {
		fmt.Fprintf(b, `<path fill="url(#masked)" d="%s"/>`+"\n", d)
	}
	fmt.Fprintf(b, `<path fill="none" stroke="#999" stroke-width="0.5" d="M%s %s%s"/>`+"\n", number(p.x), number(p.y), outline(p.width(), p.height()))
}

// Indices of the outlines of special cells.
const (
	holePath = 256 + iota
	veilPath
)

// paths returns the outlines of the cells of each shade, a piece for each run of cells in a row; in an image only those
// of masked cells. These are in the sheet's coordinates, because their hatching must not be scaled with the cells.
func (s *sheet) paths(p placed) (paths [veilPath + 1][]byte) {
	w, image := len(p.Columns), s.asImage(p)
	if image && p.Masked == nil {
		return paths // there is nothing to outline
	}
	for i := range p.Rows {
		for j, n := 0, 0; j < w; j += n {
			shade := s.shadeOf(p.Panel, i*w+j)
			for n = 1; j+n < w && s.shadeOf(p.Panel, i*w+j+n) == shade; n++ {
			}
			switch {
			case shade == veil:
				at := p.cell(i, j)
				paths[veilPath] = fmt.Appendf(paths[veilPath], "M%s %s%s", number(at.x), number(at.y), outline(float64(n)*p.cw, p.ch))
				continue
			case image:
				continue
			case shade == hole:
				shade = holePath
			}
			paths[shade] = fmt.Appendf(paths[shade], "M%d %dh%dv1h-%dz", j, i, n, n)
		}
	}
	return paths
}

// svgHover adds a transparent cell with a title above each cell of a panel.
func svgHover(b *bytes.Buffer, p placed, hatched string) {
	fmt.Fprintf(b, `<g class="cells" %s>`+"\n", grid(p))
	for i, row := range p.Rows {
		for j, column := range p.Columns {
			value := fmt.Sprintf("%.4g", p.Values[i*len(p.Columns)+j])
			if p.masked(i*len(p.Columns) + j) {
				value = escape(hatched)
			}
			fmt.Fprintf(b, `<path d="M%d %dh1v1h-1z"><title>%s → %s: %s</title></path>`+"\n",
				j, i, escape(cells.Label(row, 80)), escape(cells.Label(column, 80)), value)
		}
	}
	b.WriteString("</g>\n")
}

// svgShape draws lines or areas. It writes nothing for a shape without paths.
func svgShape(b *bytes.Buffer, p shape) {
	if len(p.paths) == 0 {
		return
	}
	fmt.Fprintf(b, `<path class="%s" color="%s"`, p.tint.class, hex(p.tint.light))
	ends := "round"
	if p.dash != nil {
		ends = "butt" // others would change the lengths of dashes
	}
	if p.filled {
		b.WriteString(` fill="currentColor"`)
	} else {
		fmt.Fprintf(b, ` fill="none" stroke="currentColor" stroke-width="%s" stroke-linejoin="round" stroke-linecap="%s"`, number(p.width), ends)
	}
	if p.opacity != 0 {
		fmt.Fprintf(b, ` opacity="%s"`, number(p.opacity))
	}
	for i, d := range p.dash {
		fmt.Fprintf(b, [...]string{` stroke-dasharray="%s`, ` %s"`}[i], number(d))
	}
	b.WriteString(` d="`)
	for _, path := range p.paths {
		for i, at := range path {
			fmt.Fprintf(b, "%c%s %s", "ML"[min(i, 1)], number(at.x), number(at.y))
		}
		switch {
		case p.filled:
			b.WriteByte('z')
		case len(path) == 1:
			b.WriteString("h0") // a dot, drawn by the round ends
		}
	}
	if p.title == "" {
		b.WriteString("\"/>\n")
		return
	}
	fmt.Fprintf(b, "\"><title>%s</title></path>\n", escape(cells.Label(p.title, longestTitle)))
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
	fmt.Fprintf(b, ">%s</text>\n", spaceSigns.ReplaceAllString(escape(c.text), `<tspan fill-opacity="`+number(spaceShade)+`">$0</tspan>`))
}

// spaceSigns are the signs of spaces in tokens. They are heavy in most fonts, so they are drawn lighter.
var spaceSigns = regexp.MustCompile("▁+")

// spaceShade is the opacity of the sign of a space, in SVG and PNG.
const spaceShade = 0.4

// outline returns the path commands for the rest of a box of the given size.
func outline(w, h float64) string {
	return "h" + number(w) + "v" + number(h) + "h" + number(-w) + "z"
}

// number writes a coordinate, to a hundredth of a pixel.
func number(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// escape escapes text for XML and HTML.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // writing to a Builder cannot fail
	return b.String()
}
