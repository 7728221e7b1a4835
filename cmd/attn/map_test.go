package main

import (
	"slices"
	"testing"

	"github.com/attn-go/attn/viz"
)

// The mark at the end of a text is short, but keeps its name beside other marks.
func TestShortMarks(t *testing.T) {
	special := []string{"[CLS]", "[SEP]", "<eos>"}
	f := shortMarks(viz.Figure{Panels: []viz.Panel{{
		Rows: []string{"a", "b", "<eos>"}, Columns: []string{"[CLS]", "a", "[SEP]"},
	}}}, special)
	if got, want := f.Panels[0].Rows, []string{"a", "b", endMark}; !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	if got, want := f.Panels[0].Columns, []string{"[CLS]", "a", "[SEP]"}; !slices.Equal(got, want) {
		t.Errorf("columns %q, want %q", got, want)
	}
}
