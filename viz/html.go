package viz

import (
	"bytes"
	"io"
)

// HTML draws the figure as one web page. The page is whole in itself: it has no
// script and asks no network for anything, and says so to the browser. A cell
// tells its tokens and its weight where the pointer rests, unless there are so
// many cells that the page would grow heavy; it then says that.
func (f Figure) HTML(w io.Writer) error {
	s, err := f.layout()
	if err != nil {
		return err
	}
	title := f.Title
	if title == "" {
		title = "Attention"
	}
	var b bytes.Buffer
	b.WriteString(`<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width">
<title>` + escape(visible(title)) + `</title>
<style>
body { margin: 1em; background: #fff; color: #333; font: 13px ` + families + ` }
svg { max-width: none }
.cells { fill: #fff; fill-opacity: 0 }
.cells path:hover { stroke: #d43; stroke-width: 0.15 }
</style>
`)
	hover := s.cells() <= mostVectors
	if err := s.svg(&b, hover); err != nil {
		return err
	}
	if hover {
		told := "query → key, and the weight"
		if f.Axes != "" {
			told = "its row → its column, and its " + f.unit()
		}
		b.WriteString("<p>Rest the pointer on a cell: " + escape(told) + ".</p>\n")
	} else {
		b.WriteString("<p>There are too many cells here for each to tell its weight. Take fewer heads, or a table as CSV.</p>\n")
	}
	b.WriteString("</html>\n")
	_, err = w.Write(b.Bytes())
	return err
}
