package film

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/chart"
	"github.com/attn-go/attn/internal/app/figures"
	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/viz"
)

// Describe describes a recording, or the error of reading it, to the page of attn follow.
func Describe(f *heads.Film, err error) (page chart.FilmSummary) {
	if err != nil {
		return chart.FilmSummary{Error: err.Error()}
	} else if f == nil {
		return page
	}
	r := f.Frames[0].Record
	l := r.Layers[len(r.Layers)-1] // cross-attention comes last
	page.Title, page.Text = figures.LayerName(&l), figures.Choice{}.Title(r)
	for _, x := range f.Frames {
		page.Steps, page.Losses = append(page.Steps, x.Step), append(page.Losses, curve.Number(x.Loss))
	}
	return page
}

// Draw draws the frame of a step of a recording for the page of attn follow.
//
// Errors: a step without a frame.
func Draw(f *heads.Film, step int) (page chart.Frame, err error) {
	at := -1
	if f != nil {
		at = slices.IndexFunc(f.Frames, func(x heads.Frame) bool { return x.Step == step })
	}
	if at < 0 {
		return page, fmt.Errorf("the recording has no frame of step %d", step)
	}
	r := f.Frames[at].Record
	last := len(r.Layers) - 1
	l := &r.Layers[last]
	var numbers []string
	for h := range l.Heads {
		numbers = append(numbers, fmt.Sprintf("head %d %.2f", l.Number(h), l.Measure(h, r.Special).Confidence))
	}
	page.Text = "Confidence, the largest weight of a query, mean over the queries: " + strings.Join(numbers, ", ")
	_, page.Picture, err = Layer(r, last)
	return page, err
}

// Layer draws the heads of a layer of a record side by side, as SVG.
func Layer(record *heads.Record, layer int) (name, picture string, err error) {
	l := &record.Layers[layer]
	f := viz.Figure{Inline: true, Signed: l.Signed}
	for h := range l.Heads {
		p := figures.New(l, h, l.Head(h))
		p.Title = fmt.Sprintf("head %d", l.Number(h))
		f.Panels = append(f.Panels, p)
	}
	var svg strings.Builder
	err = figures.Labelled(f, record).SVG(&svg)
	return figures.LayerName(l), svg.String(), err
}
