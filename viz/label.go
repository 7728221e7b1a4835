package viz

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/cells"
)

// longestLabel is the width at which labels are cut, in character cells.
const longestLabel = 16

// label returns a token as the label of a row or column: without characters that move the
// cursor or change the direction of the text, and at most the given number of cells wide.
func label(token string, most int) string {
	return cells.Cut(visible(token), most)
}

// visible writes invisible characters as Go does: \n, \x1b, \u202e. A token that is only a
// line break is common, and should not look like an empty token.
func visible(token string) string {
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
