package reports

import (
	"math"
	"testing"
)

// Where no head has more than 0, none stands out.
func TestImportanceOfNothing(t *testing.T) {
	for v, want := range map[float64]string{0: "·", -1: "-", math.NaN(): "?"} {
		if got := shade(v, 0); got != want {
			t.Errorf("shade of %v is %q, want %q", v, got, want)
		}
	}
	r := Importance{
		Layers: []Layer{{Kind: "encoder", Heads: 2}},
		Scores: []Scores{{Method: "leave-one-out", Values: [][]Number{{0, -1}}}},
	}
	for _, v := range r.Figure().Panels[0].Values {
		if v != 0 {
			t.Errorf("drawn as %v, want 0", v)
		}
	}
}
