package viz

import (
	"bytes"
	"errors"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/attn-go/attn/tensor"
)

// triangle is a causal mask.
type triangle struct{ lq, lk int }

func (m triangle) Visible(shape []int) tensor.Visible {
	if shape[len(shape)-2] != m.lq || shape[len(shape)-1] != m.lk {
		panic(&tensor.ShapeError{Op: "triangle", Arg: "x", Got: shape, Want: "[… lq lk]"})
	}
	return m
}

// Row has a hole too, at the first key of the last query.
func (m triangle) Row(r int, visible []bool) (lo, hi int, holes bool) {
	for j := range visible {
		visible[j] = j > 0
	}
	return 0, r%m.lq + 1 + m.lk - m.lq, r%m.lq == m.lq-1
}

// Masked cells are told from the mask, those of each head from its own rows.
func TestMaskedWeights(t *testing.T) {
	for _, shape := range [][]int{{3, 5}, {2, 3, 5}, {7, 2, 3, 5}} {
		f := MaskedWeights(tensor.Zeros(shape...), triangle{3, 5})
		for _, p := range f.Panels {
			want := []bool{false, false, false, true, true, false, false, false, false, true, true, false, false, false, false}
			for i := range want {
				if p.masked(i) != want[i] {
					t.Fatalf("%v: %v, want %v", shape, p.Masked, want)
				}
			}
		}
	}
	if p := MaskedWeights(tensor.Zeros(3, 5), nil).Panels[0]; p.Masked != nil {
		t.Errorf("without a mask %v", p.Masked)
	}
	if err := tensor.Catch(func() { MaskedWeights(tensor.Zeros(3, 5), triangle{5, 3}) }); !errors.As(err, new(*tensor.ShapeError)) {
		t.Errorf("a mask that does not fit: %v", err)
	}
}

// Masked cells are hatched in every picture and only they are, a value that is no number
// has a colour, and both are in the legend.
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
	small, _, _ := Panel{Rows: tokens(1), Columns: tokens(4), Values: []float32{0, 0, 0, 0.25}, Masked: []bool{true, true, true, false}}.thin(1, 2, extent{}.keep())
	if !small.masked(0) || small.masked(1) || small.Values[1] != 0.25 {
		t.Errorf("thinned out: %+v", small)
	}
	f.Panels[0].Masked = f.Panels[0].Masked[:5]
	if err := f.SVG(&svg); err == nil || err.Error() != "viz: panel 0 says of 5 cells whether they are masked, want 6" {
		t.Errorf("error %v", err)
	}
}
