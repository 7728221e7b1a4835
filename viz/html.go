package viz

import (
	"bytes"
	"cmp"
	_ "embed"
	"io"
	"strings"

	"github.com/attn-go/attn/internal/cells"
)

// figurePage is the page around a figure; names in braces are replaced. The background of the figure is paperTint.
//
//go:embed figure.html
var figurePage string

// HTML draws the figure as a single web page without scripts and without links to other
// files; its content security policy blocks both. A cell shows its tokens and its weight under
// the pointer. A figure with too many cells for this has a note that says so.
func (f Figure) HTML(w io.Writer) error {
	s, err := f.layout()
	if err != nil {
		return err
	}
	hover := s.cells() <= mostVectors
	note := "Too many cells to show their values. Choose fewer heads, or write a table as CSV."
	if hover {
		note = "Point at a cell to see its query → its key, and the weight."
		if f.Axes != "" {
			note = "Point at a cell to see its row → its column, and its " + escape(f.unit()) + "."
		}
	}
	var picture bytes.Buffer
	s.svg(&picture, hover)
	return writePage(w, cmp.Or(f.Title, "Attention"), picture.String(), note)
}

// writePage writes the page of a picture. note is HTML.
func writePage(w io.Writer, title, picture, note string) error {
	_, err := strings.NewReplacer(
		"{title}", escape(cells.Label(title, longestTitle)), "{families}", families, "{picture}", picture, "{note}", note,
	).WriteString(w, figurePage)
	return err
}
