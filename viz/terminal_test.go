package viz

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/cells"
)

func drawn(t *testing.T, f Figure, on Terminal) string {
	t.Helper()
	var b strings.Builder
	if err := f.Text(&b, on); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var terminals = map[string]Terminal{
	"none":  {Width: 60},
	"ascii": {Width: 60, ASCII: true},
	"16":    {Width: 60, Colors: Colors16, Dark: true},
	"256":   {Width: 60, Colors: Colors256, Dark: true},
	"true":  {Width: 60, Colors: TrueColor, Dark: true},
	"light": {Width: 60, Colors: TrueColor, Light: true},
	"any":   {Width: 60, Colors: TrueColor},
	"any16": {Width: 60, Colors: Colors16},
}

func TestTerminal(t *testing.T) {
	for name, f := range figures() {
		for kind, on := range terminals {
			got := drawn(t, f, on)
			if kind == "none" || name == "cross" || (name == "heads" || name == "odd") && kind == "256" {
				golden(t, "figure_"+name+"."+kind+".txt", got)
			}
		}
	}
}

var codes = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// Lines do not wrap at any width, and colours end at the end of the line.
func TestNothingWraps(t *testing.T) {
	all := figures()
	all["large"] = Figure{Title: strings.Repeat("漢", 300), Panels: []Panel{panel(0, tokens(500), tokens(700), 1)}, Scale: Largest}
	step := 7
	if testing.Short() {
		step = 29
	}
	for name, f := range all {
		for kind, on := range terminals {
			for on.Width = narrowest; on.Width < 130; on.Width += step {
				for line := range strings.Lines(drawn(t, f, on)) {
					line = strings.TrimSuffix(line, "\n")
					if strings.Contains(line, "\x1b") && !strings.HasSuffix(line, "\x1b[0m") && !strings.Contains(line, "\x1b[0m ") {
						t.Fatalf("%s, %s: the colours of %q do not end", name, kind, line)
					}
					line = codes.ReplaceAllString(line, "")
					if n := cells.Width(line); n > on.Width {
						t.Fatalf("%s, %s: %q is %d wide, want at most %d", name, kind, line, n, on.Width)
					}
					if i := strings.IndexFunc(line, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x2028 && r <= 0x202e }); i >= 0 {
						t.Fatalf("%s, %s: %q moves the cursor", name, kind, line[i:])
					}
				}
			}
		}
	}
}

func TestNoColorsNoCodes(t *testing.T) {
	for name, f := range figures() {
		if text := drawn(t, f, Terminal{}); strings.Contains(text, "\x1b") {
			t.Errorf("%s has codes without colours", name)
		}
		if text := drawn(t, f, Terminal{ASCII: true}); strings.ContainsAny(text, "·░▒▓█▀") {
			t.Errorf("%s has shades that are not ASCII", name)
		}
	}
}

// A map of 5,000 tokens is thinned out to a visible size, and says so.
func TestThousandsOfTokens(t *testing.T) {
	f := Figure{Panels: []Panel{{Rows: tokens(5000), Columns: tokens(5000), Values: make([]float32, 25e6)}}}
	f.Panels[0].Values[4321*5000+1234] = 1
	text := drawn(t, f, Terminal{Width: 80})
	if n := strings.Count(text, "\n"); n > 70 {
		t.Errorf("%d lines, want a screen or two", n)
	}
	if !strings.Contains(text, "each cell is the largest of 84×73 weights") {
		t.Errorf("the legend does not tell that the map is thinned out:\n%s", text)
	}
	if strings.Count(text, "█") != 3 { // one in the map, two in the legend
		t.Errorf("the only weight is lost:\n%s", text)
	}
}

func TestTooNarrow(t *testing.T) {
	var b strings.Builder
	err := figures()["cross"].Text(&b, Terminal{Width: narrowest - 1})
	if err == nil || err.Error() != "viz: a width of 23 characters, want at least 24" || b.Len() > 0 {
		t.Errorf("error %v after %q", err, b.String())
	}
}

