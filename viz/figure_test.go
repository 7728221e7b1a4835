package viz

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/cells"
)

// All figures have different numbers of rows and columns, so that swapping them fails the
// tests.

// panel returns weights that fall off around a diagonal; a larger sharp makes them fall faster.
func panel(head int, rows, columns []string, sharp float64) Panel {
	p := Panel{
		Title: HeadName("cross", 1, head), Kind: "cross", Layer: 1, Head: head,
		Rows: rows, Columns: columns, Values: make([]float32, len(rows)*len(columns)),
	}
	for i := range rows {
		sum := 0.
		line := make([]float64, len(columns))
		at := math.Mod(float64((i+head)*len(columns))/float64(len(rows)), float64(len(columns)))
		for j := range columns {
			line[j] = math.Exp(-sharp * math.Abs(float64(j)-at))
			sum += line[j]
		}
		for j := range columns {
			p.Values[i*len(columns)+j] = float32(line[j] / sum)
		}
	}
	return p
}

// tokens returns n tokens.
func tokens(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("t%d", i)
	}
	return list
}

var nan = float32(math.NaN())

// figures are the figures of golden files.
func figures() map[string]Figure {
	written, read := strings.Split("03-19", ""), strings.Split("march 19", "")
	odd := []string{"</script>", `&<>"'`, "日本語", "\n", "a\x1bb", "\u202eevil", "e\u0301", "\u0301", "Ж", "\xff", "\ufffe", "Donaudampfschifffahrtsgesellschaft", " "}
	strange := panel(0, odd[:11], odd, 1)
	strange.Title = "<b>"
	strange.Values[3], strange.Values[4] = nan, float32(math.Inf(1))
	strange.Values[30], strange.Values[31] = -1, 2
	causal := Figure{Title: "the-first of 2", Panels: []Panel{panel(0, tokens(5), tokens(5), 1), panel(1, tokens(5), tokens(5), 1)}}
	for i := range causal.Panels {
		p := &causal.Panels[i]
		p.Masked = make([]bool, 25)
		for at := range p.Masked {
			p.Masked[at] = at%5 > at/5
		}
		p.Values[6] = nan
	}
	heads := Figure{Title: "march 19 → 03-19", Scale: Largest}
	for h := range 5 {
		heads.Panels = append(heads.Panels, panel(h, written, read, 0.6))
	}
	return map[string]Figure{
		"causal": causal,
		"cross":  {Title: "march 19 → 03-19", Panels: []Panel{panel(3, written, read, 0.9)}},
		"words":  {Panels: []Panel{panel(0, []string{"the", "black", "cat"}, []string{"le", "chat", "noir", ".", "<eos>"}, 1.5)}},
		"odd":    {Title: "</title><script>alert(1)</script>\n&", Panels: []Panel{strange}},
		"heads":  heads,
		"wider":  {Panels: []Panel{panel(0, tokens(3), tokens(61), 0.2)}},
		"dense":  {Panels: []Panel{panel(0, tokens(211), tokens(307), 0.2)}, Scale: Largest},
		"uneven": {Panels: []Panel{panel(0, tokens(7), tokens(2), 1), panel(1, tokens(2), tokens(41), 1), panel(2, tokens(41), tokens(3), 1)}},
	}
}

// golden compares got with a reviewed file; go test -update rewrites the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what it was; review what go test -update makes of it", path)
	}
}

// outputs are all output formats.
var outputs = map[string]func(Figure, io.Writer) error{
	"text":       func(f Figure, w io.Writer) error { return f.Text(w, Terminal{}) },
	"color text": func(f Figure, w io.Writer) error { return f.Text(w, Terminal{Colors: TrueColor, Width: 80}) },
	"svg":        Figure.SVG,
	"html":       Figure.HTML,
	"png":        func(f Figure, w io.Writer) error { return f.PNG(w, 1) },
	"csv":        Figure.CSV,
	"json":       Figure.JSON,
	"npy":        Figure.NPY,
}

func TestRefused(t *testing.T) {
	two := []string{"a", "b"}
	for _, c := range []struct {
		f    Figure
		want string
	}{
		{Figure{}, "viz: a figure without panels"},
		{Figure{Panels: []Panel{{}}}, "viz: panel 0 has 0 rows and 0 columns of tokens, want at least one of each"},
		{Figure{Panels: []Panel{{Rows: two}}}, "viz: panel 0 has 2 rows and 0 columns of tokens, want at least one of each"},
		{Figure{Panels: []Panel{{Columns: two, Values: []float32{1}}}}, "viz: panel 0 has 0 rows and 2 columns of tokens, want at least one of each"},
		{Figure{Panels: []Panel{{Title: "x\n", Rows: two, Columns: tokens(3), Values: make([]float32, 5)}}}, `viz: panel 0 (x\n) has 5 values, want 2×3 for its tokens`},
		{Figure{Panels: []Panel{{Rows: two, Columns: tokens(3), Values: make([]float32, 7)}}}, "viz: panel 0 has 7 values, want 2×3 for its tokens"},
		{Figure{Panels: []Panel{panel(0, two, two, 1), {Rows: two, Columns: tokens(3), Values: make([]float32, 4)}}}, "viz: panel 1 has 4 values, want 2×3 for its tokens"},
	} {
		for name, write := range outputs {
			var b bytes.Buffer
			err := write(c.f, &b)
			if err == nil || err.Error() != c.want {
				t.Errorf("%s: error %v, want %s", name, err, c.want)
			}
			if b.Len() > 0 {
				t.Errorf("%s: %q is written all the same", name, b.String())
			}
		}
	}
}

