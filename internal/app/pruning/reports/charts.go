package reports

import (
	"math"
	"strings"

	"github.com/attn-go/attn/viz"
)

// Chart returns the curves of the metric; it has no lines if there are none.
func (r *Report) Chart() viz.Chart {
	unit, whole := "higher is better", r.Result.Before.Metric
	if u := r.Settings.Unit; u != "" {
		unit = u + ", " + unit
	}
	c := viz.Chart{Title: r.Settings.Metric, X: "heads left", Y: unit, Falling: true, Width: 500, Height: 250, Ticks: r.ticks()}
	if r.Settings.Lower { // the metric is the loss
		c.Title, c.Y = "Loss", r.Settings.LossUnit+", lower is better"
	}
	colors := map[string]int{}
	for i := range r.Curves {
		curve := &r.Curves[i]
		method, reversed := strings.CutSuffix(curve.Name, Reversed)
		if colors[method] == 0 {
			colors[method] = len(colors)%8 + 1
		}
		line := viz.Line{Name: curve.Name, Color: colors[method], Dashed: reversed, Markers: !reversed}
		numbers := false
		for _, p := range curve.Points {
			numbers = numbers || p.Metric.Known()
			line.X, line.Y = append(line.X, float64(p.Left)), append(line.Y, float64(p.Metric))
			if curve == r.Main() {
				low, high := float64(r.possible(whole+p.Low)), float64(r.possible(whole+p.High))
				if p.Left == r.Model.Heads { // a difference from itself
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
		numbers = numbers || b.Metric.Mean.Known()
		mean.X, mean.Y = append(mean.X, float64(b.Left)), append(mean.Y, float64(b.Metric.Mean))
		band.X, band.Low, band.High = mean.X, append(band.Low, float64(b.Metric.Low)), append(band.High, float64(b.Metric.High))
	}
	if numbers {
		c.Lines, c.Bands = append(c.Lines, mean), []viz.Band{band}
	}
	if whole.Known() && len(c.Lines) > 0 {
		c.Levels = []viz.Level{{Name: "whole model", Y: float64(whole)}}
	}
	return c
}

// ticks returns sixths, eighths or quarters of the heads if these are whole numbers.
func (r *Report) ticks() (list []float64) {
	for _, n := range []int{6, 8, 4} {
		if all := r.Model.Heads; all > 0 && all%n == 0 {
			for i := n; i >= 0; i-- {
				list = append(list, float64(all/n*i))
			}
			return list
		}
	}
	return nil
}
