package viz

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/quote"
)

// Picture is a Figure, a Chart, Multiples or a Graph.
type Picture interface {
	SVG(w io.Writer) error
	PNG(w io.Writer, scale float64) error
}

// WriteFile writes a picture in the format of the file's extension: .svg or .png with two pixels for each CSS pixel, and
// for a Figure also .html, .csv, .json or .npy. At any time, the file has its old content or the complete new one.
//
// Errors: another extension; those of the format, and of writing the file.
func WriteFile(path string, p Picture) error {
	formats := map[string]func(io.Writer) error{".svg": p.SVG, ".png": func(w io.Writer) error { return p.PNG(w, 2) }}
	if f, ok := p.(Figure); ok {
		formats[".html"], formats[".csv"], formats[".json"], formats[".npy"] = f.HTML, f.CSV, f.JSON, f.NPY
	}
	write := formats[strings.ToLower(filepath.Ext(path))]
	if write == nil {
		known := strings.Join(slices.Sorted(maps.Keys(formats)), ", ")
		return fmt.Errorf("viz: %s has no known extension, want one of %s", quote.Text(path), known)
	}
	return atomicfile.Write(path, write)
}
