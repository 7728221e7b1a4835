package viz

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/cells"
)

var update = flag.Bool("update", false, "rewrite the pictures in testdata")

// picture returns a map as text, without a legend.
func picture(p Panel) string {
	d := &drawing{extent: extent{top: 1}}
	d.full(p)
	return d.String()
}

// sharp returns weights that are 1 in column at[row] and less elsewhere.
func sharp(columns int, at ...int) []float32 {
	w := make([]float32, len(at)*columns)
	for i, j := range at {
		for k := range columns {
			w[i*columns+k] = float32(math.Pow(0.45, math.Abs(float64(k-j))))
		}
	}
	return w
}

// TestText compares with reviewed pictures; go test -update rewrites them.
func TestText(t *testing.T) {
	for name, m := range map[string]Panel{
		"square": {
			Rows: []string{"the", "black", "cat", "<eos>"}, Columns: []string{"die", "schwarze", "Katze", "<eos>"},
			Values: sharp(4, 0, 1, 2, 3),
		},
		"tall": {
			Rows: []string{"2", "0", "1", "9", "-", "0", "3"}, Columns: []string{"march", "19"},
			Values: sharp(2, 1, 1, 1, 1, 0, 0, 0),
		},
		"wide": {
			Rows: []string{"03"}, Columns: []string{"5", " ", "m", "a", "r", "c", "h"},
			Values: sharp(7, 2),
		},
		"shades": {
			Rows: []string{"w"}, Columns: []string{"0", "⅛", "¼", "½", "¾", "1", "NaN", "∞", "<0"},
			Values: []float32{0, 1. / 8, 1. / 4, 1. / 2, 3. / 4, 1, float32(math.NaN()), float32(math.Inf(1)), -1},
		},
		"east_asian": {
			Rows: []string{"日", "month", "2019年"}, Columns: []string{"三月", "5", "日曜日", "👩‍🚀", "한국"},
			Values: sharp(5, 4, 0, 1),
		},
		"combining": {
			Rows: []string{"e\u0301te\u0301", "été", "नमस्ते"}, Columns: []string{"n\u0303o", "ก\u0e33", "◌\u0301"},
			Values: sharp(3, 0, 1, 2),
		},
		"control": {
			Rows: []string{"a\x1b[31mb", "\x00\x7f", "c\u009b2Jd", "\u202eevil", "\n\t\u2028"}, Columns: []string{"\x1b", "x\ny"},
			Values: sharp(2, 0, 1, 0, 1, 0),
		},
		"long": {
			Rows:    []string{"exactly 16 cells", "more than 16 cells", "fifteen cells..漢", "fourteen cells漢字", strings.Repeat("漢", 9)},
			Columns: []string{"Donaudampfschifffahrtsgesellschaft", "ab"}, Values: sharp(2, 0, 1, 0, 1, 0),
		},
		"no_columns": {Rows: []string{"a", "b"}},
		"no_rows":    {Columns: []string{"a", "bc"}},
	} {
		got := picture(m)
		path := filepath.Join("testdata", name+".txt")
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
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
		checkLayout(t, name, m, got)
	}
}

// checkLayout checks that a picture does not move the cursor, and that all lines have the same
// width.
func checkLayout(t *testing.T, name string, m Panel, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool {
		return r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x2028 && r <= 0x202e)
	}); i >= 0 {
		t.Errorf("%s: %q moves the cursor", name, text[i:])
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	width := cells.Width(lines[0])
	if most := longestLabel + 1 + 2*len(m.Columns); width > most {
		t.Errorf("%s: %d cells wide, want at most %d", name, width, most)
	}
	for _, line := range lines {
		if n := cells.Width(line); n != width {
			t.Errorf("%s: the line %q is %d cells wide, want %d as in the first", name, line, n, width)
		}
	}
}

// full is a writer that always fails.
type full struct{ error }

func (f full) Write([]byte) (int, error) { return 0, f.error }
