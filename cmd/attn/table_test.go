package main

import (
	"fmt"
	"testing"

	"github.com/attn-go/attn/internal/bench"
)

// A narrow terminal has the columns that matter, and none is cut.
func TestHiddenColumns(t *testing.T) {
	columns := benchColumns(bench.Usual())
	for width, want := range map[int]string{
		60:  "work, ms median",
		80:  "work, ms median, GFLOP/s, share",
		100: "work, ms median, min, max, GFLOP/s, share",
		200: "work, ms median, min, max, GFLOP/s, peak, share, bytes, besides",
	} {
		shown := &table{columns: columns, hidden: hiddenColumns(columns, width)}
		got, used := "", 0
		for i, c := range shown.columns {
			if shown.hidden[i] {
				continue
			}
			if got != "" {
				got += ", "
				used += gapBetween
			}
			got, used = got+c.name, used+c.room()
		}
		if got != want || used > width {
			t.Errorf("%d: %s, %d wide, want %s", width, got, used, want)
		}
	}
	if got := fmt.Sprint(hiddenColumns(nil, 0)); got != "[]" {
		t.Errorf("no columns: %s", got)
	}
}
