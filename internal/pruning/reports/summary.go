package reports

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/cells"
	"github.com/attn-go/attn/internal/quote"
)

// summaryWidth is that of an ordinary terminal.
const summaryWidth = 80

// Summary writes what a person reads in ten seconds: the verdict, some points of
// the curve beside what random orders do, the speed, and where everything is.
func (r *Report) Summary(w io.Writer) error {
	var b bytes.Buffer
	for _, line := range cells.Lines(strings.Fields(quote.Name(r.verdict())), " ", summaryWidth) {
		b.WriteString(line + "\n")
	}
	r.summaryPoints(&b)
	if c := r.Result.Control; c != nil {
		fmt.Fprintf(&b, "\nthe whole model after the same training: %s %s", r.metricName(), fixed(c.Metric, r.digits()))
		if !r.Settings.Lower { // the metric is the loss
			fmt.Fprintf(&b, ", loss %s", fixed(c.Loss, 3))
		}
		b.WriteByte('\n')
	}
	r.summarySpeed(&b)
	for _, place := range [][2]string{
		{"compact model", r.Result.Compact}, {"  loaded by", r.Result.Loads}, {"no compact", r.Result.NoCompact}, {"masked model", r.Result.Masked}, {"report", r.Result.Page},
	} {
		if place[1] != "" {
			fmt.Fprintf(&b, "%-14s %s\n", place[0], quote.Name(place[1]))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// summaryPoints writes a table of five points of the chosen method's curve.
func (r *Report) summaryPoints(b *bytes.Buffer) {
	c := r.curve(r.Result.Method)
	if c == nil {
		return
	}
	random, d := len(r.Random.Points) > 0, r.digits()
	b.WriteByte('\n')
	if simpler := r.simpler(); simpler != "" {
		b.WriteString(simpler + ":\n")
	}
	fmt.Fprintf(b, "heads left  %-28s", quote.Name(r.metricName())+", difference [95%]")
	if !r.Settings.Lower {
		fmt.Fprintf(b, " %7s", "loss")
	}
	fmt.Fprintf(b, " %7s", "KL")
	if random {
		fmt.Fprintf(b, "  random: mean [95%%]")
	}
	b.WriteByte('\n')
	for _, p := range fewPoints(c.Points, r.Result.Left, 5) {
		mark := " "
		if p.Left == r.Result.Left {
			mark = ">"
		}
		difference := ""
		if p.Low.Known() && p.High.Known() && p.Left != r.heads() {
			difference = fmt.Sprintf("%5s [%s, %s]", signed(p.Metric-r.whole(), d), signed(p.Low, d), signed(p.High, d))
		}
		line := fmt.Sprintf("%s%9d  %5s  %-21s", mark, p.Left, fixed(p.Metric, d), difference)
		if !r.Settings.Lower {
			line += fmt.Sprintf(" %7s", fixed(p.Loss, 3))
		}
		line += fmt.Sprintf(" %7s", fixed(p.KL, 3))
		if at := r.Random.at(p.Left); at != nil && p.Left != r.heads() {
			line += fmt.Sprintf("  %5s [%s, %s]", fixed(at.Metric.Mean, d), fixed(at.Metric.Low, d), fixed(at.Metric.High, d))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// fewPoints returns n points in their order: the first, the last, that with
// about so many heads left, and what fills the largest gaps.
func fewPoints(points []Point, left, n int) []Point {
	if len(points) <= n {
		return points
	}
	near := 0
	for i, p := range points {
		if abs(p.Left-left) < abs(points[near].Left-left) {
			near = i
		}
	}
	chosen := []int{0, near, len(points) - 1}
	for slices.Sort(chosen); ; slices.Sort(chosen) {
		chosen = slices.Compact(chosen)
		if len(chosen) >= n {
			break
		}
		widest := 1
		for i := 2; i < len(chosen); i++ {
			if chosen[i]-chosen[i-1] > chosen[widest]-chosen[widest-1] {
				widest = i
			}
		}
		chosen = append(chosen, (chosen[widest]+chosen[widest-1])/2)
	}
	few := make([]Point, len(chosen))
	for i, at := range chosen {
		few[i] = points[at]
	}
	return few
}

func abs(n int) int { return max(n, -n) }

// summarySpeed writes the first measurements of two kinds of work.
func (r *Report) summarySpeed(b *bytes.Buffer) {
	var told []string
	for _, s := range r.Speed {
		if len(told) == 2 || slices.Contains(told, s.Work) {
			continue
		}
		if len(told) == 0 {
			b.WriteByte('\n')
		}
		told = append(told, s.Work)
		fmt.Fprintf(b, "%s, batch %d, length %d: %s → %s ms, %s ×",
			quote.Name(s.Work), s.Batch, s.Length, three(s.Before), three(s.After), fixed(s.Ratio, 2))
		if s.Low.Known() && s.High.Known() && !s.result() {
			fmt.Fprintf(b, ", 95%% interval %s: no result", between(s.Low, s.High, fixed, 2))
		}
		if s.Bound.Known() {
			fmt.Fprintf(b, " (bound %s)", fixed(s.Bound, 2))
		}
		b.WriteByte('\n')
	}
}
