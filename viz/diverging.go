package viz

import (
	"image/color"
	"math"
	"sync"
)

// Ground is the background of a picture: light like paper, or dark like most terminals.
type Ground uint8

// The two grounds.
const (
	OnLight Ground = iota
	OnDark
	onEither // the unknown background of a terminal: colours are visible on black and on white
)

// Color returns the colour of a value from 0 to 1: 0 has the colour of the ground. A value that is not a number is red.
func (g Ground) Color(v float64) color.RGBA {
	shade := extent{top: 1}.shade(float32(v))
	switch {
	case shade == hole:
		return holeTint.on(g)
	case g == onEither:
		return even()[shade]
	case g == OnDark:
		shade = 255 - shade
	}
	return colormap()[shade]
}

// even has the colours of shades for an unknown background.
var even = sync.OnceValue(func() (list [256]color.RGBA) {
	for i := range list {
		t := float64(i) / 255
		list[i] = inGamut(0.38+0.44*t, 0.15, (285-155*t)*math.Pi/180)
	}
	return list
})

// Difference returns the colour of a value from -1 to 1: blue below 0, orange above 0, and the colour of the ground at
// 0. Values of equal size are equally light, so that neither sign looks stronger.
func (g Ground) Difference(v float64) color.RGBA {
	if v-v != 0 {
		return holeTint.on(g)
	}
	arm := 0
	if v > 0 {
		arm = 1
	}
	if g == onEither { // from grey to more saturated colours of the same lightness
		return inGamut(0.64, 0.2*math.Abs(v), armHues[arm]*math.Pi/180)
	}
	return diverging()[g][arm][int(math.Round(255*min(math.Abs(v), 1)))]
}

// least returns the first shade.
func (e extent) least() int {
	if e.signed {
		return 1
	}
	return 0
}

// ground is Terminal.ground on the scale of the figure.
func (d *drawing) ground(shade int, front bool) string {
	if !d.signed || shade < 0 {
		return d.t.ground(shade, front)
	}
	v := float64(shade-zeroShade) / (zeroShade - 1)
	if d.t.Colors == Colors16 {
		arms := [2][]int{{40, 44, 104, 106, 107}, {40, 41, 43, 103, 107}} // over blue; over red and yellow
		if d.t.on() == onEither {
			arms = [2][]int{{100, 106, 104, 44}, {100, 103, 101, 41}}
		}
		arm := arms[0]
		if v > 0 {
			arm = arms[1]
		}
		at := int(math.Round(math.Abs(v) * float64(len(arm)-1)))
		if d.t.Light {
			at = len(arm) - 1 - at
		}
		return paletteCode(arm[at], front)
	}
	return d.t.code(d.t.on().Difference(v), front)
}

// Both arms of the diverging scale follow a path in Oklab along which lightness changes evenly, like the other scale.
const armChroma = 0.15

var armHues = [2]float64{258, 48} // degrees: cold below 0, warm above

// diverging returns the colours of differences by ground and sign. They are computed on first use.
var diverging = sync.OnceValue(func() *[2][2][256]color.RGBA {
	var list [2][2][256]color.RGBA
	for ground, ends := range [2][2]float64{{lightest, 0.42}, {darkest, 0.86}} {
		for arm, hue := range armHues {
			for i := range 256 {
				t := float64(i) / 255
				lightness := ends[0] + (ends[1]-ends[0])*t
				chroma := armChroma * math.Pow(math.Sin(math.Pi/2*min(1, 1.4*t)), 0.8)
				list[ground][arm][i] = inGamut(lightness, chroma, hue*math.Pi/180)
			}
		}
	}
	return &list
})

// inGamut returns the sRGB colour with the given lightness and hue, and the largest chroma up
// to the given one that sRGB has.
func inGamut(lightness, chroma, hue float64) color.RGBA {
	c, ok := fromOklab(lightness, chroma, hue)
	for !ok && chroma > 0 {
		chroma -= 0.001
		c, ok = fromOklab(lightness, max(chroma, 0), hue)
	}
	return c
}
