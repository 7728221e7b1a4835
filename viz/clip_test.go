package viz

import (
	"fmt"
	"slices"
	"testing"
)

// The cut of an area is on the side of the rectangle, however far away the points outside are.
func TestClipAreaFarAway(t *testing.T) {
	r := rectangle{x: 10, y: 20, w: 30, h: 40}
	for _, far := range []float64{1e3, 1e6, 1e18, 1e300} {
		t.Run(fmt.Sprint(far), func(t *testing.T) {
			for name, area := range map[string][]point{
				"above": {{15, 30}, {20, -far}, {25, 30}}, "below": {{15, 30}, {20, far}, {25, 30}},
				"left": {{15, 30}, {-far, 35}, {15, 40}}, "right": {{15, 30}, {far, 35}, {15, 40}},
			} {
				kept := slices.Concat(clip(area, true, r)...)
				if len(kept) < 4 {
					t.Errorf("%s: %v, want two points inside and two cuts", name, kept)
				}
				for _, p := range kept {
					if !r.has(p) {
						t.Errorf("%s: %v is outside of %v", name, p, r)
					}
				}
			}
		})
	}
}
