package reports

import (
	"bytes"
	"html/template"
	"math"
	"strings"

	"github.com/attn-go/attn/viz"
)

// measure is a quantity that is plotted.
type measure struct {
	title, unit string
	say         string // an explanation; empty for the metric
	point       func(Point) Number
	spread      func(BandPoint) Spread
	whole       Number
}

// measures returns the quantities to plot: the metric, the loss and the divergence.
func (r *Report) measures() []measure {
	unit := "higher is better"
	if u := r.Settings.Unit; u != "" {
		unit = u + ", " + unit
	}
	loss := measure{"Loss", r.LossUnit() + ", lower is better",
		"The loss shows damage earlier than the metric. The lines are the same as above.",
		func(p Point) Number { return p.Loss }, func(b BandPoint) Spread { return b.Loss }, r.Result.Before.Loss}
	of := "KL, nats"
	if strings.HasPrefix(r.LossUnit(), "nats") { // both are means over the same items
		of = "KL, " + r.LossUnit()
	}
	kl := measure{"Divergence from the whole model", of + ", lower is better",
		"How far the predictions differ from the whole model’s, correct or not. The lines are the same as above.",
		func(p Point) Number { return p.KL }, func(b BandPoint) Spread { return b.KL }, NaN}
	metric := measure{r.Metric(), unit, "",
		func(p Point) Number { return p.Metric }, func(b BandPoint) Spread { return b.Metric }, r.Whole()}
	if r.Settings.Lower { // the metric is the loss
		metric.title, metric.unit = loss.title, loss.unit
		return []measure{metric, kl}
	}
	return []measure{metric, loss, kl}
}

// Chart returns the curves of the metric.
func (r *Report) Chart() viz.Chart { return r.chart(r.measures()[0], true) }

// figure is a chart of the page; Say is empty for the metric.
type figure struct {
	viz.Chart
	Picture template.HTML
	Say     string
}

// Charts returns the charts of all measures that have numbers.
func (r *Report) Charts() (list []figure, err error) {
	for i, m := range r.measures() {
		c := r.chart(m, i == 0)
		if len(c.Lines) == 0 {
			continue
		}
		c.Inline = true // the page's content security policy blocks other style elements
		var b bytes.Buffer
		if err := c.SVG(&b); err != nil {
			return nil, err
		}
		list = append(list, figure{c, template.HTML(b.String()), m.say})
	}
	return list, nil
}

// chart returns the chart of a measure; it has no lines if there are no numbers.
func (r *Report) chart(m measure, wide bool) viz.Chart {
	c := viz.Chart{
		Title: m.title, X: "heads left", Y: m.unit, Falling: true, Width: 460, Height: 230, Bare: !wide, Ticks: r.ticks(),
	}
	if wide {
		c.Width, c.Height = 500, 250
	}
	colors := map[string]int{}
	for i := range r.Curves {
		curve := &r.Curves[i]
		method, reversed := curve.ordered()
		if colors[method] == 0 {
			colors[method] = len(colors)%8 + 1
		}
		line := viz.Line{Name: curve.Name, Color: colors[method], Dashed: reversed, Markers: !reversed}
		numbers := false
		bars := wide && curve == r.Main()
		for _, p := range curve.Points {
			v := m.point(p)
			numbers = numbers || v.Known()
			line.X, line.Y = append(line.X, float64(p.Left)), append(line.Y, float64(v))
			if bars {
				low, high := float64(r.possible(m.whole+p.Low)), float64(r.possible(m.whole+p.High))
				if p.Left == r.Heads() { // a difference from itself
					low, high = math.NaN(), math.NaN()
				}
				line.Low, line.High = append(line.Low, low), append(line.High, high)
			}
		}
		if numbers {
			c.Lines = append(c.Lines, line)
		}
	}
	mean := viz.Line{Name: "random, mean", Color: viz.Grey}
	band := viz.Band{Name: "random, 95%"}
	numbers := false
	for _, b := range r.Random.Points {
		s := m.spread(b)
		numbers = numbers || s.Mean.Known()
		mean.X, mean.Y = append(mean.X, float64(b.Left)), append(mean.Y, float64(s.Mean))
		band.X, band.Low, band.High = mean.X, append(band.Low, float64(s.Low)), append(band.High, float64(s.High))
	}
	if numbers {
		c.Lines, c.Bands = append(c.Lines, mean), []viz.Band{band}
	}
	if m.whole.Known() && len(c.Lines) > 0 {
		c.Levels = []viz.Level{{Name: "whole model", Y: float64(m.whole)}}
	}
	return c
}

// ticks returns sixths, eighths or quarters of the heads if these are whole numbers.
func (r *Report) ticks() (list []float64) {
	for _, n := range []int{6, 8, 4} {
		if all := r.Heads(); all > 0 && all%n == 0 {
			for i := n; i >= 0; i-- {
				list = append(list, float64(all/n*i))
			}
			return list
		}
	}
	return nil
}
