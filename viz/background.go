package viz

import (
	"image/color"
	"strconv"
	"strings"
)

// AskBackground is what a terminal is sent to learn the colour of its background
// (OSC 11). All answer the second question, for their attributes, so that nobody
// waits for those that do not know the first.
const AskBackground = "\x1b]11;?\x1b\\\x1b[c"

// ParseBackground reports whether a terminal's answer to AskBackground tells of a
// light background, and whether it tells anything.
func ParseBackground(reply string) (light, ok bool) {
	_, rest, found := strings.Cut(reply, "\x1b]11;rgb")
	if !found {
		return false, false
	}
	_, rest, found = strings.Cut(rest, ":")
	end := strings.IndexAny(rest, "\x07\x1b")
	if !found || end < 0 {
		return false, false
	}
	parts := strings.Split(rest[:end], "/")
	if len(parts) < 3 {
		return false, false
	}
	var rgb [3]uint8
	for i := range rgb {
		digits := parts[i]
		v, err := strconv.ParseUint(digits, 16, 16)
		if err != nil || len(digits) > 4 {
			return false, false
		}
		rgb[i] = uint8(v * 255 / (1<<(4*len(digits)) - 1))
	}
	l, _, _ := oklab(color.RGBA{rgb[0], rgb[1], rgb[2], 0xff})
	return l > 0.6, true
}
