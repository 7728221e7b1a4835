package reports

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/viz"
)

// Importance is what attn heads has found, in the form in which it is written as JSON.
type Importance struct {
	Model  string   `json:"model"`
	Data   string   `json:"data"`
	Pairs  int      `json:"pairs"`
	Layers []Layer  `json:"layers"`
	Scores []Scores `json:"scores"`
}

// Figure returns the grid: a panel for each method and kind, a row for each layer,
// a column for each head. Each method's largest value has the last colour.
func (r Importance) Figure() viz.Figure {
	f := viz.Figure{
		Title: fmt.Sprintf("Importance of heads: %s", r.Model),
		Unit:  "part of the method's largest", Axes: "a row for each layer, a column for each head; values below 0 count as 0",
	}
	kinds := map[string]bool{}
	for _, s := range r.Scores {
		largest := largestScore(s)
		for k := heads.Encoder; k <= heads.Cross; k++ {
			p := viz.Panel{Kind: k.String(), Title: k.String() + ", " + s.Method, Head: viz.Mean}
			widest := 0
			for _, l := range r.Layers {
				if l.Kind == k.String() {
					widest = max(widest, l.Heads)
				}
			}
			for h := range widest {
				p.Columns = append(p.Columns, fmt.Sprint(h))
			}
			for i, l := range r.Layers {
				if l.Kind != k.String() || widest == 0 {
					continue
				}
				p.Rows = append(p.Rows, fmt.Sprint("layer ", l.Index))
				for h := range widest {
					v := math.NaN()
					if h < len(s.Values[i]) {
						v = max(float64(s.Values[i][h]), 0)
						if largest > 0 {
							v /= largest
						}
					}
					p.Values = append(p.Values, float32(v))
				}
			}
			if len(p.Rows) > 0 {
				kinds[p.Kind] = true
				f.Panels = append(f.Panels, p)
			}
		}
	}
	f.Columns = len(kinds)
	return f
}

// largestScore returns the largest score that is a number, at least 0.
func largestScore(s Scores) float64 {
	largest := 0.
	for _, row := range s.Values {
		for _, v := range row {
			if v > Number(largest) {
				largest = float64(v)
			}
		}
	}
	return largest
}

// shades are characters for parts of the largest score, from each half to the
// next.
var shades = []struct {
	from float64
	mark string
}{{0.75, "█"}, {0.5, "▓"}, {0.25, "▒"}, {0.125, "░"}, {0, "·"}}

// shade returns the character of a score.
func shade(v, largest float64) string {
	if v == 0 {
		return "·" // of a largest of 0 too
	}
	for _, s := range shades {
		if v >= s.from*largest {
			return s.mark
		}
	}
	if v < 0 {
		return "-"
	}
	return "?" // not a number
}

// Grid draws importance: a line for each layer, a character for each head.
func (r Importance) Grid(w io.Writer) error {
	var b strings.Builder
	var kinds []string
	layers, width := 0, 8
	for _, l := range r.Layers {
		if !slices.Contains(kinds, l.Kind) {
			kinds = append(kinds, l.Kind)
		}
		layers, width = max(layers, l.Index+1), max(width, l.Heads)
	}
	first := fmt.Sprintf("%-13s layer", "")
	for _, k := range kinds {
		first += fmt.Sprintf("  %-*s", width, k)
	}
	b.WriteString(strings.TrimRight(first, " ") + "\n")
	for _, s := range r.Scores {
		name := s.Method
		for index := range layers {
			line := fmt.Sprintf("%-13s %5d", name, index)
			name = ""
			for _, k := range kinds {
				cells := ""
				for i, l := range r.Layers {
					if l.Kind != k || l.Index != index {
						continue
					}
					for _, v := range s.Values[i] {
						cells += shade(float64(v), largestScore(s))
					}
				}
				line += "  " + cells + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(cells)))
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	b.WriteString("a column for each head; relative to the method's largest: █ from 3/4, ▓ from 1/2, ▒ from 1/4, ░ from 1/8, · less, - below 0, ? not measured\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Tables writes importance and measures, a line for each head.
func (r Importance) Tables(w io.Writer) error {
	var b strings.Builder
	pairs := "pairs"
	if r.Pairs == 1 {
		pairs = "pair"
	}
	fmt.Fprintf(&b, "importance on %d %s of %s; larger is more important\n\n", r.Pairs, pairs, r.Data)
	head := func(names []string, width int) {
		fmt.Fprintf(&b, "%-8s %5s %4s", "kind", "layer", "head")
		for _, n := range names {
			fmt.Fprintf(&b, " %*s", max(width, len(n)), n)
		}
		b.WriteByte('\n')
	}
	var methods []string
	for _, s := range r.Scores {
		methods = append(methods, s.Method)
	}
	head(methods, 9)
	for i, l := range r.Layers {
		for h := range l.Heads {
			fmt.Fprintf(&b, "%-8s %5d %4d", l.Kind, l.Index, h)
			for _, s := range r.Scores {
				fmt.Fprintf(&b, " %*s", max(9, len(s.Method)), decimal(s.Values[i][h], "%.5f"))
			}
			b.WriteByte('\n')
		}
	}
	ranks := false
	for _, s := range r.Scores {
		ranks = ranks || !math.IsNaN(float64(s.Rank))
	}
	if ranks {
		fmt.Fprintf(&b, "%-19s", "rank correlation")
		for _, s := range r.Scores {
			fmt.Fprintf(&b, " %*s", max(9, len(s.Method)), decimal(s.Rank, "%.2f"))
		}
		b.WriteString(" with leave-one-out\n")
	}
	fmt.Fprintf(&b, "%-19s", "seconds")
	for _, s := range r.Scores {
		fmt.Fprintf(&b, " %*.1f", max(9, len(s.Method)), s.Seconds)
	}
	b.WriteString("\n\n")
	if len(r.Layers) > 0 && r.Layers[0].Measures != nil {
		shown := []string{"entropy", "bound", "distance", "confidence", "previous", "same", "next", "special"}
		head(shown, 7)
		for _, l := range r.Layers {
			for h := range l.Heads {
				fmt.Fprintf(&b, "%-8s %5d %4d", l.Kind, l.Index, h)
				for _, name := range shown {
					fmt.Fprintf(&b, " %*s", max(7, len(name)), decimal(l.Measures[name][h], "%.3f"))
				}
				b.WriteByte('\n')
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// decimal writes a number, or a dash for what is none.
func decimal(n Number, format string) string {
	if !n.Known() {
		return "-"
	}
	return fmt.Sprintf(format, float64(n))
}
