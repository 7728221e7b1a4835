package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/pruning"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/viz"
)

type headsCommand struct {
	scoredFlags
	Texts int    `default:"200" help:"Number of pairs on which to measure what heads attend to." placeholder:"N"`
	JSON  bool   `name:"json" help:"Write a JSON object instead of tables."`
	SVG   string `name:"svg" help:"Write the grid as a vector graphic." placeholder:"FILE" group:"Files"`
	PNG   string `name:"png" help:"Write the grid as an image." placeholder:"FILE" group:"Files"`
	HTML  string `name:"html" help:"Write the grid as a page that shows the value of each cell." placeholder:"FILE" group:"Files"`
}

func (headsCommand) Help() string {
	return `Examples:

  attn heads --model runs/dates
  attn heads --model runs/fra.run --data valid.tsv --method gradient,leave-one-out
  attn heads --model runs/fra.run --data valid.tsv --png heads.png --json > heads.json

A head with a larger score is more important. Scores of leave-one-out, gradient and
taylor are in nats per token; docs/heads.md has the formulas. If leave-one-out gives
a head less than 0, the model does better without it on these data. After Ctrl-C, what
has been measured so far is shown.`
}

// Validate is called by the parser.
func (cmd *headsCommand) Validate() error {
	if cmd.Texts < 1 {
		return fmt.Errorf("--texts %d, want at least 1", cmd.Texts)
	}
	return cmd.scoredFlags.Validate()
}

func (cmd *headsCommand) touches() touched {
	t := cmd.scoredFlags.touches()
	t.writes = []place{{"--svg", cmd.SVG}, {"--png", cmd.PNG}, {"--html", cmd.HTML}}
	return t
}

// headsReport is what the command has found, for programs.
type headsReport struct {
	Model  string           `json:"model"`
	Data   string           `json:"data"`
	Pairs  int              `json:"pairs"`
	Layers []pruning.Layer  `json:"layers"`
	Scores []pruning.Scores `json:"scores"`
}

func (cmd *headsCommand) Run(ctx context.Context, c console) error {
	methods, err := cmd.methods()
	if err != nil {
		return err
	}
	m, err := cmd.load()
	if err != nil {
		return err
	}
	pairs, name, err := cmd.pairs(cmd.Limit)
	if err != nil {
		return err
	}
	pairs = firstSources(pairs, cmd.Limit)
	probe, err := seq2seq.NewProbe(m, pairs)
	if err != nil {
		return err
	}
	shown := newStages(c.err)
	defer shown.stop()
	scores, stopped := heads.Importance(ctx, probe, heads.ImportanceOptions{
		Methods: methods, Normalize: cmd.Normalize, Seed: cmd.Seed,
		Progress: func(done, all int) { shown.tell("scoring heads", done, all) },
	})
	shown.stop()
	if stopped != nil && !errors.Is(stopped, context.Canceled) {
		return stopped
	}
	r := headsReport{Model: cmd.Model, Data: name, Pairs: len(pairs), Layers: pruning.Layers(m), Scores: pruning.Tabulate(m.Layers(), scores)}
	if stopped == nil {
		stopped = measureHeads(ctx, m, pairs[:min(cmd.Texts, len(pairs))], r.Layers, func(done, all int) { shown.tell("measuring attention", done, all) })
		shown.stop()
	}
	if err := cmd.write(r, c); err != nil {
		return err
	}
	if errors.Is(stopped, context.Canceled) {
		return interrupted{"interrupted; what has been measured so far is shown"}
	}
	return stopped
}

// firstSources returns the pairs of the first n sources.
func firstSources(pairs []seq2seq.Pair, n int) []seq2seq.Pair {
	seen := map[string]bool{}
	var list []seq2seq.Pair
	for _, p := range pairs {
		if len(seen) == n && !seen[p.Source] {
			continue
		}
		seen[p.Source] = true
		list = append(list, p)
	}
	return list
}

// measureHeads sets the measures of all heads to their means over the pairs.
func measureHeads(ctx context.Context, m *seq2seq.Translator, pairs []seq2seq.Pair, layers []pruning.Layer, tell func(done, all int)) error {
	type mean struct {
		sum   float64
		count int
	}
	sums := map[string][]mean{} // by layer and measure, of each head
	var names []string
	for i, p := range pairs {
		if err := ctx.Err(); err != nil {
			return err
		}
		tell(i, len(pairs))
		record, err := m.Look(p.Source, p.Target, heads.RecorderOptions{})
		if err != nil {
			return err
		}
		for j := range record.Layers {
			l := &record.Layers[j]
			for h := range l.Heads {
				list := l.Measure(h, record.Special).List()
				names = names[:0]
				for _, v := range list {
					names = append(names, v.Name)
					key := l.Name + " " + v.Name
					if sums[key] == nil {
						sums[key] = make([]mean, l.Heads)
					}
					if !math.IsNaN(v.Value) {
						sums[key][h].sum += v.Value
						sums[key][h].count++
					}
				}
			}
		}
	}
	tell(len(pairs), len(pairs))
	for i := range layers {
		l := &layers[i]
		l.Measures = map[string][]pruning.Number{}
		for _, name := range names {
			for _, s := range sums[l.Name+" "+name] {
				l.Measures[name] = append(l.Measures[name], pruning.Number(s.sum/float64(s.count)))
			}
		}
	}
	return nil
}

// write shows the report, and writes the files that were asked for.
func (cmd *headsCommand) write(r headsReport, c console) error {
	figure := r.figure()
	var files []atomicfile.File
	for _, f := range []struct {
		path  string
		write func(io.Writer) error
	}{
		{cmd.SVG, figure.SVG},
		{cmd.PNG, func(w io.Writer) error { return figure.PNG(w, 2) }},
		{cmd.HTML, figure.HTML},
	} {
		if f.path != "" {
			files = append(files, atomicfile.File{Path: f.path, Write: f.write})
		}
	}
	if err := atomicfile.WriteAll(files...); err != nil {
		return err
	}
	if cmd.JSON {
		return json.NewEncoder(c.out).Encode(r)
	}
	if err := r.tables(c.out); err != nil {
		return err
	}
	return r.grid(c.out)
}

// figure returns the grid: a panel for each method and kind, a row for each layer,
// a column for each head. Each method's largest value has the last colour.
func (r headsReport) figure() viz.Figure {
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
func largestScore(s pruning.Scores) float64 {
	largest := 0.
	for _, row := range s.Values {
		for _, v := range row {
			if v > pruning.Number(largest) {
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

// grid draws importance: a line for each layer, a character for each head.
func (r headsReport) grid(w io.Writer) error {
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

// tables writes importance and measures, a line for each head.
func (r headsReport) tables(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "importance on %s of %s; larger is more important\n\n", plural(r.Pairs, "pair"), r.Data)
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
func decimal(n pruning.Number, format string) string {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return "-"
	}
	return fmt.Sprintf(format, float64(n))
}
