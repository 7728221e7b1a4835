package panels

import (
	"slices"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/viz"
)

// A special token at the end of a text is shortened, unless there are other special tokens.
func TestShortMarks(t *testing.T) {
	special := []string{"[CLS]", "[SEP]", "<eos>"}
	f := ShortMarks(viz.Figure{Panels: []viz.Panel{{
		Rows: []string{"a", "b", "<eos>"}, Columns: []string{"[CLS]", "a", "[SEP]"},
	}}}, special)
	if got, want := f.Panels[0].Rows, []string{"a", "b", EndMark}; !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	if got, want := f.Panels[0].Columns, []string{"[CLS]", "a", "[SEP]"}; !slices.Equal(got, want) {
		t.Errorf("columns %q, want %q", got, want)
	}
}

// Weights that are computed on request are limited when all heads are drawn.
func TestAffordable(t *testing.T) {
	c := Choice{Most: 512 << 20}
	all := heads.Layer{Heads: 16, Queries: make([]string, 2048), Keys: make([]string, 2048)}
	if err := c.affordable([]*heads.Layer{&all, &all}); err != nil {
		t.Errorf("512 MB: %v", err)
	}
	if err := c.affordable([]*heads.Layer{&all, &all, &all}); err == nil || err.Error() != "48 heads of this text have 768 MB of weights, want at most 512 MB; --layer and --head draw fewer, and attn view shows all" {
		t.Errorf("768 MB: %v", err)
	}
}
