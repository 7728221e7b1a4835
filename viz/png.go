package viz

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
)

// mostPixels is the limit on the size of pictures: 256 MiB of memory.
const mostPixels = 64 << 20

// PNG draws the same picture as SVG, with scale pixels for each CSS pixel: 2 is good for
// screens, 3 for print. The Go fonts cover Latin, Greek and Cyrillic letters; other characters
// are drawn with Figure.Fonts, or else as boxes with their numbers.
//
// Errors: as for Figure, and a picture of more than 64 Mi pixels.
func (f Figure) PNG(w io.Writer, scale float64) error {
	return writePNG(w, f, scale)
}

// Image returns the picture that PNG encodes, on a light or a dark ground.
//
// Errors: as for PNG.
func (f Figure) Image(scale float64, on Ground) (*image.RGBA, error) {
	return rendered(f, scale, on)
}

func writePNG(w io.Writer, d drawable, scale float64) error {
	img, err := rendered(d, scale, OnLight)
	if err != nil {
		return err
	}
	return png.Encode(w, img)
}

func rendered(d drawable, scale float64, on Ground) (*image.RGBA, error) {
	s, err := d.layout()
	if err != nil {
		return nil, err
	}
	c, err := newCanvas(s.width, s.height, scale, on)
	if err != nil {
		return nil, err
	}
	c.fonts = s.fonts
	for _, p := range s.panels {
		c.panel(s, p)
	}
	if s.panels != nil {
		c.legend(s)
	}
	for _, p := range s.shapes {
		c.shape(p)
	}
	for _, t := range s.texts {
		c.text(t)
	}
	return c.img, nil
}

// canvas draws on an image with scale pixels for each unit of the sheet.
type canvas struct {
	img   *image.RGBA
	scale float64
	on    Ground
	pens  map[caption]*pen // by size and weight
	fonts []*Font          // for characters that the Go fonts lack
}

// newCanvas returns an empty canvas for a sheet of the given size.
func newCanvas(width, height, scale float64, on Ground) (*canvas, error) {
	width, height = math.Ceil(width*scale), math.Ceil(height*scale)
	if !(scale > 0) || width*height > mostPixels {
		return nil, fmt.Errorf("viz: a picture of %.0f×%.0f pixels, want at least 1 and at most %d", width, height, mostPixels)
	}
	c := &canvas{scale: scale, on: on, pens: map[caption]*pen{}}
	c.img = image.NewRGBA(image.Rect(0, 0, int(width), int(height)))
	c.fill(c.img.Rect, paperTint.on(on))
	return c, nil
}

// pixels returns the pixels of a rectangle on the sheet. It rounds edges and not sizes, so that neighbours touch.
func (c *canvas) pixels(o rectangle) image.Rectangle {
	at := func(v float64) int { return int(math.Round(v * c.scale)) }
	return image.Rect(at(o.x), at(o.y), at(o.x+o.w), at(o.y+o.h))
}

func (c *canvas) fill(r image.Rectangle, ink color.Color) {
	draw.Draw(c.img, r, image.NewUniform(ink), image.Point{}, draw.Src)
}

// panel draws the cells and a frame.
func (c *canvas) panel(s *sheet, p placed) {
	w, colors := len(p.Columns), s.colors(c.on)
	for i := range p.Rows {
		for j := range w {
			r := c.pixels(p.cell(i, j))
			switch shade := s.shadeOf(p.Panel, i*w+j); shade {
			case hole:
				c.fill(r, holeTint.on(c.on))
			case veil:
				c.hatch(r)
			default:
				c.fill(r, colors[shade])
			}
		}
	}
	c.frame(rectangle{p.x, p.y, p.width(), p.height()})
}

// hatch fills a rectangle with stripes that line up with those of its neighbours.
func (c *canvas) hatch(r image.Rectangle) {
	c.fill(r, maskTint.on(c.on))
	step, thick := max(int(math.Round(hatching*math.Sqrt2*c.scale)), 3), max(int(math.Round(math.Sqrt2*c.scale)), 1)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if (x+y)%step < thick {
				c.img.SetRGBA(x, y, stripeTint.on(c.on))
			}
		}
	}
}

// frame draws a thin line around a rectangle.
func (c *canvas) frame(o rectangle) {
	n := max(int(c.scale/2), 1)
	for _, side := range sides(c.pixels(o).Inset(-n), n) {
		c.fill(side, frameGrey)
	}
}

// sides returns the four sides of a box, n pixels thick.
func sides(r image.Rectangle, n int) [4]image.Rectangle {
	return [...]image.Rectangle{
		image.Rect(r.Min.X, r.Min.Y, r.Max.X, r.Min.Y+n), image.Rect(r.Min.X, r.Max.Y-n, r.Max.X, r.Max.Y),
		image.Rect(r.Min.X, r.Min.Y, r.Min.X+n, r.Max.Y), image.Rect(r.Max.X-n, r.Min.Y, r.Max.X, r.Max.Y),
	}
}

