package viz

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"
	"sync"
)

// Colors is the number of colours that a terminal can show.
type Colors uint8

// The values of Colors.
const (
	NoColors  Colors = iota // values are drawn as characters
	Colors16                // the palette that the user has chosen
	Colors256               // xterm's cube
	TrueColor
)

// DetectColors returns the number of colours of a terminal. It reads the environment
// variables NO_COLOR (no colours if it is not empty), COLORTERM and TERM.
func DetectColors(getenv func(string) string) Colors {
	term := getenv("TERM")
	switch colorterm := getenv("COLORTERM"); {
	case getenv("NO_COLOR") != "" || term == "dumb":
		return NoColors
	case colorterm == "truecolor" || colorterm == "24bit" || strings.HasSuffix(term, "-direct") || getenv("WT_SESSION") != "":
		return TrueColor
	case strings.Contains(term, "256color"):
		return Colors256
	case term == "":
		return NoColors
	}
	return Colors16
}

// DetectLight reads COLORFGBG, which some terminals set. light reports whether the
// background is light, ok whether the variable names a background.
func DetectLight(getenv func(string) string) (light, ok bool) {
	v := getenv("COLORFGBG")
	background := v[strings.LastIndexByte(v, ';')+1:]
	number, err := strconv.Atoi(background)
	return number == 7 || number == 15, err == nil
}

// on returns the background.
func (t Terminal) on() Ground {
	switch {
	case t.Light:
		return OnLight
	case t.Dark:
		return OnDark
	}
	return onEither
}

// ramp16 has the codes of background colours of the 16-colour palette, from black over blue
// and cyan to white. Their brightness rises in every common theme.
var ramp16 = [...]int{40, 44, 104, 46, 106, 107}

// ground returns the escape code that sets the background to a shade, or the text colour if front is set. On a dark
// terminal shade 0 is dark. If the background is unknown, neither end is black or white.
func (t Terminal) ground(shade int, front bool) string {
	switch {
	case t.Colors == Colors16 && shade == hole:
		return paletteCode(105, front) // bright magenta
	case t.Colors == Colors16:
		ramp := ramp16[:]
		switch t.on() {
		case onEither:
			ramp = ramp[1 : len(ramp)-1]
		case OnLight:
			shade = 255 - shade
		}
		return paletteCode(ramp[shade*len(ramp)/256], front)
	case shade == hole:
		return t.code(holeTint.light, front) // visible on both grounds
	case t.Colors == Colors256:
		return cubeCode(cube()[t.on()][shade], front)
	}
	return t.code(t.on().Color(float64(shade)/255), front)
}

// paletteCode returns a background code of the palette, or the text code of the same colour if front is set.
func paletteCode(code int, front bool) string {
	if front {
		code -= 10
	}
	return fmt.Sprint(code)
}

// cubeCode returns the code of one of xterm's 256 colours.
func cubeCode(at int, front bool) string { return paletteCode(48, front) + fmt.Sprintf(";5;%d", at) }

// code returns the code of any colour. With 256 colours it is the nearest one.
func (t Terminal) code(c color.RGBA, front bool) string {
	if t.Colors == Colors256 {
		return cubeCode(nearestInCube(c), front)
	}
	return paletteCode(48, front) + fmt.Sprintf(";2;%d;%d;%d", c.R, c.G, c.B)
}

// Paint returns text on the colour of a value from 0 to 1, like a cell of a figure. Without
// colours it returns text unchanged.
func (t Terminal) Paint(v float64, text string) string {
	if t.Colors == NoColors {
		return text
	}
	shade := extent{top: 1}.shade(float32(v))
	front := "97" // white
	if l, _, _ := oklab(t.on().Color(v)); l > 0.6 && shade != hole {
		front = "30"
	}
	return "\x1b[" + t.ground(shade, false) + ";" + front + "m" + text + "\x1b[0m"
}

// path lists colours of xterm's cube whose lightness falls as evenly as that of the colour map. The nearest colour to
// each shade would be grey at the dark end, and the steps would be uneven elsewhere.
var path = [...]int{231, 194, 158, 121, 79, 43, 37, 31, 25, 24, 19, 18, 17}

// cube maps the shades on each ground to the colours of the path with the nearest lightness.
var cube = sync.OnceValue(func() (list [3][256]int) {
	for on, path := range [...][]int{OnLight: path[:], OnDark: path[:], onEither: path[4 : len(path)-2]} {
		for shade := range list[on] {
			want, _, _ := oklab(Ground(on).Color(float64(shade) / 255))
			best := math.Inf(1)
			for _, at := range path {
				l, _, _ := oklab(cubeColor(at))
				if d := math.Abs(l - want); d < best {
					best, list[on][shade] = d, at
				}
			}
		}
	}
	return list
})

// cubeColor returns one of xterm's colours after the first 16: a cube and greys.
func cubeColor(at int) color.RGBA {
	if at >= 232 {
		grey := uint8(8 + 10*(at-232))
		return color.RGBA{grey, grey, grey, 255}
	}
	level := [...]uint8{0, 95, 135, 175, 215, 255}
	at -= 16
	return color.RGBA{level[at/36], level[at/6%6], level[at%6], 255}
}

// nearestInCube returns the number of the xterm colour that is nearest to c in Oklab.
func nearestInCube(c color.RGBA) int {
	l, a, b := oklab(c)
	nearest, best := 16, math.Inf(1)
	for at := 16; at < 256; at++ {
		l2, a2, b2 := oklab(cubeColor(at))
		if d := math.Hypot(l-l2, math.Hypot(a-a2, b-b2)); d < best {
			nearest, best = at, d
		}
	}
	return nearest
}

// set changes the colour, if it is another one.
func (d *drawing) set(code string) {
	if code != d.now {
		d.WriteString("\x1b[" + code + "m")
		d.now = code
	}
}

// plain resets all colours.
func (d *drawing) plain() {
	if d.now != "" {
		d.WriteString("\x1b[0m")
		d.now = ""
	}
}

func (d *drawing) line() {
	d.plain()
	d.WriteByte('\n')
}
