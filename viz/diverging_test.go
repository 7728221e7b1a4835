package viz

import (
	"math"
	"testing"
)

// Differences of one size are equally light for both signs; larger ones are farther from the
// colour of the ground.
func TestDifference(t *testing.T) {
	for _, c := range []struct {
		name     string
		ground   Ground
		from, to float64
	}{{"light", OnLight, lightest, 0.42}, {"dark", OnDark, darkest, 0.86}} {
		for i := 0; i <= 100; i++ {
			v := float64(i) / 100
			want := c.from + (c.to-c.from)*math.Round(255*v)/255
			for _, sign := range []float64{-1, 1} {
				l, a, b := oklab(c.ground.Difference(sign * v))
				if math.Abs(l-want) > 0.012 {
					t.Errorf("%s: lightness of %g is %.3f, want %.3f", c.name, sign*v, l, want)
				}
				if v > 0.2 && (math.Hypot(a, b) < 0.03 || (b > 0) != (sign > 0)) {
					t.Errorf("%s: hue of %g is (%.3f, %.3f), want blue below 0 and orange above", c.name, sign*v, a, b)
				}
			}
		}
		if got, want := c.ground.Difference(7), c.ground.Difference(1); got != want {
			t.Errorf("%s: 7 is %v, want the end %v", c.name, got, want)
		}
		if got := c.ground.Difference(math.NaN()); got != holeTint.on(c.ground) {
			t.Errorf("%s: NaN is %v", c.name, got)
		}
	}
	if got, want := OnDark.Color(0), OnLight.Color(1); got != want {
		t.Errorf("0 on a dark ground is %v, want the other end %v", got, want)
	}
}
