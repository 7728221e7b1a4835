package viz

import (
	"fmt"
	"strings"

	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"

	"github.com/attn-go/attn/internal/cells"
)

// Font is a font for characters that the Go fonts lack.
type Font struct{ font *sfnt.Font }

// ParseFont reads a TrueType or OpenType font. Of a collection (.ttc, .otc) it reads the first font.
//
// Aliasing: the font keeps a reference to data.
//
// Errors: data that is not a font.
func ParseFont(data []byte) (*Font, error) {
	if string(data[:min(4, len(data))]) != "ttcf" {
		f, err := opentype.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("viz: not a TrueType or OpenType font: %w", err)
		}
		return &Font{f}, nil
	}
	all, err := opentype.ParseCollection(data)
	if err != nil {
		return nil, fmt.Errorf("viz: not a collection of fonts: %w", err)
	}
	f, err := all.Font(0)
	if err != nil {
		return nil, fmt.Errorf("viz: the first font of the collection: %w", err)
	}
	return &Font{f}, nil
}

// Has reports whether the font has a character.
func (f *Font) Has(r rune) bool {
	i, err := f.font.GlyphIndex(nil, r)
	return err == nil && i != 0
}

// Lacking returns the characters of a figure's texts for which PNG has no glyph, each once.
// To draw them, add fonts that have them to Fonts.
func (f Figure) Lacking() []rune {
	p := newPen(regular(), 10, f.Fonts...)
	var list []rune
	seen := map[rune]bool{}
	look := func(most int, texts ...string) {
		for _, text := range texts {
			for _, r := range cells.Label(text, most) {
				if seen[r] {
					continue
				}
				seen[r] = true
				if !strings.ContainsRune(ownSigns, r) && p.drawing(r) == nil && p.advance(r) > 0 {
					list = append(list, r)
				}
			}
		}
	}
	look(longestTitle, f.Title)
	for _, p := range f.Panels {
		look(longestTitle, p.Title)
		look(tokenCells, p.Rows...)
		look(tokenCells, p.Columns...)
	}
	return list
}