func TestCannotWrite(t *testing.T) {
	for name, write := range outputs {
		if err := write(figures()["cross"], full{io.ErrShortWrite}); err != io.ErrShortWrite {
			t.Errorf("%s: error %v, want that of the writer", name, err)
		}
	}
}

// Layers of a pruned model have different numbers of heads. Each begins a new line.
func TestNewLine(t *testing.T) {
	f := Figure{Columns: 3}
	for _, title := range []string{"a0", "b0", "b1", "b2", "b3", "c0", "c1"} {
		p := panel(0, tokens(2), tokens(5), 1)
		p.Title, p.NewLine = title, title[1] == '0'
		f.Panels = append(f.Panels, p)
	}
	var b strings.Builder
	if err := f.Text(&b, Terminal{}); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		if strings.ContainsAny(line[:1], "abc") {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
	}
	if got, want := strings.Join(lines, "|"), "a0|b0 b1 b2|b3|c0 c1"; got != want {
		t.Errorf("on a terminal: %s, want %s", got, want)
	}
	s, err := f.layout()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for i, p := range s.panels {
		if i > 0 && p.y > s.panels[i-1].y {
			got.WriteString("|")
		} else if i > 0 {
			got.WriteString(" ")
		}
		got.WriteString(p.Title)
	}
	if want := strings.Join(lines, "|"); got.String() != want {
		t.Errorf("on a sheet: %s, want %s", got.String(), want)
	}
}

func TestFigureStays(t *testing.T) {
	for name, write := range outputs {
		f := Figure{Panels: []Panel{panel(0, tokens(1500), tokens(7), 1)}}
		if err := write(f, io.Discard); err != nil {
			t.Fatal(err)
		}
		want := panel(0, tokens(1500), tokens(7), 1)
		if fmt.Sprint(f.Panels[0]) != fmt.Sprint(want) {
			t.Errorf("%s has changed the figure", name)
		}
	}
}

func TestThin(t *testing.T) {
	p := Panel{Rows: tokens(5), Columns: tokens(3), Values: []float32{
		0.1, 0.2, 0.3,
		0.4, 0.5, 0.6,
		nan, 0.8, 0.9,
		1.0, 1.1, float32(math.Inf(1)),
		-1, 1.4, 1.5,
	}}
	got, down, across := extent{}.thin(p, 4, 2)
	if want := "{  0 0 [t0 t2 t4] [t0 t2] [0.5 0.6 NaN NaN 1.4 1.5] [] false} 2 2"; fmt.Sprint(got, down, across) != want {
		t.Errorf("thin: %v %d %d, want %s", got, down, across, want)
	}
	if got, down, across := (extent{}).thin(p, 5, 3); fmt.Sprint(got) != fmt.Sprint(p) || down != 1 || across != 1 {
		t.Errorf("thin where there is room: %v %d %d", got, down, across)
	}
}

func TestShade(t *testing.T) {
	e := extent{top: 0.5}
	for v, want := range map[float32]int{0: 0, 0.25: 128, 0.5: 255, 0.6: 255, -0.1: 0, float32(math.Inf(-1)): hole} {
		if got := e.shade(v); got != want {
			t.Errorf("shade of %v is %d, want %d", v, got, want)
		}
	}
	if got := e.shade(nan); got != hole {
		t.Errorf("shade of NaN is %d, want %d", got, hole)
	}
	// A figure of zeros has no largest value.
	e, err := Figure{Panels: []Panel{{Rows: tokens(1), Columns: tokens(1), Values: []float32{0}}}, Scale: Largest}.check()
	if err != nil || e != (extent{top: 1, hatched: "masked"}) {
		t.Errorf("zeros: %+v, %v", e, err)
	}
}

func TestLabel(t *testing.T) {
	for token, want := range map[string]string{
		"cat": "cat", "": "", " ": " ", "\n": `\n`, "\r\t": `\r\t`, "\x00\x7f": `\x00\x7f`, "\u0085": `\u0085`, "\u200b": `\u200b`,
		"a\xffb": `a\xffb`, "\ufffd": "\ufffd", "\u0301": "◌\u0301", "e\u0301": "e\u0301", "\u2066": `\u2066`, "\ufeff": `\ufeff`,
		"0123456789": "0123456…", "日本語日本語": "日本語…", "👩‍🚀": "👩‍🚀",
	} {
		if got := cells.Label(token, 8); got != want {
			t.Errorf("label of %q is %q, want %q", token, got, want)
		}
		if n := cells.Width(cells.Label(token, 8)); n > 8 {
			t.Errorf("label of %q is %d wide", token, n)
		}
	}
}

// A figure of other values than weights names its unit in every output.
func TestFigureLegend(t *testing.T) {
	f := Figure{
		Unit: "importance", Axes: "a row for each layer", Scale: Largest,
		Panels: []Panel{
			{Rows: []string{"0"}, Columns: []string{"0", "1"}, Values: []float32{1, 2}},
			{Rows: []string{"0"}, Columns: []string{"0", "1"}, Values: []float32{3, 4}},
		},
	}
	for name, write := range map[string]func(io.Writer) error{
		"svg": f.SVG, "text": func(w io.Writer) error { return f.Text(w, Terminal{}) },
	} {
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if text := b.String(); !strings.Contains(text, "importance") || !strings.Contains(text, "a row for each layer") ||
			strings.Contains(text, "weight;") || strings.Contains(text, "rows attend") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
