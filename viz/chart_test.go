package viz

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"
)

// falling returns a line that falls from 44 with the number of heads; a larger speed falls
// faster.
func falling(name string, speed float64) Line {
	l := Line{Name: name, Markers: true}
	for left := 72.; left >= 0; left -= 6 {
		l.X = append(l.X, left)
		l.Y = append(l.Y, 44*math.Exp(-speed*math.Pow((72-left)/72, 3)))
	}
	return l
}

// charts are the charts of golden files.
func charts() map[string]Chart {
	one, inf := math.NaN(), math.Inf(1)
	exact := falling("leave-one-out", 0.6)
	for _, y := range exact.Y {
		exact.Low, exact.High = append(exact.Low, y-1.1), append(exact.High, y+0.7)
	}
	reversed := falling("gradient, reversed", 7)
	reversed.Color, reversed.Dashed, reversed.Markers = 2, true, false
	mean := falling("random, mean", 2.5)
	mean.Color, mean.Markers = Grey, false
	random := Band{Name: "random, 95%", X: mean.X}
	for _, y := range mean.Y {
		random.Low, random.High = append(random.Low, y*0.8), append(random.High, min(y*1.15, 44))
	}
	lines := []Line{exact, falling("gradient", 0.8)}
	for i, name := range []string{"norm", "entropy", "confidence", "distance", "weights", "first come"} {
		lines = append(lines, falling(name, 1+0.35*float64(i)))
	}
	return map[string]Chart{
		"curves": {
			Title: "What is left", X: "heads left", Y: "BLEU", Falling: true, Lines: append(lines, reversed, mean),
			Bands: []Band{random}, Levels: []Level{{"whole model", 44}}, Ticks: []float64{72, 60, 48, 36, 24, 12, 0},
		},
		"odd": {
			Title: "</title><script>alert(1)</script>\n&", X: "<b>", Y: "\xff\u202e", Width: 300, Height: 150,
			Lines: []Line{{Name: `"><img src=x onerror=1>`, Markers: true,
				X: []float64{1, 2, 3, 4, one, 6, 7, 8}, Y: []float64{1, inf, 3, one, 5, 6, -inf, 1e301},
				Low: []float64{0, 0, one, 0, 0, 5, 0, 0}, High: []float64{2, 2, 2, 2, 2, inf, 2, 2}}},
			Bands:  []Band{{Name: "a", X: []float64{1, 2, 3, 4, 5}, Low: []float64{0, one, 1, 1, 1}, High: []float64{1, 2, 3, inf, 4}}},
			Levels: []Level{{"none", one}},
		},
		"point":   {Lines: []Line{{X: []float64{3}, Y: []float64{-7}}}, Bare: true},
		"equal":   {Lines: []Line{{Name: "a", X: []float64{1e9, 1e9 + 1e-3}, Y: []float64{0, 0}, Markers: true}}},
		"nothing": {Lines: []Line{{Name: "a", X: []float64{1, 2}, Y: []float64{one, one}}}},
		"large":   {Lines: []Line{{Name: "a", X: []float64{-1e300, 1e300}, Y: []float64{-1e300, 1e300}}}},
		"small":   {Lines: []Line{{Name: "a", X: []float64{0, 5e-324}, Y: []float64{1e-9, 3e-9}}}},
	}
}

func TestChartSVG(t *testing.T) {
	for name, c := range charts() {
		var b strings.Builder
		if err := c.SVG(&b); err != nil {
			t.Fatal(err)
		}
		checkXML(t, name, b.String())
		if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Errorf("%s has a coordinate that is no number", name)
		}
		if strings.Contains(b.String(), "id=") {
			t.Errorf("%s has an id, of which a page could hold two", name)
		}
		if name == "curves" || name == "odd" {
			golden(t, "chart_"+name+".svg", b.String())
		}
	}
}

// Everything is inside the picture, texts do not overlap each other or the lines, and the
// legend is below the lines.
func TestChartLayout(t *testing.T) {
	for name, c := range charts() {
		s, err := c.layout()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.shapes {
			for _, path := range p.paths {
				for _, at := range path {
					if !(at.x >= 0 && at.y >= 0 && at.x <= s.width && at.y <= s.height) {
						t.Errorf("%s: a point at %v of %g×%g", name, at, s.width, s.height)
					}
				}
			}
		}
		var boxes []rectangle
		for _, c := range s.texts {
			w := textWidth(c.text, c.size) * 0.98
			box := rectangle{c.x + [...]float64{0, -w / 2, -w}[c.anchor], c.y - 0.8*c.size, w, c.size}
			if box.x < 0 || box.y < 0 || box.x+box.w > s.width || box.y+box.h > s.height {
				t.Errorf("%s: %q at %v is not within %g×%g", name, c.text, box, s.width, s.height)
			}
			for _, o := range boxes {
				if box.x < o.x+o.w && o.x < box.x+box.w && box.y < o.y+o.h && o.y < box.y+box.h {
					t.Errorf("%s: %q overlaps another text", name, c.text)
				}
			}
			boxes = append(boxes, box)
		}
	}
}

// With Falling, x falls from left to right; y always grows upwards.
func TestChartFalls(t *testing.T) {
	c := Chart{Lines: []Line{{X: []float64{72, 36, 6}, Y: []float64{44, 40, 2}}}}
	for _, c.Falling = range []bool{false, true} {
		s, err := c.layout()
		if err != nil {
			t.Fatal(err)
		}
		line := s.shapes[len(s.shapes)-1].paths[0]
		if right := line[0].x < line[1].x && line[1].x < line[2].x; right != c.Falling || line[0].y >= line[2].y {
			t.Errorf("falling %v: %v", c.Falling, line)
		}
	}
}

