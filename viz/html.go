package viz

import (
	"bytes"
	"io"
)

// pageTint is what the picture's paper lies on.
var pageTint = tint{"page", rgb(0xf2f3f6), rgb(0x101218)}

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
<meta name="color-scheme" content="light dark">
<style>
body { margin: 0; padding: 24px 16px; background: ` + hex(pageTint.light) + `; color: #3d4450; font: 14px/1.5 ` + families + ` }
main { width: fit-content; max-width: 100%; margin: 0 auto }
figure { margin: 0; padding: 12px; overflow-x: auto; background: ` + hex(paperTint.light) + `; border: 1px solid #dfe2e8; border-radius: 10px }
svg { display: block; max-width: none }
p { margin: 12px 4px 0 }
.cells { fill: #fff; fill-opacity: 0 }
.cells path:hover { stroke: #d43; stroke-width: 0.15 }
@media screen and (prefers-color-scheme: dark) {
  body { background: ` + hex(pageTint.dark) + `; color: #a3abba }
  figure { background: ` + hex(paperTint.dark) + `; border-color: #2d323d }
}
@media print { body { padding: 0 } figure { border: 0; padding: 0; break-inside: avoid } p { display: none } }
</style>
<main>
<figure>
`)
	hover := s.cells() <= mostVectors
	s.svg(&b, hover)
	b.WriteString("</figure>\n")
	if hover {
		told := "its query → its key, and the weight"
		if f.Axes != "" {
			told = "its row → its column, and its " + f.unit()
		}
		b.WriteString("<p>Point at a cell to see " + escape(told) + ".</p>\n")
	} else {
		b.WriteString("<p>There are too many cells here for each to tell its weight. Take fewer heads, or a table as CSV.</p>\n")
	}
	b.WriteString("</main>\n</html>\n")
	_, err = w.Write(b.Bytes())
	return err
}
