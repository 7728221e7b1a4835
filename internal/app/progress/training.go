package progress

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/train"
)

// Training shows the progress of a training run: on a terminal, a status line with the curve of the loss;
// otherwise a line per epoch and one every 30 s.
type Training struct {
	line
	spoken time.Time
	points []curve.Step
	valid  float64 // last validation loss, or NaN
	digits int     // digits of the last epoch's number, to align the columns
}

// NewTraining returns the progress of a run that continues the history of a run.
func NewTraining(w io.Writer, before curve.History) *Training {
	p := &Training{line: newLine(w), spoken: time.Now(), valid: math.NaN(), points: before.Steps}
	if n := len(before.Epochs); n > 0 {
		p.valid = float64(before.Epochs[n-1].ValidLoss)
	}
	return p
}

// Step shows one step.
func (p *Training) Step(s train.Progress) {
	p.digits = len(strconv.Itoa(s.Epochs))
	if s.Window != nil {
		p.points = append(p.points, curve.Step{Step: s.Total, TrainLoss: strictjson.Number(s.Window.Loss)})
	}
	switch {
	case p.due():
		// A terminal wraps a line that fills its width.
		p.draw(p.status(s, p.columns()-1))
	case p.columns == nil && time.Since(p.spoken) > 30*time.Second && !s.EpochDone:
		p.spoken = time.Now()
		fmt.Fprintf(p.w, "epoch %d/%d  step %d/%d  loss %.4f  %.1fk tokens/s  %v left\n",
			s.Epoch, s.Epochs, s.Step, s.Steps, s.Loss, s.Rate/1000, s.Left.Round(time.Second))
	}
}

// The minimum width of the curve, and the width that is kept free for it.
const leastCurve, roomForCurve = 8, 16

// status returns the status line: the epoch and its loss, as many of the other figures as fit, and
// the curve.
func (p *Training) status(s train.Progress, columns int) string {
	line := fmt.Sprintf("epoch %*d/%d  loss %.4f", p.digits, s.Epoch, s.Epochs, s.Loss)
	valid, rate, left := "", fmt.Sprintf("  %.1fk tokens/s", s.Rate/1000), fmt.Sprintf("  %v left", s.Left.Round(time.Second))
	if p.valid == p.valid {
		valid = fmt.Sprintf("  valid %.4f", p.valid)
	}
	room := columns - len(line) - 2 - roomForCurve
	for _, part := range []*string{&valid, &left, &rate} { // in the order of importance
		if room -= len(*part); room < 0 {
			room += len(*part)
			*part = ""
		}
	}
	line += valid + rate + left
	if room := columns - len(line) - 2; room >= leastCurve {
		line += "  " + sparkline(p.points, s.Epochs*s.Steps, room)
	}
	return line[:cutAt(line, columns)]
}

// sparkline draws the loss over all steps of a run in one line, on a logarithmic scale. Dots are
// the steps to come.
func sparkline(points []curve.Step, steps, columns int) string {
	const bars, todo = "▁▂▃▄▅▆▇█", "·"
	levels := []rune(bars)
	sums, counts := make([]float64, columns), make([]int, columns)
	last := -1
	for _, p := range points {
		loss := math.Log(float64(p.TrainLoss))
		if math.IsNaN(loss) || math.IsInf(loss, 0) {
			continue
		}
		at := min((p.Step-1)*columns/max(steps, 1), columns-1)
		sums[at] += loss
		counts[at]++
		last = max(last, at)
	}
	low, high := math.Inf(1), math.Inf(-1)
	for i := range last + 1 {
		if counts[i] > 0 {
			sums[i] /= float64(counts[i])
			low, high = min(low, sums[i]), max(high, sums[i])
		}
	}
	var b strings.Builder
	for i := range columns {
		if i > last {
			b.WriteString(todo)
			continue
		}
		at := i
		for counts[at] == 0 { // the next point is the mean over these steps, too
			at++
		}
		level := len(levels) / 2
		if high > low {
			level = min(int((sums[at]-low)/(high-low)*float64(len(levels))), len(levels)-1)
		}
		b.WriteRune(levels[level])
	}
	return b.String()
}

// Epoch shows the result of an epoch.
func (p *Training) Epoch(s train.Progress, valid float64) {
	p.Clear()
	p.spoken, p.valid = time.Now(), valid
	fmt.Fprintf(p.w, "epoch %-*d  loss %.4f  valid %.4f  %5.1fk tokens/s  %.1f s\n",
		p.digits, s.Epoch, s.Loss, valid, float64(s.EpochTokens)/s.EpochTime.Seconds()/1000, s.EpochTime.Seconds())
}
