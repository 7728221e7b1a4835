package viz

import (
	"image/color"
	"math"
	"testing"
)

// The claims of color.go: colours get darker evenly, no step is much larger than another, and
// the ends are white and nearly black.
func TestColorsAreOrdered(t *testing.T) {
	if white := (color.RGBA{255, 255, 255, 255}); colormap()[0] != white {
		t.Errorf("0 is %v, want white", colormap()[0])
	}
	for i, c := range colormap() {
		l, _, _ := oklab(c)
		if want := lightest + (darkest-lightest)*float64(i)/255; math.Abs(l-want) > 0.005 {
			t.Errorf("shade %d has lightness %.4f, want %.4f", i, l, want)
		}
	}
	least, most := math.Inf(1), 0.
	for i := 0; i+15 < 256; i += 15 {
		l, a, b := oklab(colormap()[i])
		l2, a2, b2 := oklab(colormap()[i+15])
		d := math.Sqrt((l-l2)*(l-l2) + (a-a2)*(a-a2) + (b-b2)*(b-b2))
		least, most = min(least, d), max(most, d)
	}
	if most > 1.7*least {
		t.Errorf("steps look %.4f to %.4f large", least, most)
	}
}

// sight maps red, green and blue to what a person sees.
type sight [3][3]float64

// sights are matrices for linear light of people who see no red, no green and no blue, from
// Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color
// vision deficiency", 2009, severity 1.
var sights = map[string]sight{
	"everybody":    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

// see returns the linear light that a person sees for a colour.
func (m sight) see(c color.RGBA) (light [3]float64) {
	in := [3]float64{linear(c.R), linear(c.G), linear(c.B)}
	for j := range light {
		for k := range in {
			light[j] += m[j][k] * in[k]
		}
		light[j] = min(max(light[j], 0), 1)
	}
	return light
}

// The order is visible with each kind of colour blindness.
func TestColorBlind(t *testing.T) {
	for name, m := range sights {
		before := math.Inf(1)
		for i := 0; i < 256; i += 5 {
			out := m.see(colormap()[i])
			luminance := 0.2126*out[0] + 0.7152*out[1] + 0.0722*out[2]
			if luminance >= before {
				t.Errorf("%s: shade %d is as light as the one before", name, i)
			}
			before = luminance
		}
	}
}

// The order is also visible on terminals with fewer colours.
func TestCubeIsOrdered(t *testing.T) {
	place := map[int]int{}
	for i, at := range path {
		place[at] = i
	}
	for i := 1; i < 256; i++ {
		if place[cube()[OnLight][i]] < place[cube()[OnLight][i-1]] {
			t.Errorf("shade %d is lighter than the one before", i)
		}
	}
	if cube()[OnLight][0] != path[0] || cube()[OnLight][255] != path[len(path)-1] {
		t.Errorf("ends %d and %d", cube()[OnLight][0], cube()[OnLight][255])
	}
}
