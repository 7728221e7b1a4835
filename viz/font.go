package viz

import (
	"image"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"github.com/attn-go/attn/internal/cells"
)

// The Go fonts measure all text and draw the text of PNG pictures. They cover the Latin, Greek
// and Cyrillic scripts. They have no combining accents. PNG shows a character that they lack as
// a box with its number, as browsers do. With SVG, the viewer chooses the fonts.
//
// Functions parse them on first use. As package variables (sync.OnceValue), they would also be linked into programs that
// draw nothing.
func regular() *Font { return regularFont.parsed(goregular.TTF) }

func bold() *Font { return boldFont.parsed(gobold.TTF) }

var regularFont, boldFont parsedOnce

type parsedOnce struct {
	sync.Once
	font *Font
}

func (p *parsedOnce) parsed(ttf []byte) *Font {
	p.Do(func() { p.font, _ = ParseFont(ttf) }) // no error: the fonts are compiled in
	return p.font
}

// pen is a font in one size. It is not safe for concurrent use.
type pen struct {
	*Font
	face   font.Face
	size   float64
	others []*pen // for characters that the font lacks
}

// newPen returns a pen for a font in a size. Characters that the font lacks are drawn with one of the others.
func newPen(f *Font, size float64, others ...*Font) *pen {
	face, err := opentype.NewFace(f.font, &opentype.FaceOptions{Size: size, DPI: 72})
	if err != nil {
		panic(err) // cannot happen
	}
	p := &pen{Font: f, face: face, size: size}
	for _, o := range others {
		p.others = append(p.others, newPen(o, size))
	}
	return p
}

// drawing returns the first pen that has a character, p before the others, or nil.
func (p *pen) drawing(r rune) *pen {
	if p.Has(r) {
		return p
	}
	for _, o := range p.others {
		if o.Has(r) {
			return o
		}
	}
	return nil
}

// advance returns the width of a character.
func (p *pen) advance(r rune) float64 {
	if p.Has(r) {
		a, _ := p.face.GlyphAdvance(r)
		return float64(a) / 64
	}
	switch {
	case r == 0x200c || r == 0x200d || unicode.Is(unicode.Variation_Selector, r):
		return 0 // it only changes how its neighbours are drawn
	case cells.Width(string(r)) > 1:
		return p.size
	case r > 0xffff:
		return 0.85 * p.size
	}
	return 0.68 * p.size
}

func (p *pen) width(text string) float64 {
	w := 0.
	for _, r := range hyphenated(text) {
		w += p.advance(r)
	}
	return w
}

// ruler measures text for the layout, in a size so large that rounding to pixels does not matter.
var ruler struct {
	sync.Mutex
	pen *pen
}

// textWidth returns the width of a text plus a margin, since another font may draw it.
func textWidth(text string, size float64) float64 {
	ruler.Lock()
	defer ruler.Unlock()
	if ruler.pen == nil {
		ruler.pen = newPen(regular(), 1000)
	}
	return ruler.pen.width(text) / 1000 * size * 1.06
}

// softHyphen is the character whose glyph in the Go fonts is a hyphen: their "-" is as wide as a minus sign.
const softHyphen = '\u00ad'

// hyphenated replaces "-" by softHyphen in words and dates. A "-" before a number is a minus
// and is kept, unless a letter or digit precedes it.
func hyphenated(text string) string {
	if !strings.Contains(text, "-") {
		return text
	}
	list := []rune(text)
	wordy := func(i int) bool {
		return i >= 0 && i < len(list) && (unicode.IsLetter(list[i]) || unicode.IsDigit(list[i]))
	}
	for i, r := range list {
		number := i+1 < len(list) && (unicode.IsDigit(list[i+1]) || list[i+1] == '.')
		if r == '-' && (wordy(i-1) || !number) {
			list[i] = softHyphen
		}
	}
	return string(list)
}

// draw draws a text that starts at a point.
func (p *pen) draw(mask *image.Alpha, text string, x, y float64) {
	at := fixed.Point26_6{X: fixed.Int26_6(x * 64), Y: fixed.Int26_6(y * 64)}
	d := font.Drawer{Dst: mask, Src: image.Opaque, Face: p.face, Dot: at}
	d.DrawString(text)
}
