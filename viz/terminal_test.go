package viz

import (
	"regexp"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
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
	"16":    {Width: 60, Colors: Colors16},
	"256":   {Width: 60, Colors: Colors256},
	"true":  {Width: 60, Colors: TrueColor},
	"light": {Width: 60, Colors: TrueColor, Light: true},
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

// Whatever the width, nothing wraps, and colours end where the line does.
func TestNothingWraps(t *testing.T) {
	all := figures()
	all["large"] = Figure{Title: strings.Repeat("漢", 300), Panels: []Panel{panel(0, tokens(500), tokens(700), 1)}, Scale: Largest}
	for name, f := range all {
		for kind, on := range terminals {
			for on.Width = narrowest; on.Width < 130; on.Width += 7 {
				for line := range strings.Lines(drawn(t, f, on)) {
					line = strings.TrimSuffix(line, "\n")
					if strings.Contains(line, "\x1b") && !strings.HasSuffix(line, "\x1b[0m") && !strings.Contains(line, "\x1b[0m ") {
						t.Fatalf("%s, %s: the colours of %q do not end", name, kind, line)
					}
					line = codes.ReplaceAllString(line, "")
					if n := uniseg.StringWidth(line); n > on.Width {
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

// A map of 5,000 tokens is thinned out to what can be seen, and says so.
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
	for env, want := range map[string]bool{"": false, "COLORFGBG=0;15": true, "COLORFGBG=0;default;7": true, "COLORFGBG=15;0": false, "COLORFGBG=15": true} {
		if got := DetectLight(environment(env)); got != want {
			t.Errorf("%s: light is %v", env, got)
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
