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
	Texts int  `default:"200" help:"Number of pairs or texts on which to measure what heads attend to." placeholder:"N"`
	JSON  bool `name:"json" help:"Write a JSON object instead of tables."`

	PerLine bool   `help:"Write what the heads attend to in each line of --data, or of standard input: a JSON object a line, with lists of all heads by layer and measure. With --method, also what the line adds to importance."`
	Strict  bool   `help:"With --per-line: stop at the first line that cannot be processed."`
	Sums    string `help:"Show what attn shards --merge --sums has written of such lines, instead of measuring on --data." placeholder:"FILE"`

	SVG   string `name:"svg" help:"Write the grid as a vector graphic." placeholder:"FILE" group:"Files"`
	PNG   string `name:"png" help:"Write the grid as an image." placeholder:"FILE" group:"Files"`
	Color string `default:"auto" enum:"auto,truecolor,256,16,none" help:"auto, truecolor, 256, 16 or none." placeholder:"NAME" group:"On the terminal"`
	Width *int   `help:"Characters per line (default as many as the terminal has)." placeholder:"N" group:"On the terminal"`
	HTML  string `name:"html" help:"Write the grid as a page that shows the value of each cell." placeholder:"FILE" group:"Files"`
}

func (headsCommand) Help() string {
	return `Examples:

  attn heads --model runs/dates
  attn heads --model runs/fra.run --data valid.tsv --method gradient,leave-one-out
  attn heads --model runs/fra.run --data valid.tsv --png heads.png --json > heads.json
  attn heads --model runs/fra.run --per-line < corpus.tsv > measures.jsonl
  attn heads --model runs/fra.run --sums sums.json
  attn heads --model bert-base-uncased --data texts.txt --method gradient,confidence

For a pretrained model, --data has on each line, with tabs between columns,
  a text                           where it predicts masked words or the next word
  a text, or two, and a class      where it classifies texts
  a source and its target          for an encoder-decoder
  two texts and their similarity   for a pipeline of sentence-transformers
Of an encoder's tokens, 15% are masked, which follow from --seed. The loss of similar texts
is the squared error of the cosine of their vectors; the file's numbers are brought to 0 to 1.

A head with a larger score is more important. Scores of leave-one-out, gradient and
taylor are in nats per token; docs/heads.md has the formulas. If leave-one-out gives
a head less than 0, the model does better without it on these data. After Ctrl-C, what
has been measured so far is shown.`
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
		return errors.New("--strict goes with --per-line")
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