func TestDetect(t *testing.T) {
	for env, want := range map[string]Colors{
		"":                                        NoColors,
		"TERM=dumb":                               NoColors,
		"TERM=dumb COLORTERM=truecolor":           NoColors,
		"TERM=xterm":                              Colors16,
		"TERM=linux":                              Colors16,
		"TERM=xterm-256color":                     Colors256,
		"TERM=xterm-256color NO_COLOR=1":          NoColors,
		"TERM=xterm-256color NO_COLOR=":           Colors256,
		"TERM=xterm-256color COLORTERM=24bit":     TrueColor,
		"TERM=xterm COLORTERM=truecolor":          TrueColor,
		"TERM=xterm-direct":                       TrueColor,
		"WT_SESSION=1":                            TrueColor,
		"NO_COLOR=0 WT_SESSION=1":                 NoColors,
		"TERM=screen-256color COLORTERM=rxvt-xpm": Colors256,
	} {
		if got := DetectColors(environment(env)); got != want {
			t.Errorf("%s: %d, want %d", env, got, want)
		}
	}
	for env, want := range map[string][2]bool{
		"": {}, "COLORFGBG=0;15": {true, true}, "COLORFGBG=0;default;7": {true, true}, "COLORFGBG=15;0": {false, true}, "COLORFGBG=15": {true, true}, "COLORFGBG=15;default": {},
	} {
		if light, ok := DetectLight(environment(env)); [2]bool{light, ok} != want {
			t.Errorf("%s: light %v, known %v", env, light, ok)
		}
	}
}

func environment(list string) func(string) string {
	return func(name string) string {
		for _, field := range strings.Fields(list) {
			if value, ok := strings.CutPrefix(field, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// A row of heads stays on one line on a narrow terminal: its panels shrink.
func TestRowsOfHeadsAreNotBroken(t *testing.T) {
	f := Figure{Columns: 16}
	for layer := range 2 {
		for head := range 16 {
			p := panel(head, tokens(41), tokens(43), 1)
			p.Title, p.Layer, p.NewLine = fmt.Sprintf("layer %d, head %d", layer, head), layer, head == 0
			f.Panels = append(f.Panels, p)
		}
	}
	for _, colors := range []Colors{NoColors, TrueColor} {
		var b bytes.Buffer
		if err := f.Text(&b, Terminal{Width: 200, Colors: colors}); err != nil {
			t.Fatal(err)
		}
		for layer := range 2 {
			row := regexp.MustCompile(fmt.Sprintf(`(?m)^%[1]d\.0 +%[1]d\.1 .* %[1]d\.15 *$`, layer))
			if !row.Match(b.Bytes()) {
				t.Errorf("layer %d is not one row:\n%s", layer, b.String())
			}
		}
		if !strings.Contains(b.String(), "titles are layer.head") || !strings.Contains(b.String(), "each cell is the largest of") {
			t.Errorf("the legend does not tell what is short:\n%s", b.String())
		}
	}
}

// A matrix that belongs to no single layer or head has no number to shorten its title to.
func TestTitleWithoutNumbers(t *testing.T) {
	f := Figure{Columns: 16}
	for range 16 {
		p := panel(Several, tokens(41), tokens(43), 1)
		p.Title, p.Layer = "a group of heads", Several
		f.Panels = append(f.Panels, p)
	}
	var b bytes.Buffer
	if err := f.Text(&b, Terminal{Width: 200}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "a group of heads") || strings.Contains(b.String(), "-2.-2") {
		t.Errorf("titles are missing:\n%s", b.String())
	}
}

func TestPaint(t *testing.T) {
	for _, c := range []struct {
		t    Terminal
		v    float64
		want string
	}{
		{Terminal{}, 0.5, "x"},
		{Terminal{Colors: TrueColor, Light: true}, 0, "\x1b[48;2;255;255;255;30mx\x1b[0m"},
		{Terminal{Colors: TrueColor, Dark: true}, 1, "\x1b[48;2;255;255;255;30mx\x1b[0m"},
		{Terminal{Colors: Colors256, Dark: true}, 0, "\x1b[48;5;17;97mx\x1b[0m"},
		{Terminal{Colors: Colors256}, math.NaN(), "\x1b[48;5;161;97mx\x1b[0m"},
	} {
		if got := c.t.Paint(c.v, "x"); got != c.want {
			t.Errorf("%v of %+v is %q, want %q", c.v, c.t, got, c.want)
		}
	}
}

func TestParseBackground(t *testing.T) {
	for reply, want := range map[string]bool{
		"\x1b]11;rgb:ffff/ffff/ffff\x07\x1b[?62c": true, "\x1b]11;rgb:fdfd/f6f6/e3e3\x1b\\": true, "\x1b]11;rgb:00/2b/36\x07": false,
		"\x1b]11;rgba:f/f/f/f\x07": true, "\x1b]11;rgb:0000/0000/0000\x07": false,
	} {
		if light, ok := ParseBackground(reply); !ok || light != want {
			t.Errorf("%q: light %v, %v, want %v", reply, light, ok, want)
		}
	}
	for _, reply := range []string{"", "\x1b[?62c", "\x1b]11;rgb:ff/ff\x07", "\x1b]11;rgb:gg/00/00\x07", "\x1b]11;red\x07", "\x1b]11;rgb:12345/0/0\x07"} {
		if light, ok := ParseBackground(reply); ok || light {
			t.Errorf("%q says light %v", reply, light)
		}
	}
}
