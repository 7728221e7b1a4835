package viz

import (
	"fmt"
	"image/color"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/cells"
)

// The Go fonts draw "-" as a minus sign: words and dates get a hyphen instead.
func TestHyphens(t *testing.T) {
	for text, want := range map[string]string{
		"leave-one-out": "leave~one~out", "2019-03-05": "2019~03~05", "-": "~", "-3": "-3", "a -.5": "a -.5", "a - b": "a ~ b", "x=-1": "x=-1", "1e-05": "1e~05",
	} {
		if got := strings.ReplaceAll(hyphenated(text), string(softHyphen), "~"); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	p := newPen(regular(), 100)
	if hyphen, minus := p.width("a-b")-p.width("ab"), p.width("-1")-p.width("1"); hyphen > 0.7*minus {
		t.Errorf("a hyphen is %.0f wide, a minus %.0f", hyphen, minus)
	}
}

// The numbers below the colour bar are round for every largest value.
func TestLegendNumbers(t *testing.T) {
	for top, want := range map[float32]string{1: "0 0.2 0.4 0.6 0.8 1.0", 0.785: "0 0.2 0.4 0.6", 0.4: "0 0.1 0.2 0.3 0.4", 37: "0 10 20 30", 1e-4: "0 0.00005 0.00010", -1: "0 0.2 0.4 0.6 0.8 1.0"} {
		f := Figure{Panels: []Panel{{Rows: tokens(1), Columns: tokens(1), Values: []float32{top}}}, Scale: Largest}
		s, err := f.layout()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, x := range s.ticks {
			at := slices.IndexFunc(s.texts, func(c caption) bool { return c.x == x && c.y > s.bar.y })
			got = append(got, s.texts[at].text)
			if x < s.bar.x || x > s.bar.x+s.bar.w+0.01 || i == 0 && math.Abs(x-s.bar.x) > 0.01 {
				t.Errorf("%g: a number at %g of %v", top, x, s.bar)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%g: %v, want %s", top, got, want)
		}
	}
}

// Of many numbers on an axis some are written, at round distances; of many words none.
func TestScalesOfNumbers(t *testing.T) {
	numbers := make([]string, 101)
	for i := range numbers {
		numbers[i] = fmt.Sprint(float64(i) / 20)
	}
	values := make([]float32, 101*101)
	f := Figure{Panels: []Panel{{Rows: numbers, Columns: numbers, Values: values}, {Rows: numbers, Columns: numbers, Values: values}}}
	s, err := f.layout()
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, c := range s.texts {
		if c.anchor == end && c.x < s.panels[1].x-30 {
			rows = append(rows, c.text)
		}
	}
	if got := strings.Join(rows, " "); got != "0 1 2 3 4 5" {
		t.Errorf("rows %s", got)
	}
	words := tokens(101)
	f.Panels[0].Rows, f.Panels[1].Rows = words, words
	if s, _ = f.layout(); slices.ContainsFunc(s.texts, func(c caption) bool { return c.text == "t20" }) {
		t.Error("of many small words some are written")
	}
}

// Every colour of a picture has a counterpart for a dark ground.
func TestDarkPictures(t *testing.T) {
	fills := regexp.MustCompile(`<path class="([^"]+)" (?:fill|color)="#`)
	all := map[string]interface{ svgText() string }{}
	for name, f := range figures() {
		all[name] = figureText{f}
	}
	for name, c := range charts() {
		all["chart "+name] = chartText{c}
	}
	for name, p := range all {
		text := p.svgText()
		_, style, _ := strings.Cut(text, "<style>@media screen and (prefers-color-scheme:dark){")
		style, _, ok := strings.Cut(style, "}</style>")
		if !ok {
			t.Errorf("%s has no style", name)
		}
		for _, m := range fills.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(style, " ."+m[1]+"{") {
				t.Errorf("%s: the dark has no colour for %s", name, m[1])
			}
		}
	}
	causal := figures()["causal"]
	own := (figureText{causal}).svgText()
	causal.Inline = true
	text, page := (figureText{causal}).svgText(), DarkFigures()
	if strings.Contains(text, "<style") {
		t.Error("a figure within a page has a style")
	}
	for _, rule := range regexp.MustCompile(`\.map [^}]*}`).FindAllString(own, -1) {
		if !strings.Contains(page, rule) {
			t.Errorf("the page's style lacks %s", rule)
		}
	}
	c := charts()["curves"]
	c.Inline = true
	if text := (chartText{c}).svgText(); strings.Contains(text, "<style") {
		t.Error("a chart within a page has a style")
	}
}

type figureText struct{ f Figure }

func (f figureText) svgText() string {
	var b strings.Builder
	_ = f.f.SVG(&b)
	return b.String()
}

type chartText struct{ c Chart }

func (c chartText) svgText() string {
	var b strings.Builder
	_ = c.c.SVG(&b)
	return b.String()
}

// On an unknown background, both ends of the scale differ clearly from white and from black,
// and lightness rises in between.
func TestUnknownBackground(t *testing.T) {
	last := 0.
	for i, c := range even() {
		l, _, _ := oklab(c)
		if l < 0.36 || l > 0.84 || l < last-0.004 {
			t.Errorf("shade %d has lightness %.3f after %.3f", i, l, last)
		}
		last = l
	}
	unseen := []color.RGBA{rgb(0), rgb(0xffffff)}
	for _, v := range []float64{-1, -0.5, 0, 0.5, 1} {
		if c := onEither.Difference(v); slices.Contains(unseen, c) {
			t.Errorf("%g is %v", v, c)
		}
	}
	for _, colors := range []Colors{Colors16, Colors256, TrueColor} {
		for _, signed := range []bool{false, true} {
			f := figures()["cross"]
			f.Signed = signed
			text := drawn(t, f, Terminal{Colors: colors, Width: 60})
			for _, code := range []string{"[40m", "[107m", "[47m", "48;5;231m", "48;5;16m", "48;2;255;255;255m", "48;2;0;0;0m"} {
				if strings.Contains(text, code) {
					t.Errorf("colours %d: a cell is black or white: %s", colors, code)
				}
			}
		}
	}
	for i, tint := range lineTints {
		if l, _, _ := oklab(tint.on(onEither)); math.Abs(l-0.6) > 0.02 {
			t.Errorf("line %d has lightness %.2f", i, l)
		}
	}
}

// Twelve heads that do not fit on one line are drawn in lines of four, and not 6 + 5 + 1.
func TestEvenLinesOfHeads(t *testing.T) {
	for n, want := range map[int][]int{12: {4, 4, 4}, 16: {4, 4, 4, 4}, 8: {4, 4}, 5: {5}, 7: {4, 3}} {
		f := Figure{}
		for h := range n {
			p := panel(h, tokens(7), tokens(14), 1)
			p.Title = fmt.Sprintf("layer 0, head %d", h)
			f.Panels = append(f.Panels, p)
		}
		var got []int
		for line := range strings.Lines(drawn(t, f, Terminal{Width: 100})) {
			if heads := strings.Count(line, "head "); heads > 0 {
				got = append(got, heads)
			}
			if cells.Width(strings.TrimSuffix(line, "\n")) > 100 {
				t.Errorf("%q is too wide", line)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d heads in lines of %v, want %v", n, got, want)
		}
	}
}

// Charts below each other begin at the same x, and have at least three y labels.
func TestSharedStart(t *testing.T) {
	curve := func(low, high float64) Chart {
		return Chart{X: "step", Y: "y", Height: 80, Hover: true, Lines: []Line{{Name: "a", X: []float64{0, 5, 10}, Y: []float64{low, math.NaN(), high}}}}
	}
	m := Multiples{Charts: []Chart{curve(0, 0.003), curve(8123, 11456), curve(0.5, 0.9)}, Columns: 1}
	s, err := m.layout()
	if err != nil {
		t.Fatal(err)
	}
	starts, numbers := map[float64]int{}, map[float64]int{}
	for _, p := range s.shapes {
		if p.tint.class == axisTint.class {
			starts[p.paths[0][0].x]++
		}
	}
	for _, c := range s.texts {
		if c.anchor == end {
			numbers[math.Floor(c.y/(s.height/3))]++
		}
	}
	if len(starts) != 1 || len(numbers) != 3 || numbers[0] < 3 || numbers[1] < 3 || numbers[2] < 3 {
		t.Errorf("axes begin at %v, numbers of y by chart: %v", starts, numbers)
	}
	var told []string
	for _, p := range s.strips {
		told = append(told, p.x+" "+p.text)
		if p.rectangle.x < 0 || p.rectangle.x+p.w > s.width || p.y < 0 || p.y+p.h > s.height {
			t.Errorf("strip %+v leaves the picture", p)
		}
	}
	want := []string{"0 step 0: a 0", "10 step 10: a 0.003", "0 step 0: a 8123", "10 step 10: a 11456", "0 step 0: a 0.5", "10 step 10: a 0.9"}
	if !slices.Equal(told, want) {
		t.Errorf("the pointer shows %q, want %q", told, want)
	}
}
