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

// known reports whether the background is known.
func (t Terminal) known() bool { return t.Light || t.Dark }

// on returns the background. An unknown one counts as dark.
func (t Terminal) on() Ground {
	if t.Light {
		return OnLight
	}
	return OnDark
}

// ramp16 has the codes of background colours of the 16-colour palette, from black over blue
// and cyan to white. Their brightness rises in every common theme.
var ramp16 = [...]int{40, 44, 104, 46, 106, 107}

// even has the colours of shades for an unknown background: both ends are visible on black and on white.
var even = sync.OnceValue(func() (list [256]color.RGBA) {
	for i := range list {
		t := float64(i) / 255
		list[i] = inGamut(0.38+0.44*t, 0.15, (285-155*t)*math.Pi/180)
	}
	return list
})

// ground returns the escape code that sets the background to a shade, or the text colour if front is set. On a dark
// terminal shade 0 is dark. If the background is unknown, neither end is black or white.
func (t Terminal) ground(shade int, front bool) string {
	switch {
	case t.Colors == Colors16 && shade == hole:
		return paletteCode(105, front) // bright magenta
	case t.Colors == Colors16:
		ramp := ramp16[:]
		if !t.known() {
			ramp = ramp[1 : len(ramp)-1]
		}
		if t.Light {
			shade = 255 - shade
		}
		return paletteCode(ramp[shade*len(ramp)/256], front)
	case shade == hole:
		return t.code(holeTint.light, front) // visible on both grounds
	case t.Colors == Colors256 && !t.known():
		return cubeCode(cubeEven()[shade], front)
	case t.Colors == Colors256 && t.Light:
		return cubeCode(cube()[shade], front)
	case t.Colors == Colors256:
		return cubeCode(cube()[255-shade], front)
	case !t.known():
		return t.code(even()[shade], front)
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
	if shade != hole {
		c := even()[shade]
		if t.known() {
			c = t.on().Color(v)
		}
		if l, _, _ := oklab(c); l > 0.6 {
			front = "30"
		}
	}
	return "\x1b[" + t.ground(shade, false) + ";" + front + "m" + text + "\x1b[0m"
}

// path lists colours of xterm's cube whose lightness falls as evenly as that of the colour map. The nearest colour to
// each shade would be grey at the dark end, and the steps would be uneven elsewhere.
var path = [...]int{231, 194, 158, 121, 79, 43, 37, 31, 25, 24, 19, 18, 17}

// cube maps each shade to the colour of the path with the same lightness. cubeEven does the
// same for an unknown background.
var (
	cube     = sync.OnceValue(func() [256]int { return onPath(*colormap(), path[:]) })
	cubeEven = sync.OnceValue(func() [256]int { return onPath(even(), path[4:len(path)-2]) })
)

// onPath maps each colour to the one on a path in xterm's cube with the nearest lightness.
func onPath(colors [256]color.RGBA, path []int) (list [256]int) {
	for shade, c := range colors {
		want, _, _ := oklab(c)
		best := math.Inf(1)
		for _, at := range path {
			l, _, _ := oklab(cubeColor(at))
			if d := math.Abs(l - want); d < best {
				best, list[shade] = d, at
			}
		}
	}
	return list
}

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