func TestChartBreaks(t *testing.T) {
	c := charts()["odd"]
	x, y := c.spans()
	f := frame{rectangle: rectangle{w: 100, h: 100}, x: x, y: y}
	var lengths []int
	for _, run := range f.runs(c.Lines[0].X, c.Lines[0].Y) {
		lengths = append(lengths, len(run))
	}
	if got := len(f.area(c.Bands[0])); len(lengths) != 3 || lengths[0]+lengths[1]+lengths[2] != 3 || got != 3 {
		t.Errorf("the line has pieces of %v points, want 1, 1 and 1; the band has %d, want 3", lengths, got)
	}
}

func TestChartPNG(t *testing.T) {
	for name, c := range charts() {
		s, err := c.layout()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := c.PNG(&b, 2); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := img.Bounds().Size(), image.Pt(int(math.Ceil(2*s.width)), int(math.Ceil(2*s.height))); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
		// The last marker is on top of everything.
		last := s.shapes[len(s.shapes)-1]
		if !last.filled || last.opacity != 0 {
			continue
		}
		middle := point{}
		for _, p := range last.paths[0] {
			middle.x += p.x / float64(len(last.paths[0]))
			middle.y += p.y / float64(len(last.paths[0]))
		}
		if got := color.RGBAModel.Convert(img.At(int(2*middle.x), int(2*middle.y))); got != last.tint.light {
			t.Errorf("%s: the last marker is %v, want %v", name, got, last.tint.light)
		}
	}
	if err := charts()["curves"].PNG(io.Discard, 1e9); err == nil || !strings.Contains(err.Error(), "viz: a picture of ") {
		t.Errorf("a large picture: %v", err)
	}
}

func TestChartRefused(t *testing.T) {
	two, three := []float64{1, 2}, []float64{1, 2, 3}
	line := Line{Name: "a\n", X: two, Y: two}
	for _, c := range []struct {
		c    Chart
		want string
	}{
		{Chart{}, "viz: a chart without lines"},
		{Chart{Lines: []Line{{}}}, "viz: line 0 has no points"},
		{Chart{Lines: []Line{line, {Name: "b\n", X: two, Y: three}}}, `viz: line 1 (b\n) has 2 x and 3 y, want equal numbers`},
		{Chart{Lines: []Line{{X: two, Y: two, Low: two}}}, "viz: line 0 has 2 points with error bars from 2 to 0 numbers, want equal numbers"},
		{Chart{Lines: []Line{{X: two, Y: two, Color: 9}}}, "viz: line 0 has colour 9, want 0 to 8, or Grey"},
		{Chart{Lines: []Line{line}, Bands: []Band{{X: two, Low: two, High: three}}}, "viz: band 0 has 2 x, 2 low and 3 high, want equal numbers"},
		{Chart{Lines: []Line{line}, Bands: []Band{{Color: -2}}}, "viz: band 0 has colour -2, want 0 to 8, or Grey"},
		{Chart{Lines: []Line{line}, Width: math.NaN()}, "viz: a chart of NaN×260 pixels, want at least 160×60 and at most 10000"},
		{Chart{Lines: []Line{line}, Height: 1e6}, "viz: a chart of 560×1e+06 pixels, want at least 160×60 and at most 10000"},
	} {
		for name, write := range map[string]func(io.Writer) error{"svg": c.c.SVG, "png": func(w io.Writer) error { return c.c.PNG(w, 1) }} {
			var b bytes.Buffer
			if err := write(&b); err == nil || err.Error() != c.want || b.Len() > 0 {
				t.Errorf("%s: error %v and %d bytes, want %s", name, err, b.Len(), c.want)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		span span
		n    int
		want string
	}{
		{span{0, 1}, 5, "0 0.2 0.4 0.6 0.8 1.0"},
		{span{-0.35, 0.3}, 4, "−0.2 0 0.2"},
		{span{6, 72}, 7, "10 20 30 40 50 60 70"},
		{span{43.92, 44.11}, 4, "43.95 44.00 44.05 44.10"},
		{span{0, 3e7}, 3, "0 1e+07 2e+07 3e+07"},
		{span{1, 1}.opened(0), 4, "0.90 0.95 1.00 1.05 1.10"},
	} {
		_, texts := c.span.ticks(c.n)
		if got := strings.Join(texts, " "); got != c.want {
			t.Errorf("ticks of %v: %s, want %s", c.span, got, c.want)
		}
	}
}

// All readers can tell the lines apart on both grounds, and the lines are visible.
func TestLineColors(t *testing.T) {
	for ground, of := range map[tint]func(tint) color.RGBA{
		{"light", paperTint.light, color.RGBA{}}: func(t tint) color.RGBA { return t.light },
		{"dark", paperTint.dark, color.RGBA{}}:   func(t tint) color.RGBA { return t.dark },
	} {
		luminance := func(c color.RGBA) float64 {
			return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B) + 0.05
		}
		for i, a := range lineTints {
			contrast := luminance(of(a)) / luminance(ground.light)
			if contrast = max(contrast, 1/contrast); contrast < 3 {
				t.Errorf("%s: colour %d has contrast %.2f, want 3", ground.class, i, contrast)
			}
			for j, b := range lineTints[:i] {
				if j == 0 {
					continue // grey lines have no markers
				}
				for sight, m := range sights {
					c, c2 := m.see(of(a)), m.see(of(b))
					l, x, y := oklabOf(c[0], c[1], c[2])
					l2, x2, y2 := oklabOf(c2[0], c2[1], c2[2])
					if d := math.Hypot(math.Hypot(l-l2, x-x2), y-y2); d < 0.09 {
						t.Errorf("%s: to %s, colours %d and %d are %.3f apart, want 0.09", ground.class, sight, i, j, d)
					}
				}
			}
		}
	}
}