// frameGrey is the colour of thin lines on both grounds.
var frameGrey = rgb(0x999999)

// legend draws the colour bar and the swatches.
func (c *canvas) legend(s *sheet) {
	r, colors := c.pixels(s.bar), s.colors(c.on)
	for x := r.Min.X; x < r.Max.X; x++ {
		c.fill(image.Rect(x, r.Min.Y, x+1, r.Max.Y), colors[max((x-r.Min.X)*255/max(r.Dx()-1, 1), s.least())])
	}
	c.frame(s.bar)
	for _, x := range s.ticks {
		y := s.bar.y + s.bar.h
		wide, pixel := rectangle{x - 0.25, y, 0.5, tickLength}, rectangle{x, y, 1 / c.scale, tickLength}
		c.fill(c.pixels(wide).Union(c.pixels(pixel)), frameGrey)
	}
	if s.holes {
		c.fill(c.pixels(s.swatch), holeTint.on(c.on))
		c.frame(s.swatch)
	}
	if s.masked {
		c.hatch(c.pixels(s.veiled))
		c.frame(s.veiled)
	}
}

// text draws a caption. It draws a horizontal mask first, and rotates it if the caption is to be read upwards.
func (c *canvas) text(t caption) {
	key := caption{size: t.size, bold: t.bold}
	p := c.pens[key]
	if p == nil {
		face := regular()
		if t.bold {
			face = bold()
		}
		p = newPen(face, t.size*c.scale, c.fonts...)
		c.pens[key] = p
	}
	width := p.width(t.text)
	above, below := int(math.Ceil(1.1*p.size)), int(math.Ceil(0.4*p.size))
	margin := below // letters may extend beyond their width
	mask := image.NewAlpha(image.Rect(-margin, -above, int(width)+1+margin, below))
	p.write(mask, hyphenated(t.text))
	shift := [...]float64{0, -width / 2, -width}[t.anchor]
	tint := inkTint
	if t.grey {
		tint = greyTint
	}
	ink := image.NewUniform(tint.on(c.on))
	x, y := int(math.Round(t.x*c.scale)), int(math.Round(t.y*c.scale))
	if t.up {
		mask = turned(mask)
		y -= int(math.Round(shift))
	} else {
		x += int(math.Round(shift))
	}
	draw.DrawMask(c.img, mask.Rect.Add(image.Pt(x, y)), ink, image.Point{}, mask, mask.Rect.Min, draw.Over)
}

// turned returns the mask rotated to the left by 90°.
func turned(m *image.Alpha) *image.Alpha {
	r := m.Rect
	out := image.NewAlpha(image.Rect(r.Min.Y, 1-r.Max.X, r.Max.Y, 1-r.Min.X))
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			out.SetAlpha(y, -x, m.AlphaAt(x, y))
		}
	}
	return out
}

// write draws a text on a mask, starting at its origin.
func (p *pen) write(mask *image.Alpha, text string) {
	x := 0.
	for _, r := range text {
		w := p.advance(r)
		box := func(top, bottom float64, shade uint8) {
			at := func(v float64) int { return int(math.Round(v)) }
			ink := image.Rect(at(x+0.1*w), at(top*p.size), at(x+0.9*w), max(at(bottom*p.size), at(top*p.size)+1))
			draw.Draw(mask, ink, image.NewUniform(color.Alpha{shade}), image.Point{}, draw.Src)
		}
		switch {
		case r == '▁':
			box(0.02, 0.12, 0xff*spaceShade)
		case r == '∎':
			box(-0.55, 0, 0xff)
		case p.drawing(r) != nil:
			o := p.drawing(r)
			o.draw(mask, string(r), x+(w-o.advance(r))/2, 0)
		case w > 0:
			p.codeBox(mask, r, x, w)
		}
		x += w
	}
}

// ownSigns are characters that write draws as boxes. The Go fonts lack them, but tokenizers use them: the mark of a
// word's start and the mark of a text's end.
const ownSigns = "▁∎"

// codeBox draws a box for a character that the font lacks, with its number in hexadecimal on two lines.
func (p *pen) codeBox(mask *image.Alpha, r rune, x, w float64) {
	digits := fmt.Sprintf("%04X", r)
	if len(digits) > 4 {
		digits = fmt.Sprintf("%06X", r)
	}
	half := len(digits) / 2
	gap := 0.05 * p.size
	at := func(v float64) int { return int(math.Round(v)) }
	box := image.Rect(at(x+gap), at(-0.8*p.size), at(x+w-gap), at(0.12*p.size))
	for _, side := range sides(box, max(int(p.size/16), 1)) {
		draw.Draw(mask, side, image.NewUniform(color.Alpha{0x90}), image.Point{}, draw.Src)
	}
	small := newPen(p.Font, 0.42*p.size)
	for i, s := range []string{digits[:half], digits[half:]} {
		small.draw(mask, s, x+(w-small.width(s))/2, (0.41*float64(i)-0.38)*p.size)
	}
}
