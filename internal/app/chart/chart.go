// Package chart draws the metrics of a training run, for the picture in its directory and for the page of attn follow.
package chart

import (
	"errors"
	"io"
	"math"

	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/viz"
)

// Sizes of the charts, in CSS pixels.
const (
	usualWidth = 720
	lossHeight = 240
	rateHeight = 80
)

// Picture draws losses and learning rate over the steps, from the lines of a run's metrics. Nothing in it depends on
// the speed of the machine, so two runs of one recipe have the same picture.
//
// Errors: lines without a step.
func Picture(w io.Writer, metrics [][]byte) error {
	h := curve.Parse(metrics)
	if !h.Drawable() {
		return errors.New("chart: no steps to draw")
	}
	return stacked(chartsOf(h, usualWidth)).SVG(w)
}

// stacked arranges charts over the same steps below each other; only the last has x labels.
func stacked(charts []viz.Chart) viz.Multiples {
	for i := range charts[:len(charts)-1] {
		charts[i].Ticks = []float64{}
	}
	return viz.Multiples{Charts: charts, Columns: 1}
}

// chartsOf returns the charts of losses and learning rate.
func chartsOf(h curve.History, width float64) []viz.Chart {
	train, lr := viz.Line{Name: "training"}, viz.Line{}
	for _, p := range means(h) {
		train.X, train.Y = append(train.X, float64(p.end)), append(train.Y, p.loss)
	}
	for _, s := range h.Steps {
		lr.X, lr.Y = append(lr.X, float64(s.Step)), append(lr.Y, s.LR)
	}
	losses := chartOf(h, width, lossHeight, "loss, nats per token", train)
	losses.Bare = false
	valid := viz.Line{Name: "validation", Markers: len(h.Epochs) <= mostMarkers}
	for _, e := range h.Epochs {
		if e.Step > 0 && e.ValidLoss.Known() {
			valid.X, valid.Y = append(valid.X, float64(e.Step)), append(valid.Y, float64(e.ValidLoss))
		}
	}
	if len(valid.X) > 0 {
		losses.Lines = append(losses.Lines, valid)
	}
	losses.YAxis.Log = spread(losses.Lines) >= logarithmic
	return []viz.Chart{losses, chartOf(h, width, rateHeight, "learning rate", lr)}
}

// chartOf returns a chart over all steps so far.
func chartOf(h curve.History, width, height float64, y string, l viz.Line) viz.Chart {
	return viz.Chart{
		X: "step", Y: y, Width: width, Height: height, Lines: []viz.Line{l}, Bare: true, Hover: true,
		XAxis: viz.Axis{High: float64(h.Steps[len(h.Steps)-1].Step)},
	}
}

// mean is the mean loss over some steps.
type mean struct {
	steps, end int
	loss       float64
}

// means returns the losses of the points. A point of few steps, at the end of an epoch, is noisy:
// it is merged with the point before.
func means(h curve.History) (list []mean) {
	before := 0
	for _, s := range h.Steps {
		p := mean{s.Step - before, s.Step, float64(s.TrainLoss)}
		before = s.Step
		if n := len(list); n > 0 && 2*p.steps < list[n-1].steps {
			last := &list[n-1]
			share := float64(p.steps) / float64(p.steps+last.steps)
			last.loss += float64(share * (p.loss - last.loss))
			last.end = p.end
			continue
		}
		list = append(list, p)
	}
	return list
}

const (
	// logarithmic is the ratio of the largest to the smallest loss from which the axis is
	// logarithmic. At smaller ratios a logarithmic axis would have too few labels.
	logarithmic = 5
	// mostMarkers is the largest number of markers that are still distinct.
	mostMarkers = 60
)

// spread returns the largest y of the lines divided by the smallest.
func spread(lines []viz.Line) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, l := range lines {
		for _, y := range l.Y {
			low, high = min(low, y), max(high, y)
		}
	}
	if !(low > 0) {
		return 1
	}
	return high / low
}
