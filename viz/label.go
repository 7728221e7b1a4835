package viz

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/cells"
)

// longestLabel bounds the cells of a label; what is longer is cut.
const longestLabel = 16

// label is a token as it stands beside a map: nothing that moves the cursor or
// turns the line around, and at most so many cells wide.
func label(token string, most int) string {
	return cells.Cut(visible(token), most)
}

// visible writes characters that cannot be seen as Go writes them: \n, \x1b,
// \u202e. A token that is but a line's end is common, and should not look like
// one that is empty.
func visible(token string) string {
	var b strings.Builder
	for i, r := range token {
		_, size := utf8.DecodeRuneInString(token[i:])
		switch {
		case r == utf8.RuneError && size == 1: // a piece of a character
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
				b.WriteRune('◌') // or it would sit on what stands in front
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unseen reports characters that take no room, other than those that join, and
// those that XML cannot hold.
func unseen(r rune) bool {
	switch r {
	case 0xad, 0x200b, 0x2060, 0xfeff, 0xfffe, 0xffff:
		return true
	}
	return 0xfff9 <= r && r <= 0xfffb
}
