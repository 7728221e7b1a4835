package cells

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// runesPerCell is the most characters of a text that a column may take: a few combining marks, or the parts of an emoji.
// Fonts for pictures lack most of them, and show each one as a box.
const runesPerCell = 4

// Label returns a text of at most the given number of columns that is fit to be shown on a terminal, in XML and in HTML:
// invisible characters and those that move the cursor or change the direction of the text are escaped. The caller
// escapes characters of the markup.
//
// A text may have megabytes. Label reads only the part that can be shown, so everything that measures or draws a text
// uses its label.
func Label(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > runesPerCell*most {
			text = text[:i] + "…"
			break
		}
	}
	return Cut(Visible(text), most)
}

// Visible writes invisible characters as Go does: \n, \x1b, \u202e. A token that is only a
// line break is common, and should not look like an empty token.
func Visible(token string) string {
	var b strings.Builder
	for i, r := range token {
		_, size := utf8.DecodeRuneInString(token[i:])
		switch {
		case r == utf8.RuneError && size == 1: // a part of a character
			fmt.Fprintf(&b, `\x%02x`, token[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x80 && unicode.IsControl(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case unicode.IsControl(r), unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp), unseen(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			if i == 0 && unicode.In(r, unicode.Mn, unicode.Me) {
				b.WriteRune('◌') // otherwise it would combine with the character before it
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unseen reports whether a character is invisible, except joiners, or not allowed in XML.
func unseen(r rune) bool {
	switch r {
	case 0xad, 0x200b, 0x2060, 0xfeff, 0xfffe, 0xffff:
		return true
	}
	return 0xfff9 <= r && r <= 0xfffb
}
