package viz

import (
	"fmt"
	"image/color"
	"math"
	"strings"
	"sync"
)

// Colors is how many colours a terminal has.
type Colors uint8

// The terminals that there are.
const (
	NoColors  Colors = iota // shades of characters
	Colors16                // the palette that the user has chosen
	Colors256               // xterm's cube
	TrueColor
)

// DetectColors returns how many colours a terminal has by what the environment
// says: NO_COLOR, if it is set to anything, COLORTERM and TERM.
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

// DetectLight reports whether COLORFGBG, which some terminals set, tells of a
// light background.
func DetectLight(getenv func(string) string) bool {
	v := getenv("COLORFGBG")
	background := v[strings.LastIndexByte(v, ';')+1:]
	return background == "7" || background == "15"
}

// ramp16 are the palette's colours that rise in brightness in every common
// theme, from black over blue and cyan to white, by the codes of backgrounds.
var ramp16 = [...]int{40, 44, 104, 46, 106, 107}

// ground returns the code that colours the background, or with front the
// character, in a shade. On a dark terminal 0 is the dark end of the colours.
func (t Terminal) ground(shade int, front bool) string {
	if shade != hole && !t.Light {
		shade = 255 - shade
	}
	if t.Colors == Colors16 {
		code := 100 // bright black: a grey
		if shade != hole {
			code = ramp16[(255-shade)*len(ramp16)/256]
		}
		if front {
			code -= 10
		}
		return fmt.Sprint(code)
	}
	layer := 48
	if front {
		layer = 38
	}
	if t.Colors == Colors256 {
		at := cubeHole
		if shade != hole {
			at = cube()[shade]
		}
		return fmt.Sprintf("%d;5;%d", layer, at)
	}
	c := shadeColor(shade)
	return fmt.Sprintf("%d;2;%d;%d;%d", layer, c.R, c.G, c.B)
}

// Paint returns a text on the colour of a value from 0 to 1, as cells of a figure
// have it; without colours the text as it is.
func (t Terminal) Paint(v float64, text string) string {
	if t.Colors == NoColors {
		return text
	}
	shade := extent{top: 1}.shade(float32(v))
	front := "97" // white
	if shade != hole {
		at := shade
		if !t.Light {
			at = 255 - shade
		}
		if l, _, _ := oklab(colormap[at]); l > 0.6 {
			front = "30"
		}
	}
	return "\x1b[" + t.ground(shade, false) + ";" + front + "m" + text + "\x1b[0m"
}

// cubeHole is a grey of the 256 colours.
const cubeHole = 246

// path are colours of xterm's cube along which lightness falls as on ours. The
// nearest colour of each shade would be greys at the dark end and jump about.
var path = [...]int{231, 194, 158, 121, 79, 43, 37, 31, 25, 24, 19, 18, 17}

// cube returns for each shade the colour of the path that is as light.
var cube = sync.OnceValue(func() (list [256]int) {
	level := [...]uint8{0, 95, 135, 175, 215, 255}
	for shade, c := range colormap {
		want, _, _ := oklab(c)
		best := math.Inf(1)
		for _, at := range path {
			i := at - 16
			l, _, _ := oklab(color.RGBA{level[i/36], level[i/6%6], level[i%6], 255})
			if d := math.Abs(l - want); d < best {
				best, list[shade] = d, at
			}
		}
	}
	return list
})

// painter writes text with colours, and a code only where one changes.
type painter struct {
	strings.Builder
	t   Terminal
	now string
}

func (p *painter) set(code string) {
	if code != p.now {
		p.WriteString("\x1b[" + code + "m")
		p.now = code
	}
}

// plain ends all colours.
func (p *painter) plain() {
	if p.now != "" {
		p.WriteString("\x1b[0m")
		p.now = ""
	}
}

func (p *painter) line() {
	p.plain()
	p.WriteByte('\n')
}
