package viz

import (
	"bytes"
	"errors"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

// Each head has the masked cells of the mask for its rows.
func TestMaskedWeights(t *testing.T) {
	// The first key of the last query is also masked.
	masked := attn.And(mask.Causal(), mask.AllowFunc(func(_, _, i, j int) bool { return i != 2 || j > 0 }))
	for _, shape := range [][]int{{3, 5}, {2, 3, 5}, {7, 2, 3, 5}} {
		f := MaskedWeights(tensor.Zeros(shape...), masked)
		for _, p := range f.Panels {
			want := []bool{false, false, false, true, true, false, false, false, false, true, true, false, false, false, false}
			for i := range want {
				if p.masked(i) != want[i] {
					t.Fatalf("%v: %v, want %v", shape, p.Masked, want)
				}
			}
		}
	}
	if p := MaskedWeights(tensor.Zeros(3, 5), attn.Mask{}).Panels[0]; p.Masked != nil {
		t.Errorf("without a mask %v", p.Masked)
	}
	if err := tensor.Catch(func() { MaskedWeights(tensor.Zeros(3, 5), mask.Allow(make([]bool, 15), 5, 3)) }); !errors.As(err, new(*tensor.ShapeError)) {
		t.Errorf("a mask that does not fit: %v", err)
	}
}

// In every picture exactly the masked cells are hatched, a value that is not a number has
// its own colour, and the legend explains both.
func TestMaskedCells(t *testing.T) {
	f := Figure{Panels: []Panel{{Rows: tokens(2), Columns: tokens(3), Values: []float32{1, 0, 0, nan, 0.5, 0}, Masked: []bool{false, true, true, false, false, false}}}}
	var svg, img bytes.Buffer
	if err := errors.Join(f.SVG(&svg), f.PNG(&img, 2)); err != nil {
		t.Fatal(err)
	}
	s, _ := f.layout()
	at := s.panels[0].cell(0, 1)
	if want := `<path fill="url(#masked)" d="M` + number(at.x) + " " + number(at.y) + outline(2*at.w, at.h) + `"/>`; strings.Count(svg.String(), `fill="url(#masked)" d`) != 1 || !strings.Contains(svg.String(), want) {
		t.Errorf("%s is missing or not alone in %s", want, svg.String())
	}
	for _, want := range []string{">masked</text>", ">not a number</text>", `<path class="hole" fill="#d63c6e" d="M0 1h1v1h-1z"/>`} {
		if !strings.Contains(svg.String(), want) {
			t.Errorf("%s is missing in %s", want, svg.String())
		}
	}
	picture, err := png.Decode(&img)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		at := s.panels[0].cell(i/3, i%3)
		colors := map[color.Color]bool{}
		for x := 2 * (at.x + 1); x < 2*(at.x+at.w-1); x++ {
			for y := 2 * (at.y + 1); y < 2*(at.y+at.h-1); y++ {
				colors[picture.At(int(x), int(y))] = true
			}
		}
		if hatched := colors[stripeTint.light] && colors[maskTint.light]; hatched != (i == 1 || i == 2) {
			t.Errorf("cell %d has the colours %v", i, colors)
		}
	}
	for kind, on := range terminals {
		text := codes.ReplaceAllString(drawn(t, f, on), "")
		stroke := "╱"
		if on.ASCII {
			stroke = "/"
		}
		if strings.Count(text, stroke) != 5 || !strings.Contains(text, stroke+" is masked") || !strings.Contains(text, " is not a number") {
			t.Errorf("%s: %s", kind, text)
		}
	}
	small, _, _ := extent{}.thin(Panel{Rows: tokens(1), Columns: tokens(4), Values: []float32{0, 0, 0, 0.25}, Masked: []bool{true, true, true, false}}, 1, 2)
	if !small.masked(0) || small.masked(1) || small.Values[1] != 0.25 {
		t.Errorf("thinned out: %+v", small)
	}
	f.Panels[0].Masked = f.Panels[0].Masked[:5]
	if err := f.SVG(&svg); err == nil || err.Error() != "viz: panel 0 has 5 mask values, want 6" {
		t.Errorf("error %v", err)
	}
}
