package viz

import (
	"bytes"
	"fmt"
	"image/png"
	"io"
)

func (s *chartSheet) writeSVG(w io.Writer) error {
	_, err := w.Write(s.svg())
	return err
}

func (s *chartSheet) writePNG(w io.Writer, scale float64) error {
	img, err := newCanvas(s.width, s.height, scale)
	if err != nil {
		return err
	}
	for _, p := range s.shapes {
		img.shape(p)
	}
	for _, t := range s.texts {
		img.text(t)
	}
	return png.Encode(w, img.img)
}

// svg writes the sheet. Colours are attributes, which give way to the style of a
// page, if it has one; there are no ids, so that a page may hold many pictures.
func (s *chartSheet) svg() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" font-family="%[3]s" role="img">`+"\n",
		number(s.width), number(s.height), families)
	if s.title != "" {
		fmt.Fprintf(&b, "<title>%s</title>\n", escape(visible(s.title)))
	}
	if !s.inline {
		b.WriteString(inTheDark(DarkCharts()))
	}
	fmt.Fprintf(&b, `<path class="paper" color="%s" fill="currentColor" d="M0 0%s"/>`+"\n", hex(paperTint.light), outline(s.width, s.height))
	for _, p := range s.shapes {
		svgShape(&b, p)
	}
	for _, c := range s.texts {
		svgText(&b, c)
	}
	if s.strips != nil {
		b.WriteString(`<g class="strips" fill-opacity="0">` + "\n")
		for _, t := range s.strips {
			fmt.Fprintf(&b, `<path data-x="%s" d="M%s %s%s"><title>%s</title></path>`+"\n", t.x, number(t.rectangle.x), number(t.y), outline(t.w, t.h), escape(visible(t.text)))
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func svgShape(b *bytes.Buffer, p shape) {
	if len(p.paths) == 0 {
		return
	}
	fmt.Fprintf(b, `<path class="%s" color="%s"`, p.tint.class, hex(p.tint.light))
	if p.filled {
		b.WriteString(` fill="currentColor"`)
	} else {
		fmt.Fprintf(b, ` fill="none" stroke="currentColor" stroke-width="%s" stroke-linejoin="round" stroke-linecap="%s"`, number(p.width), p.cap())
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
			b.WriteString("h0") // a dot, by the round ends
		}
	}
	if p.title == "" {
		b.WriteString("\"/>\n")
		return
	}
	fmt.Fprintf(b, "\"><title>%s</title></path>\n", escape(visible(p.title)))
}

// cap returns how lines end: dashes keep their lengths.
func (p shape) cap() string {
	if p.dash != nil {
		return "butt"
	}
	return "round"
}
