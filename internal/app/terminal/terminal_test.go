package terminal

import (
	"bytes"
	"testing"

	"github.com/attn-go/attn/viz"
)

// Without a terminal a figure has no colours and 80 columns, unless flags say otherwise.
func TestForOfAFile(t *testing.T) {
	wide := 120
	for _, c := range []struct {
		color string
		width *int
		ascii bool
		want  viz.Terminal
	}{
		{"auto", nil, false, viz.Terminal{Width: 80}},
		{"256", &wide, false, viz.Terminal{Width: 120, Colors: viz.Colors256}},
		{"auto", nil, true, viz.Terminal{Width: 80, ASCII: true}},
	} {
		got := For(new(bytes.Buffer), c.color, c.width, c.ascii)
		got.Light, got.Dark = false, false // depends on the environment
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.color, got, c.want)
		}
	}
	if Is(new(bytes.Buffer)) || Columns(new(bytes.Buffer)) != 80 {
		t.Error("a buffer is a terminal")
	}
}
