package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/attn-go/attn/bench/history"
)

// This file draws the chart of README: for each row of a table, the time of the other libraries relative to attn, on
// a logarithmic axis. It shows every row, including those in which attn is slower.

// picture is the file of the chart. pictured returns its table and the record with it: the AVX-512 table of an Intel
// processor, because most servers have AVX-512, and oneMKL, for products in PyTorch, uses it on Intel only.
const picture = "docs/performance.svg"

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
