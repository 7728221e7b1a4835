package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attn-go/attn/bench/history"
)

// results is the file that is rendered from the history; the other constant is its beginning.
const (
	results = "bench/RESULTS.md"
	preface = `# Results

` + "`go run ./bench/compare --render`" + ` writes this file from [history](history): the newest tables of each machine.
[README.md](README.md) tells how it is measured, and what was tried.
`
)

// renderResults returns the newest table of each title and kind of machine in Markdown.
func renderResults(records []*history.Record) []byte {
	type part struct{ kind, title, text string }
	var parts []part
	for _, r := range records {
		for _, t := range r.Tables {
			if !slices.ContainsFunc(parts, func(p part) bool { return p.kind == r.Kind() && p.title == t.Title }) {
				text := fmt.Sprintf("\n## %s on %s\n\n%s", t.Title, r.Hardware(), r.Markdown(t))
				parts = append(parts, part{r.Kind(), t.Title, text})
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.kind, b.kind) })
	text := bytes.NewBufferString(preface)
	for _, p := range parts {
		text.WriteString(p.text)
	}
	return text.Bytes()
}

// render writes the file.
func render(dir string, messages io.Writer) error {
	records, err := history.Read(dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(messages, "compare: writing", results, "and", picture)
	if err := os.WriteFile(filepath.FromSlash(results), renderResults(records), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.FromSlash(picture), chart(pictured(records)), 0o644)
}

// errSlower says that a ratio has fallen.
var errSlower = errors.New("slower than before, compared with other libraries")

// gate compares a table of a record with the newest table with the same title, kind of machine and number of threads.
// It reports each ratio that is more than percent lower.
func gate(records []*history.Record, r *history.Record, t *history.Table, percent float64, messages io.Writer) error {
	i := slices.IndexFunc(records, func(old *history.Record) bool {
		was := old.Find(t.Title)
		return was != nil && old.Kind() == r.Kind() && was.Threads == t.Threads && was.Rows != nil
	})
	if i < 0 {
		return fmt.Errorf("no measurement of %s on %s with %d threads to compare with; --save makes one",
			t.Title, r.Kind(), t.Threads)
	}
	was, fallen := records[i].Find(t.Title), 0
	for _, now := range t.Rows {
		at := slices.IndexFunc(was.Rows, func(old history.Row) bool { return old.Work == now.Work })
		if at < 0 {
			continue
		}
		for p, peer := range t.Peers {
			q := slices.IndexFunc(was.Peers, func(v history.Version) bool { return v.Name == peer.Name })
			if q < 0 || now.Peers[p].Ratio == 0 {
				continue
			}
			if ratio, old := now.Peers[p].Ratio, was.Rows[at].Peers[q].Ratio; ratio < old*(1-percent/100) {
				fallen++
				fmt.Fprintf(messages, "%s: %.2f× %s, %.2f× on %s\n", now.Work, ratio, peer.Name, old, records[i].Date)
			}
		}
	}
	if fallen > 0 {
		return errSlower
	}
	return nil
}

// picture is the chart of README: for each row of a table, the time of the other libraries relative to attn, on a
// logarithmic axis. It shows every row, including those in which attn is slower.
const picture = "docs/performance.svg"

// pictured returns the table of the chart and the record with it: the AVX-512 table of an Intel processor, because most
// servers have AVX-512, and oneMKL, for products in PyTorch, uses it on Intel only.
func pictured(records []*history.Record) (*history.Record, *history.Table) {
	for _, r := range records {
		if t := r.Find("Operations"); t != nil && r.Kernels == "avx512" && strings.Contains(r.CPU, "Intel") {
			return r, t
		}
	}
	return new(history.Record), new(history.Table)
}

const (
	chartLeft, chartRight, chartTop = 284., 16., 58.
	chartWidth, rowHeight           = 780., 17.
)

// axis returns the ends of the axis: powers of two around all ratios.
func axis(t *history.Table) (least, most float64) {
	least, most = 1, 2
	for _, r := range t.Rows {
		for _, f := range r.Peers {
			for ; f.Ratio > 0 && f.Ratio < least; least /= 2 {
			}
			for ; f.Ratio > most; most *= 2 {
			}
		}
	}
	return least, most
}

// chart returns a table as SVG, in colors for light and dark pages.
func chart(r *history.Record, t *history.Table) []byte {
	least, most := axis(t)
	height := chartTop + float64(rowHeight*float64(len(t.Rows))) + 34
	x := func(ratio float64) float64 {
		return chartLeft + float64(math.Log(ratio/least)/math.Log(most/least)*(chartWidth-chartLeft-chartRight))
	}
	on := html.EscapeString(r.Hardware())
	b := new(bytes.Buffer)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="system-ui, sans-serif" `+
		`font-size="12" role="img" aria-label="Time of other libraries relative to attn on %s">`+"\n", chartWidth, height, on)
	b.WriteString(`<style>.paper{fill:#fff}.text{fill:#1f2328}.note{fill:#57606a}.grid{stroke:#d8dee4}.one{stroke:#1f2328}` +
		`.p0{fill:#cf4b1b}.p1{fill:#1f6feb}@media (prefers-color-scheme:dark){.paper{fill:#0d1117}.text{fill:#e6edf3}.note{fill:#9198a1}` +
		`.grid{stroke:#2a313c}.one{stroke:#e6edf3}.p0{fill:#ff8a5c}.p1{fill:#6cb0ff}}</style>` + "\n")
	fmt.Fprintf(b, `<rect class="paper" width="%g" height="%g"/>`+"\n", chartWidth, height)
	fmt.Fprintf(b, `<text class="text" x="%g" y="20" text-anchor="end">%s</text>`+"\n", chartLeft-16, on)
	for i, peer := range t.Peers {
		at := chartLeft + float64(150*float64(i))
		fmt.Fprintf(b, `<circle class="p%d" cx="%g" cy="16" r="4.5"/><text class="text" x="%g" y="20">%s %s</text>`+"\n",
			i%2, at, at+10, html.EscapeString(peer.Name), html.EscapeString(peer.Version))
	}
	bottom := height - 30
	for ratio := least; ratio <= most; ratio *= 2 {
		class := "grid"
		if ratio == 1 {
			class = "one"
		}
		fmt.Fprintf(b, `<path class="%s" d="M%.1f %gV%g"/><text class="note" x="%.1f" y="%g" text-anchor="middle">%g ×</text>`+"\n",
			class, x(ratio), chartTop-8, bottom, x(ratio), bottom+15, ratio)
	}
	fmt.Fprintf(b, `<text class="note" x="%.1f" y="%g" text-anchor="end">attn is slower</text>`+
		`<text class="note" x="%.1f" y="%g">attn is faster</text>`+"\n", x(1)-6, chartTop-12, x(1)+6, chartTop-12)
	for i, r := range t.Rows {
		y := chartTop + float64(rowHeight*(float64(i)+0.5))
		fmt.Fprintf(b, `<text class="text" x="%g" y="%.1f" text-anchor="end">%s</text>`+"\n", chartLeft-8, y+4, html.EscapeString(r.Work))
		for p, f := range slices.Backward(r.Peers) { // the first one on top
			if f.Ratio > 0 {
				fmt.Fprintf(b, `<circle class="p%d" cx="%.1f" cy="%.1f" r="4.5"><title>%s: %.2f × %s</title></circle>`+"\n",
					p%2, x(f.Ratio), y, html.EscapeString(r.Work), f.Ratio, html.EscapeString(t.Peers[p].Name))
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
