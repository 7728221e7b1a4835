package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/filter"
	"github.com/attn-go/attn/internal/pruning"
	"github.com/attn-go/attn/internal/pruning/reports"
)

type headsCommand struct {
	scoredFlags
	Texts int  `default:"200" help:"Number of pairs or texts on which to measure what heads attend to." placeholder:"N"`
	JSON  bool `name:"json" help:"Write a JSON object instead of tables."`

	PerLine bool `help:"Write what the heads attend to in each line of --data, or of standard input: a JSON object a line, with lists of all heads by layer and measure."`
	Strict  bool `help:"With --per-line: stop at the first line that cannot be processed."`

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
	case cmd.PerLine && (cmd.SVG != "" || cmd.PNG != "" || cmd.HTML != "" || len(cmd.Method) > 0 || cmd.Normalize):
		return errors.New("--per-line writes what heads attend to, without importance and pictures")
	}
	return cmd.scoredFlags.Validate()
}

func (cmd *headsCommand) touches() touched {
	t := cmd.scoredFlags.touches()
	t.stdin = cmd.PerLine && cmd.Data == ""
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
	m, err := cmd.scored()
	if err != nil {
		return err
	}
	shown := newStages(c.err)
	defer shown.stop()
	scores, stopped := heads.Importance(ctx, m.subject, heads.ImportanceOptions{
		Methods: methods, Normalize: cmd.Normalize, Seed: cmd.Seed,
		Progress: func(done, all int) { shown.tell("scoring heads", done, all) },
	})
	shown.stop()
	if stopped != nil && !errors.Is(stopped, context.Canceled) {
		return stopped
	}
	r := m.report
	r.Layers, r.Scores = pruning.Layers(m.subject.Layers()), pruning.Tabulate(m.subject.Layers(), scores)
	if stopped == nil {
		stopped = pruning.MeasureHeads(ctx, m.parts*min(cmd.Texts, m.records), m.record, r.Layers, func(done, all int) { shown.tell("measuring attention", done, all) })
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

func (cmd *headsCommand) streams() error {
	if !cmd.PerLine || cmd.Data != "" {
		return errNotLines
	}
	return nil
}

func (cmd *headsCommand) modelDir() string { return cmd.Model }

// lineMeasures is what a line becomes with --per-line: the measures of all heads, by layer
// and measure.
type lineMeasures map[string]map[string][]number

func (cmd *headsCommand) stream(c console) (lineStream, error) {
	m, err := cmd.load()
	if err != nil {
		return nil, err
	}
	unknown := newUnknown(c.err)
	f := filter.Filter[lineMeasures]{MaxBytes: longestPair, Batch: 1, Strict: cmd.Strict, Write: filter.JSON[lineMeasures]}
	f.Work = func(ctx context.Context, batch []*filter.Line[lineMeasures]) error {
		pairs, of := pairsOf(batch)
		unknown.pairs(m, pairs)
		for i, p := range pairs {
			r, err := m.Record(p.Source, p.Target, heads.RecorderOptions{})
			if err != nil {
				of[i].Err = err
				continue
			}
			of[i].Value = measuresOf(r)
		}
		return nil
	}
	return newStream(f, c), nil
}

// measuresOf returns the measures of all heads of a record.
func measuresOf(r *heads.Record) lineMeasures {
	all := lineMeasures{}
	for i := range r.Layers {
		l := &r.Layers[i]
		layer := map[string][]number{}
		for h := range l.Heads {
			for _, v := range l.Measure(h, r.Special).List() {
				layer[v.Name] = append(layer[v.Name], number(v.Value))
			}
		}
		all[l.Name] = layer
	}
	return all
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
