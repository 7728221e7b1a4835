package train

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Lines are split into columns; errors name the line.
func TestReadLines(t *testing.T) {
	text, classes, pairs := LineFormat{Want: "a text"}, LineFormat{"a text, or two, and a class", 2, 3}, LineFormat{"a source and its target", 2, math.MaxInt}
	path := filepath.Join(t.TempDir(), "lines")
	for _, c := range []struct {
		format LineFormat
		data   string
		most   int
		want   string // columns separated by |, lines by /; or an error
	}{
		{text, "\uFEFFa\tb \r\n\n  c\n\uFEFFd\t\uFEFFe\n", 9, "a\tb/c/d\te"},
		{text, "a\nb\nc\n", 2, "a/b"},
		{classes, " a \tyes\nb\tc\tno\t\n", 9, "a|yes/b|c|no"},
		{pairs, "a\tb\tfrom there\t\n", 9, "a|b|from there"},
		{classes, "a\tyes\n\tb\tno\n", 9, ":2: column 1 is empty, want a text, or two, and a class"},
		{classes, "a\t\tno\n", 9, ":1: column 2 is empty"},
		{classes, "\n\na\n", 9, ":3: has 1 column, want a text, or two, and a class, with tabs between them"},
		{classes, "a\tb\tc\td\n", 9, ":1: has 4 columns"},
		{text, "a\n\xff\n", 9, ":2: invalid UTF-8"},
		{text, "a\n" + strings.Repeat("b", maxLine+1), 9, ":2: longer than 1048576 bytes"},
		{text, " \n\n", 9, "no texts"},
	} {
		if err := os.WriteFile(path, []byte(c.data), 0o644); err != nil {
			t.Fatal(err)
		}
		lines, err := ReadLines(path, c.format, c.most)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.40q: error %v, want … %s", c.data, err, c.want)
			}
			continue
		}
		var got []string
		for _, l := range lines {
			got = append(got, strings.Join(l.Columns, "|"))
		}
		if !slices.Equal(got, strings.Split(c.want, "/")) {
			t.Errorf("%.40q: %q, want %q", c.data, got, c.want)
		}
	}
	if _, err := ReadLines(filepath.Dir(path), text, 1); err == nil || !strings.Contains(err.Error(), "is a folder, want a file") {
		t.Errorf("of a folder: error %v", err)
	}
}
