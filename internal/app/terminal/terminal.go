// Package terminal detects whether a stream is a terminal, and its width, colours and background.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/attn-go/attn/viz"
)

// Is reports whether an input or output of the command is a terminal.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Columns returns the width of a terminal, or 80 for another output.
func Columns(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// Narrowest is the minimum width of a figure, including marked lines.
const Narrowest = 24

// For returns the properties of the terminal w, changed by flags.
func For(w io.Writer, color string, width *int, ascii bool) viz.Terminal {
	t := viz.Terminal{Width: Columns(w), ASCII: ascii}
	light, known := viz.DetectLight(os.Getenv)
	if Is(w) {
		t.Width = max(t.Width, Narrowest)
		t.Colors = viz.DetectColors(os.Getenv)
		if t.Colors != viz.NoColors && !known {
			light, known = askLight()
		}
	}
	t.Light, t.Dark = light, known && !light
	if width != nil {
		t.Width = *width
	}
	if ascii {
		color = "none"
	}
	named := map[string]viz.Colors{
		"truecolor": viz.TrueColor, "256": viz.Colors256, "16": viz.Colors16, "none": viz.NoColors,
	}
	if colors, ok := named[color]; ok {
		t.Colors = colors
	}
	return t
}
