package viz

import (
	"bytes"
	"cmp"
	_ "embed"
	"io"
	"strings"
)

// figurePage is the page around a figure; words in braces are replaced. The figure lies on
// the colours of paperTint.
//
//go:embed figure.html
var figurePage string

// HTML draws the figure as one web page. The page is whole in itself: it has no
// script and asks no network for anything, and says so to the browser. A cell
// tells its tokens and its weight where the pointer rests, unless there are so
// many cells that the page would grow heavy; it then says that.
func (f Figure) HTML(w io.Writer) error {
	s, err := f.layout()
	if err != nil {
		return err
	}
	hover := s.cells() <= mostVectors
	note := "There are too many cells here for each to tell its weight. Take fewer heads, or a table as CSV."
	if hover {
		note = "Point at a cell to see its query → its key, and the weight."
		if f.Axes != "" {
			note = "Point at a cell to see its row → its column, and its " + escape(f.unit()) + "."
		}
	}
	var picture bytes.Buffer
	s.svg(&picture, hover)
	_, err = strings.NewReplacer(
		"{title}", escape(visible(cmp.Or(f.Title, "Attention"))), "{families}", families,
		"{picture}", picture.String(), "{note}", note,
	).WriteString(w, figurePage)
	return err
}
