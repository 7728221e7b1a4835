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

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/pruning"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/prune"
)

type headsCommand struct {
	scoredFlags
	Texts int  `default:"200" help:"Number of pairs or texts on which to measure what the heads attend to." placeholder:"N"`
	JSON  bool `name:"json" help:"Write a JSON object instead of tables."`

	PerLine bool   `help:"Write one JSON object per line of --data, or of standard input: what the heads attend to in the line, by layer and measure. With --method, also the contribution of the line to importance."`
	Strict  bool   `help:"With --per-line, stop at the first line that cannot be processed."`
	Sums    string `help:"Show the results in this file, the output of attn shards --merge --sums for such lines, instead of measuring on --data." placeholder:"FILE"`

	SVG   string `name:"svg" help:"Write the grid as an SVG image." placeholder:"FILE" group:"Files"`
	PNG   string `name:"png" help:"Write the grid as a PNG image." placeholder:"FILE" group:"Files"`
	Color string `default:"auto" enum:"auto,truecolor,256,16,none" help:"auto, truecolor, 256, 16 or none." placeholder:"NAME" group:"On the terminal"`
	Width *int   `help:"Characters per line (default the width of the terminal)." placeholder:"N" group:"On the terminal"`
	HTML  string `name:"html" help:"Write the grid as an HTML page that shows the value of each cell." placeholder:"FILE" group:"Files"`
}

func (headsCommand) Help() string {
	return `Examples:

  attn heads --model runs/dates
  attn heads --model runs/fra.run --data valid.tsv --method gradient,leave-one-out
  attn heads --model runs/fra.run --data valid.tsv --png heads.png --json > heads.json
  attn heads --model runs/fra.run --per-line < corpus.tsv > measures.jsonl
  attn heads --model runs/fra.run --sums sums.json
  attn heads --model bert-base-uncased --data texts.txt --method gradient,confidence

For a pretrained model, each line of --data has these tab-separated columns:
  a text                           for a model that predicts masked words or the next word
  a text, or two, and a class      for a classifier of texts
  a source and its target          for an encoder-decoder
  two texts and their similarity   for a sentence-transformers pipeline
15% of an encoder's tokens, selected by --seed, are masked. The loss for similar texts is the
squared error of the cosine of their vectors, with the similarities scaled to 0 to 1.

A higher score means a more important head. The scores of leave-one-out, gradient and
taylor are in nats per token; see docs/heads.md for the formulas. leave-one-out is the
increase in loss when the head is removed; with a negative score, the model is better
without the head on these data. On Ctrl-C, the results so far are shown.`
}

// Validate is called by the parser.
func (cmd *headsCommand) Validate() error {
	if cmd.Width != nil && *cmd.Width < narrowestMap {
		return fmt.Errorf("--width %d, want at least %d", *cmd.Width, narrowestMap)
	}
	if cmd.Texts < 1 {
		return fmt.Errorf("--texts %d, want at least 1", cmd.Texts)
	}
	switch {
	case cmd.Strict && !cmd.PerLine:
		return errors.New("--strict requires --per-line")
	case cmd.PerLine && (cmd.SVG != "" || cmd.PNG != "" || cmd.HTML != "" || cmd.Normalize):
		return errors.New("--per-line writes lines, without --normalize and pictures")
	case cmd.Sums != "" && (cmd.PerLine || cmd.Data != ""):
		return errors.New("--sums takes the place of --data and --per-line")
	}
	if cmd.PerLine {
		for _, name := range cmd.Method {
			if !slices.Contains(perLine, name) {
				return fmt.Errorf("--method %s does not go with --per-line, want any of %s", name, strings.Join(perLine, ", "))
			}
		}
	}
	return cmd.scoredFlags.Validate()
}

func (cmd *headsCommand) touches() touched {
	t := cmd.scoredFlags.touches()
	t.stdin = cmd.PerLine && cmd.Data == ""
	t.reads = append(t.reads, place{"--sums", cmd.Sums})
	t.writes = []place{{"--svg", cmd.SVG}, {"--png", cmd.PNG}, {"--html", cmd.HTML}}
	return t
}

func (cmd *headsCommand) Run(ctx context.Context, c console) error {
	if cmd.PerLine {
		return runLines(ctx, c, cmd, cmd.Data, "type pairs, source, tab, target, one per line")
	}
	methods, err := cmd.methods()
	if err != nil {
		return err
	}
	if cmd.Sums != "" {
		r, err := cmd.added(methods)
		if err != nil {
			return err
		}
		return cmd.write(r, c)
	}
	m, err := cmd.scored(c)
	if err != nil {
		return err
	}
	shown := newStages(c.err)
	defer shown.clear()
	scores, stopped := prune.Importance(ctx, m.subject, prune.ImportanceOptions{
		Methods: methods, Normalize: cmd.Normalize, Seed: cmd.Seed,
		Progress: func(done, all int) { shown.tell("scoring heads", done, all) },
	})
	shown.clear()
	if stopped != nil && !errors.Is(stopped, context.Canceled) {
		return stopped
	}
	if stopped != nil {
		scores = slices.DeleteFunc(scores, func(s prune.Scores) bool {
			return !slices.ContainsFunc(s.Flat(m.subject.Layers()), func(v float64) bool { return !math.IsNaN(v) })
		})
		if len(scores) == 0 {
			return interrupted{"interrupted before a head was scored"}
		}
	}
	r := m.report
	r.Layers, r.Scores = pruning.Layers(m.subject.Layers()), pruning.Tabulate(m.subject.Layers(), scores)
	if stopped == nil {
		stopped = pruning.MeasureHeads(ctx, m.parts*min(cmd.Texts, m.records), m.record, r.Layers, func(done, all int) { shown.tell("measuring attention", done, all) })
		shown.clear()
	}
	if err := cmd.write(r, c); err != nil {
		return err
	}
	if errors.Is(stopped, context.Canceled) {
		return interrupted{"interrupted; what has been measured so far is shown"}
	}
	return stopped
}

// write shows the report, and writes the files that were asked for.
func (cmd *headsCommand) write(r reports.Importance, c console) error {
	figure := r.Figure()
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
	t := terminalOf(c.out, cmd.Color, cmd.Width, false)
	if !isTerminal(c.out) && cmd.Width == nil {
		t.Width = 0 // programs read whole tables
	}
	return r.Write(c.out, t)
}
