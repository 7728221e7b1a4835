package reports

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"image/color"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/attn-go/attn/viz"
)

//go:embed report.html
var reportPage string

//go:embed report.css
var reportStyle string

var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Parse(reportPage))
})

// HTML writes the report as one page that is whole in itself: it has no script
// and asks no network for anything, and its policy holds the browser to that.
// What was not measured is left out. The page is XML too.
func (r *Report) HTML(w io.Writer) error {
	p, err := r.page()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := pageTemplate().Execute(&b, p); err != nil {
		return err
	}
	_, err = io.WriteString(w, visible(b.String()))
	return err
}

// visible writes what cannot be seen, or is no character, as Go writes it. The
// template has nothing of the kind, but names may.
func visible(page string) string {
	var b strings.Builder
	for i, r := range page {
		_, size := utf8.DecodeRuneInString(page[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, page[i])
		case r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp), r == 0xfffe, r == 0xffff:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// page is what the template shows: every number is text by now.
type page struct {
	Style   template.CSS
	Hash    string // of the style, for the policy
	Title   string
	Verdict string
	Notes   []string
	Compare compareTable
	Grids   []gridTable // by the chosen method
	GridSay string
	Charts  []pageChart
	Kinds   []kindRow
	Emptied []string // layers without heads
	Methods methodTable
	Speed   []speedRow
	Points  []curveTable
	Scores  []scoreTables
	Facts   []facts
	Load    []load
}

func (r *Report) page() (*page, error) {
	style := pageStyle()
	sum := sha256.Sum256([]byte(style))
	p := &page{
		Style: template.CSS(style), Hash: "sha256-" + base64.StdEncoding.EncodeToString(sum[:]),
		Title: fmt.Sprintf("Pruned: %d of %d heads", len(r.Result.Removed), r.heads()), Verdict: r.verdict() + ".",
		Notes: r.notes(), Compare: r.compareTable(), Methods: r.methodTable(), Speed: r.speedRows(),
		Points: r.curveTables(), Scores: r.scoreTables(), Facts: r.facts(), Load: r.load(),
	}
	p.Grids, p.GridSay = r.chosenGrids()
	p.Kinds, p.Emptied = r.kindRows()
	charts, err := r.charts()
	p.Charts = charts
	return p, err
}

// shadeLevels is how many shades the cells of grids have beside white.
const shadeLevels = 16

// pageStyle returns the style sheet: that of the file, the shades of cells and
// the charts' colours in the dark.
var pageStyle = sync.OnceValue(func() string {
	const dark = "@media screen and (prefers-color-scheme: dark) {\n"
	var b strings.Builder
	b.WriteString(reportStyle)
	shade := func(i int, c color.RGBA) {
		ink := "#16181d"
		if int(c.R)*3+int(c.G)*6+int(c.B) < 1250 { // about half of white's light
			ink = "#fff"
		}
		fmt.Fprintf(&b, ".grid .v%d{background:#%02x%02x%02x;color:%s}", i, c.R, c.G, c.B, ink)
	}
	for i := range shadeLevels + 1 {
		shade(i, viz.Color(0.03+0.87*float64(i)/shadeLevels))
	}
	b.WriteString("\n" + dark)
	for i := range shadeLevels + 1 {
		shade(i, viz.Color(0.93-0.85*float64(i)/shadeLevels))
	}
	b.WriteString("\n" + viz.DarkCharts() + "\n}\n")
	return b.String()
})
