package bench

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// Each row is written as soon as it is measured, and an error ends the table.
func TestRows(t *testing.T) {
	var b strings.Builder
	table := &Table{Out: &b, Format: CSV, Threads: 1}
	list := Usual()[:3]
	err := Rows(t.Context(), table, list, Columns(list), func(w Work) (Result, error) {
		if w.Name() == list[2].Name() {
			return Result{}, io.ErrUnexpectedEOF
		}
		return Result{Work: w}, nil
	})
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(lines) != 3 || !strings.HasPrefix(lines[2], list[1].Name()+",") {
		t.Errorf("%v, %q", err, lines)
	}
}

// A narrow terminal shows the most important columns, all of them complete.
func TestHiddenColumns(t *testing.T) {
	columns := Columns(Usual())
	for width, want := range map[int]string{
		60:  "work, ms median",
		80:  "work, ms median, GFLOP/s, share",
		100: "work, ms median, min, max, GFLOP/s, share",
		200: "work, ms median, min, max, GFLOP/s, peak, share, bytes, besides",
	} {
		out := hidden(columns, width)
		got, used := "", 0
		for i, c := range columns {
			if out[i] {
				continue
			}
			if got != "" {
				got += ", "
				used += gapBetween
			}
			got, used = got+c.Name, used+c.width()
		}
		if got != want || used > width {
			t.Errorf("%d: %s, %d wide, want %s", width, got, used, want)
		}
	}
	if got := fmt.Sprint(hidden(nil, 0)); got != "[]" {
		t.Errorf("no columns: %s", got)
	}
}
