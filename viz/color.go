package viz

import (
	"image/color"
	"math"
	"sync"
)

// The colours go from white over green and blue to nearly black. They follow a path through Oklab, the colour space of
// Björn Ottosson ("A perceptual color space for image processing", 2020, https://bottosson.github.io/posts/oklab),
// along which lightness falls evenly. So equal steps of weight look like equal steps, also in a grey print and with
// every kind of colour blindness; hue is an extra. 0 is white because most weights are nearly 0, and paper is white.
// The matrices below are from the same page.
const (
	lightest, darkest = 1.00, 0.22
	firstHue, lastHue = 118., 268. // degrees
	mostChroma        = 0.125
)

// colormap returns the colours of shades 0 to 255. They are computed on first use.
var colormap = sync.OnceValue(func() *[256]color.RGBA {
	var list [256]color.RGBA
	for i := range list {
		t := float64(i) / 255
		chroma := mostChroma * math.Pow(math.Sin(math.Pi*math.Pow(t, 0.8)), 0.75)
		hue := (firstHue + (lastHue-firstHue)*math.Pow(t, 0.75)) * math.Pi / 180
		chroma = max(chroma, 0.09*t) // blue up to the end
		// Screens cannot show some of these colours; less chroma keeps the lightness.
		list[i] = inGamut(lightest+(darkest-lightest)*t, chroma, hue)
	}
	return &list
})

// holeTint is the colour of values that are not numbers. The colour maps do not contain its
// hue. Masked cells are striped, as on the page of attn view.
var (
	holeTint   = tint{"hole", rgb(0xd63c6e), rgb(0xff5c8a)}
	maskTint   = tint{"mask", rgb(0xf0f1f4), rgb(0x20232c)}
	stripeTint = tint{"stripe", rgb(0xb2b7c2), rgb(0x585f6e)}
)

// fromOklab returns the sRGB colour of a lightness, chroma and hue (radians), and whether sRGB contains that colour.
func fromOklab(lightness, chroma, hue float64) (color.RGBA, bool) {
	a, b := chroma*math.Cos(hue), chroma*math.Sin(hue)
	l := lightness + 0.3963377774*a + 0.2158037573*b
	m := lightness - 0.1055613458*a - 0.0638541728*b
	s := lightness - 0.0894841775*a - 1.2914855480*b
	l, m, s = l*l*l, m*m*m, s*s*s
	ok := true
	channel := func(linear float64) uint8 {
		const slack = 1e-4
		ok = ok && linear > -slack && linear < 1+slack
		linear = min(max(linear, 0), 1)
		if linear <= 0.0031308 {
			return uint8(math.Round(255 * 12.92 * linear))
		}
		return uint8(math.Round(255 * (1.055*math.Pow(linear, 1/2.4) - 0.055)))
	}
	c := color.RGBA{
		channel(4.0767416621*l - 3.3077115913*m + 0.2309699292*s),
		channel(-1.2684380046*l + 2.6097574011*m - 0.3413193965*s),
		channel(-0.0041960863*l - 0.7034186147*m + 1.7076147010*s),
		0xff,
	}
	return c, ok
}

// oklab returns the lightness and the a and b coordinates of a colour.
func oklab(c color.RGBA) (l, a, b float64) {
	return oklabOf(linear(c.R), linear(c.G), linear(c.B))
}

// oklabOf is oklab for linear light.
func oklabOf(r, g, u float64) (l, a, b float64) {
	x := math.Cbrt(0.4122214708*r + 0.5363325363*g + 0.0514459929*u)
	y := math.Cbrt(0.2119034982*r + 0.6806995451*g + 0.1073969566*u)
	z := math.Cbrt(0.0883024619*r + 0.2817188376*g + 0.6299787005*u)
	return 0.2104542553*x + 0.7936177850*y - 0.0040720468*z,
		1.9779984951*x - 2.4285922050*y + 0.4505937099*z,
		0.0259040371*x + 0.7827717662*y - 0.8086757660*z
}

// linear undoes the gamma of sRGB.
func linear(v uint8) float64 {
	x := float64(v) / 255
	if x <= 0.04045 {
		return x / 12.92
	}
	return math.Pow((x+0.055)/1.055, 2.4)
}
