package viz

import (
	"bytes"
	"io"
	"math"
	"os"
	"strings"
	"testing"
)

// lesson is a regression plot with points, a curve, a band, levels, and an axis limit that
// cuts off some of them.
func lesson() Chart {
	c := Chart{Title: "Nadaraya–Watson regression", X: "x", Y: "y", YAxis: Axis{Low: -0.5, High: 3.5},
		Lines:  []Line{{Name: "estimate"}, {Name: "truth", Dashed: true}, {Name: "observations", Points: true}},
		Bands:  []Band{{Name: "95%", Color: 1}},
		Levels: []Level{{Name: "mean", Y: 2}},
	}
	for i := range 51 {
		x := float64(i) / 10
		y := 2*math.Sin(x) + math.Pow(x, 0.8)
		c.Lines[0].X, c.Lines[0].Y = append(c.Lines[0].X, x), append(c.Lines[0].Y, y+0.2*math.Sin(7*x))
		c.Lines[1].X, c.Lines[1].Y = append(c.Lines[1].X, x), append(c.Lines[1].Y, y)
		c.Bands[0].X, c.Bands[0].Low, c.Bands[0].High = append(c.Bands[0].X, x), append(c.Bands[0].Low, y-0.5), append(c.Bands[0].High, y+0.5)
		if i%3 == 0 {
			c.Lines[2].X, c.Lines[2].Y = append(c.Lines[2].X, x), append(c.Lines[2].Y, y+0.7*math.Cos(23*x))
		}
	}
	return c
}

// loss is a curve on two logarithmic axes with a number that is not allowed there.
func loss() Chart {
	c := Chart{Title: "loss", X: "step", Y: "nats per token", XAxis: Axis{Log: true}, YAxis: Axis{Log: true}, Lines: []Line{{Name: "training"}}}
	for step := 1.; step <= 30000; step *= 1.5 {
		c.Lines[0].X, c.Lines[0].Y = append(c.Lines[0].X, step), append(c.Lines[0].Y, 7/math.Sqrt(step))
	}
	c.Lines[0].Y[3] = 0
	return c
}

func TestLessonCharts(t *testing.T) {
	for name, c := range map[string]Chart{"lesson": lesson(), "loss": loss()} {
		var svg, text, ascii, colour bytes.Buffer
		for _, err := range []error{c.SVG(&svg), c.PNG(io.Discard, 1), c.Text(&text, Terminal{Width: 60}), c.Text(&ascii, Terminal{Width: 60, ASCII: true}), c.Text(&colour, Terminal{Colors: TrueColor, Dark: true})} {
			if err != nil {
				t.Fatal(err)
			}
		}
		golden(t, "chart_"+name+".svg", svg.String())
		golden(t, "chart_"+name+".txt", text.String())
		golden(t, "chart_"+name+".ascii.txt", ascii.String())
		golden(t, "chart_"+name+".true.txt", colour.String())
		for line := range strings.Lines(text.String()) {
			if len([]rune(strings.TrimSuffix(line, "\n"))) > 60 {
				t.Errorf("%s: a line of %d characters: %s", name, len([]rune(line)), line)
			}
		}
		if dir := os.Getenv("SHOTS"); dir != "" {
			os.WriteFile(dir+"/"+name+".svg", svg.Bytes(), 0o644)
		}
	}
	// Nothing is drawn outside the plot area.
	c := lesson()
	s, err := c.layout()
	if err != nil {
		t.Fatal(err)
	}
	// From the line of 3 to the line of 0, plus half a unit.
	lines := s.shapes[0].paths
	above, below := lines[len(lines)-1][0].y, lines[0][0].y
	half := (below-above)/6 + markerSize*2
	for _, p := range s.shapes[:len(s.shapes)-6] { // except the legend
		if !strings.HasPrefix(p.tint.class, "c") {
			continue
		}
		for _, path := range p.paths {
			for _, at := range path {
				if at.y < above-half || at.y > below+half {
					t.Fatalf("a point of %s is at %.1f, outside of %.1f to %.1f", p.tint.class, at.y, above, below)
				}
			}
		}
	}
}

func TestAxisRefused(t *testing.T) {
	for want, change := range map[string]func(*Chart){
		"viz: the y axis goes from 2 to 1, want increasing numbers":             func(c *Chart) { c.YAxis = Axis{Low: 2, High: 1} },
		"viz: the x axis goes from -1 on a logarithmic scale, want more than 0": func(c *Chart) { c.XAxis = Axis{Low: -1, High: 1, Log: true} },
		"viz: the x axis goes from NaN to 1, want increasing numbers":           func(c *Chart) { c.XAxis = Axis{Low: math.NaN(), High: 1} },
		"viz: the x axis goes from 3 to 1, want increasing numbers":             func(c *Chart) { c.XAxis, c.YAxis = Axis{Low: 3, High: 1}, Axis{Low: 2, High: 1} },
		"viz: line 2 (observations) has 17 x and 0 y, want equal numbers":       func(c *Chart) { c.Lines[2].Y = nil },
		"viz: line 2 (observations) has colour 9, want 0 to 8, or Grey":         func(c *Chart) { c.Lines[2].Color = 9 },
	} {
		c := lesson()
		change(&c)
		if err := c.SVG(io.Discard); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestMultiples(t *testing.T) {
	var b bytes.Buffer
	m := Multiples{Charts: []Chart{lesson(), loss(), lesson()}, Columns: 2}
	if err := m.SVG(&b); err != nil {
		t.Fatal(err)
	}
	for title, n := range map[string]int{">loss</text>": 1, ">observations</text>": 2, ">nats per token</text>": 1} {
		if got := strings.Count(b.String(), title); got != n {
			t.Errorf("%s is there %d times, want %d", title, got, n)
		}
	}
	if !strings.Contains(b.String(), `width="1120"`) {
		t.Error("two columns of 560 are not 1120 wide")
	}
	if err := m.PNG(io.Discard, 0.5); err != nil {
		t.Error(err)
	}
	if err := (Multiples{}).SVG(io.Discard); err == nil {
		t.Error("no charts are drawn")
	}
}
