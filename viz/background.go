package viz

import (
	"image/color"
	"regexp"
	"strconv"
)

// AskBackground is what a terminal is sent to learn the colour of its background
// (OSC 11). All answer the second question, for their attributes, so that nobody
// waits for those that do not know the first.
const AskBackground = "\x1b]11;?\x1b\\\x1b[c"

// background is the answer to the first question: up to four hexadecimal digits of red,
// green and blue each.
var background = regexp.MustCompile(`\x1b\]11;rgb[^:]*:([[:xdigit:]]{1,4})/([[:xdigit:]]{1,4})/([[:xdigit:]]{1,4})(/[^\x07\x1b]*)?[\x07\x1b]`)

// ParseBackground reports whether a terminal's answer to AskBackground tells of a
// light background, and whether it tells anything.
func ParseBackground(reply string) (light, ok bool) {
	m := background.FindStringSubmatch(reply)
	if m == nil {
		return false, false
	}
	var rgb [3]uint8
	for i := range rgb {
		v, _ := strconv.ParseUint(m[i+1], 16, 16) // the expression lets nothing else pass
		rgb[i] = uint8(v * 255 / (1<<(4*len(m[i+1])) - 1))
	}
	l, _, _ := oklab(color.RGBA{rgb[0], rgb[1], rgb[2], 0xff})
	return l > 0.6, true
}
