package viz

import (
	"image/color"
	"regexp"
	"strconv"
)

// AskBackground is the request that asks a terminal for its background colour (OSC 11). It
// ends with a request for the terminal's attributes, which every terminal answers, so that
// the caller does not wait for a terminal that ignores the first request.
const AskBackground = "\x1b]11;?\x1b\\\x1b[c"

// background is the answer to OSC 11: up to four hexadecimal digits each of red, green and blue.
const background = `\x1b\]11;rgb[^:]*:([[:xdigit:]]{1,4})/([[:xdigit:]]{1,4})/([[:xdigit:]]{1,4})(/[^\x07\x1b]*)?[\x07\x1b]`

// ParseBackground reads a terminal's answer to AskBackground. light reports whether the
// background is light, ok whether the answer names a colour.
func ParseBackground(reply string) (light, ok bool) {
	m := regexp.MustCompile(background).FindStringSubmatch(reply)
	if m == nil {
		return false, false
	}
	var rgb [3]uint8
	for i := range rgb {
		v, _ := strconv.ParseUint(m[i+1], 16, 16) // the expression matches only hexadecimal digits
		rgb[i] = uint8(v * 255 / (1<<(4*len(m[i+1])) - 1))
	}
	l, _, _ := oklab(color.RGBA{rgb[0], rgb[1], rgb[2], 0xff})
	return l > 0.6, true
}
