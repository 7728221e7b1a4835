package viz

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/attn-go/attn/tensor"
)

func TestWeights(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, shape := range [][]int{{3, 5}, {2, 3, 5}, {7, 2, 3, 5}} {
		x := tensor.Randn(rng, shape...)
		for name, f := range map[string]Figure{"numbers": Weights(x), "tokens": Weights(x, tokens(3), tokens(5))} {
			last := f.Panels[len(f.Panels)-1]
			if n := len(x.Data()); len(f.Panels) != n/15 || last.Values[14] != x.Data()[n-1] || len(last.Rows) != 3 || len(last.Columns) != 5 {
				t.Errorf("%v, %s: %d panels, the last %+v", shape, name, len(f.Panels), last)
			}
			if err := f.SVG(&bytes.Buffer{}); err != nil {
				t.Error(err)
			}
		}
	}
	if rows := Weights(tensor.Randn(rng, 7, 2, 3, 5)).lines(2); len(rows) != 7 || rows[6][1].Title != "sequence 6, head 1" {
		t.Errorf("%d rows of heads, want one for each of 7 sequences", len(rows))
	}
	square := Weights(tensor.Randn(rng, 3, 3), tokens(3))
	if p := square.Panels[0]; p.Columns[2] != "t2" || p.Rows[2] != "t2" {
		t.Errorf("one list of tokens is for both axes, not %v and %v", p.Rows, p.Columns)
	}
	for name, run := range map[string]func(){
		"a vector":          func() { Weights(tensor.Randn(rng, 3)) },
		"five axes":         func() { Weights(tensor.Randn(rng, 1, 1, 1, 2, 3)) },
		"too few tokens":    func() { Weights(tensor.Randn(rng, 3, 5), tokens(3)) },
		"too many lists":    func() { Weights(tensor.Randn(rng, 3, 5), tokens(3), tokens(5), nil) },
		"tokens turned":     func() { Weights(tensor.Randn(rng, 3, 5), tokens(5), tokens(3)) },
		"tokens of nothing": func() { Weights(tensor.Randn(rng, 3, 5), []string{}) },
	} {
		if err := tensor.Catch(run); !errors.As(err, new(*tensor.ShapeError)) {
			t.Errorf("%s: %v, want a ShapeError", name, err)
		}
	}
}

// A signed figure shows both signs, paper at 0, the value farthest from 0 in merged cells,
// and titles at every panel.
func TestSignedFigure(t *testing.T) {
	f := Figure{Scale: Largest, Signed: true, RowTitle: "query", ColumnTitle: "key <1>", Unit: "difference"}
	for range 2 {
		f.Panels = append(f.Panels, Panel{Title: "a − b", Rows: tokens(2), Columns: tokens(3), Values: []float32{0, -0.5, 0.25, 0.125, 0.5, nan}})
	}
	var svg, text bytes.Buffer
	if err := f.SVG(&svg); err != nil {
		t.Fatal(err)
	}
	golden(t, "figure_difference.svg", svg.String())
	if n := strings.Count(svg.String(), "key &lt;1&gt;"); n != 2 {
		t.Errorf("%d panels of 2 say what their columns are", n)
	}
	for _, c := range []struct {
		name string
		t    Terminal
	}{{"none", Terminal{}}, {"true", Terminal{Colors: TrueColor, Dark: true}}, {"256", Terminal{Colors: Colors256, Light: true}}, {"16", Terminal{Colors: Colors16, Dark: true}}, {"any", Terminal{Colors: TrueColor}}} {
		text.Reset()
		if err := (Figure{Scale: Largest, Signed: true, Panels: f.Panels[:1]}).Text(&text, c.t); err != nil {
			t.Fatal(err)
		}
		golden(t, "figure_difference."+c.name+".txt", text.String())
	}
	if err := f.PNG(&bytes.Buffer{}, 1); err != nil {
		t.Error(err)
	}
	e, err := f.check()
	if err != nil || e.shade(0) != e.paper() || e.colors(OnLight)[e.shade(0)] != OnLight.Color(0) || e.shade(-0.5) != 1 || e.shade(0.5) != 255 {
		t.Errorf("%+v, %v", e, err)
	}
	small, _, _ := e.thin(Panel{Rows: tokens(1), Columns: tokens(4), Values: []float32{0.25, -0.5, 0.5, nan}}, 1, 2)
	if small.Values[0] != -0.5 || small.Values[1] == small.Values[1] {
		t.Errorf("thinned out it is %v, want -0.5 and NaN", small.Values)
	}
	if os.Getenv("SHOTS") != "" {
		os.WriteFile(os.Getenv("SHOTS")+"/difference.svg", svg.Bytes(), 0o644)
	}
}
