package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/guard"
	"github.com/attn-go/attn/internal/app/importance"
	"github.com/attn-go/attn/internal/app/progress"
	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/internal/app/shards"
	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/internal/app/texts"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/viz"
)

type headsCommand struct {
	scoredFlags
	formatFlag
	Texts int     `default:"200" help:"Number of pairs or texts on which to measure what the heads attend to." placeholder:"N" want:"at least 1"`
	JSON  bool    `name:"json" help:"Write a JSON object instead of tables."`
	Sort  *string `enum:"${measures}" help:"Sort the table of measures, the largest value first: by ${measures_or}. Heads are only scored with --method." placeholder:"NAME" excludes:"top,json,per-line"`
	Top   *string `enum:"${measures}" help:"Like --sort, with 10 heads only." placeholder:"NAME" excludes:"json,per-line"`

	PerLine  bool     `help:"Write one JSON object per line of --data, or of standard input: what the heads attend to in the line, by layer and measure. With --method, also the contribution of the line to importance." excludes:"normalize,svg,png,html"`
	Strict   bool     `help:"With --per-line or --examples, stop at the first line that cannot be processed." needs:"per-line|examples"`
	Examples string   `help:"Find the texts in which each head attends most sharply (sharp; sharp:all counts special tokens and the first token, too), or most to a token (token:TEXT), to the token at a distance (offset:-1), or to a class of tokens: special, punctuation, number, capital or induction." placeholder:"WHAT" group:"Examples" excludes:"texts,limit,method,per-line,sums,sort,top,normalize,svg,png,html"`
	Best     int      `default:"10" help:"Number of examples of each head, or with --circuits of heads and pairs." placeholder:"N" group:"Examples" want:"1 to 1000" needs:"examples|circuits"`
	Head     []string `help:"Find examples of these heads only, and show all of them: layer.head, such as 5.3,7.* or cross.0.1, comma-separated (default the best example of every head)." placeholder:"HEAD" group:"Examples" needs:"examples"`

	Circuits bool `help:"Read heads from the weights alone, without texts: the copying score of each head, and the pairs of heads with the largest composition." group:"Circuits" excludes:"data,method,texts,limit,normalize,per-line,examples,sums,sort,top,format,svg,png,html"`

	Sums string `help:"Show results that attn shards --merge --sums has computed from the lines of --per-line, instead of measuring on --data." placeholder:"FILE" excludes:"data,per-line"`

	SVG   string `name:"svg" help:"Write the grid as an SVG image." placeholder:"FILE" group:"Files" writes:"file"`
	PNG   string `name:"png" help:"Write the grid as a PNG image." placeholder:"FILE" group:"Files" writes:"file"`
	Color string `default:"auto" enum:"auto,truecolor,256,16,none" help:"auto, truecolor, 256, 16 or none." placeholder:"NAME" group:"On the terminal"`
	Width *int   `help:"Characters per line (default the width of the terminal)." placeholder:"N" group:"On the terminal" want:"at least 24"`
	HTML  string `name:"html" help:"Write the grid as an HTML page that shows the value of each cell." placeholder:"FILE" group:"Files" writes:"file"`

	Text *string `arg:"" optional:"" help:"Text to measure the heads on, instead of --data." placeholder:"TEXT" excludes:"data,method,per-line,sums,circuits"`
}

func (headsCommand) Help() string {
	return `Examples:

  attn heads --model runs/dates
  attn heads --model runs/fra.run --data valid.tsv --method gradient,leave-one-out
  attn heads --model runs/fra.run --data valid.tsv --png heads.png --json > heads.json
  attn heads --model runs/fra.run --per-line < corpus.tsv > measures.jsonl
  attn heads --model runs/fra.run --sums sums.json
  attn heads --model bert-base-uncased --data texts.txt --method gradient,confidence
  attn heads --model gpt2 --data texts.txt --top induction
  attn heads --model gpt2 "The cat sat on the mat. The cat sat"
  attn heads --model gpt2 --examples sharp < corpus.txt
  attn heads --model gpt2 --circuits
  attn heads --model gpt2 --examples 'token: the' --head 5.3,7.* --data corpus.txt

Each line of --data has these tab-separated columns:
  a text                           for a model that predicts masked words or the next word
  a text, or two, and a class      for a classifier of texts
  a source and its target          for an encoder-decoder
  two texts and their similarity   for a sentence-transformers pipeline
15% of an encoder's tokens, selected by --seed, are masked. For two texts and their similarity,
the loss is the squared difference between the cosine of their vectors and the similarity, after
the similarities of the data are scaled to 0 to 1.

Without --method, heads of any model are measured and not scored if --sort, --top, --format or
a text is given, or if --data has plain texts and the model has no loss on them.
An encoder-decoder generates the targets of plain texts; with --per-line, it reads pairs.

A higher score means a more important head. The scores of leave-one-out, gradient and
taylor are in nats per token; see docs/heads.md for the formulas. leave-one-out is the
increase in loss when the head is removed; with a negative score, the model is better
without the head on these data. On Ctrl-C, the results so far are shown.`
}

// AdjustFiles marks standard input as read if it has the lines.
func (cmd *headsCommand) AdjustFiles(f *guard.Files) {
	f.Stdin = (cmd.PerLine || cmd.Examples != "" && cmd.Text == nil) && cmd.Data == ""
}

func (cmd *headsCommand) Run(ctx context.Context, c console) error {
	if cmd.PerLine {
		return runLines(ctx, c, cmd, cmd.Data, "type texts, or pairs, source, tab, target, one per line")
	}
	if cmd.Examples != "" {
		return cmd.examples(ctx, c)
	}
	if cmd.Circuits {
		return cmd.circuits(ctx, c)
	}
	methods, err := cmd.methods()
	if err != nil {
		return err
	}
	shown := progress.NewStages(c.err)
	defer shown.Clear()
	o := importance.Options{
		Methods: methods, Normalize: cmd.Normalize, Seed: cmd.Seed, Texts: cmd.Texts, Progress: shown.Update,
	}
	if cmd.Sums != "" {
		return cmd.showMerged(c, o)
	}
	m, err := cmd.open(c, tasks.Limits{Lines: cmd.Limit, Dates: cmd.Limit})
	if err != nil {
		return err
	}
	m.Limit(cmd.Limit)
	fmt.Fprint(c.err, recording.Unseen(m.Model))
	r, err := importance.Measure(ctx, m, o)
	shown.Clear()
	stopped := errors.Is(err, context.Canceled)
	switch {
	case stopped && len(r.Scores) == 0:
		return interrupted{"interrupted before a head was scored"}
	case err != nil && len(r.Scores) == 0:
		return err
	}
	if err := cmd.write(r, c); err != nil {
		return err
	}
	if stopped {
		return interrupted{"interrupted; what has been measured so far is shown"}
	}
	return err
}

// open loads the model with its data or the text.
func (cmd *headsCommand) open(c console, most tasks.Limits) (*tasks.Model, error) {
	measures := cmd.Sort != nil || cmd.Top != nil || cmd.Text != nil || cmd.Format != 0 || tasks.Unscored(cmd.Model, cmd.Data, cmd.options())
	if len(cmd.Method) > 0 || !measures {
		return cmd.scoredFlags.open(c, cmd.settingFlag, most)
	}
	if cmd.SVG != "" || cmd.PNG != "" || cmd.HTML != "" || cmd.Normalize {
		return nil, usage("--svg, --png, --html and --normalize are for importance: want --method, and data that heads can be scored on")
	}
	if cmd.Text != nil {
		if err := checkText("argument", 1, *cmd.Text, recording.MaxText); err != nil {
			return nil, err
		}
	}
	open := func(dir string, o models.Options) (*tasks.Model, error) {
		return tasks.OpenUnscored(dir, cmd.Data, cmd.Text, o, most)
	}
	return load(c, open, cmd.Model, cmd.options())
}

// write prints the report, or writes it to the files of the flags.
func (cmd *headsCommand) write(r reports.Importance, c console) error {
	figure := r.Figure()
	_, err := c.writeFiles(
		atomicfile.File{Path: cmd.SVG, Write: figure.SVG},
		atomicfile.File{Path: cmd.PNG, Write: func(w io.Writer) error { return figure.PNG(w, 2) }},
		atomicfile.File{Path: cmd.HTML, Write: figure.HTML},
	)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return json.NewEncoder(c.out).Encode(r)
	}
	t := cmd.terminal(c)
	if cmd.Top != nil {
		return r.Write(c.out, t, *cmd.Top, 10)
	}
	return r.Write(c.out, t, deref(cmd.Sort), 0)
}

// circuits shows what is read from weights.
func (cmd *headsCommand) circuits(ctx context.Context, c console) error {
	m, err := load(c, models.Load, cmd.Model, models.Options{Trainable: true, Allowed: cmd.AllowSetting})
	if err != nil {
		return err
	}
	shown := progress.NewStages(c.err)
	defer shown.Clear()
	r, err := importance.Circuits(ctx, m, cmd.Best, func(done, all int) { shown.Update("reading layers", done, all) })
	shown.Clear()
	switch {
	case errors.Is(err, context.Canceled):
		return interrupted{"interrupted before all layers were read"}
	case err != nil:
		return input.Errorf(cmd.Model, "%w", err)
	case cmd.JSON:
		return json.NewEncoder(c.out).Encode(r)
	}
	return r.WriteCircuits(c.out, cmd.terminal(c), cmd.Best)
}

// terminal describes standard output, for tables.
func (cmd *headsCommand) terminal(c console) viz.Terminal {
	t := terminalOf(c.out, cmd.Color, cmd.Width, false)
	if !isTerminal(c.out) && cmd.Width == nil {
		t.Width = 0 // programs read whole tables
	}
	return t
}

// examples finds examples in the lines of the data.
func (cmd *headsCommand) examples(ctx context.Context, c console) error {
	m, err := cmd.load(c, cmd.options())
	if err != nil {
		return err
	}
	var chosen map[string][]int
	if cmd.Head != nil {
		if chosen, err = heads.Select(m.HeadLayers(), cmd.Head...); err != nil {
			return usage("--head: %w", err)
		}
	}
	shown, size := progress.NewStages(c.err), int64(0)
	defer shown.Clear()
	if info, err := os.Stat(cmd.Data); err == nil {
		size = info.Size()
	}
	tell := func(bytes int) {
		if size > 0 {
			shown.Update("reading bytes", min(bytes, int(size)), int(size))
		}
	}
	f, report, err := importance.Examples(m, cmd.Examples, cmd.Best, chosen, tell, c.err)
	if err != nil {
		return err
	}
	name := cmp.Or(cmd.Data, "standard input")
	if f.Strict = cmd.Strict; cmd.Text != nil {
		name, err = "the command line", f.Texts(ctx, []string{*cmd.Text}, io.Discard)
	} else {
		_, err = runStream(ctx, c, newStream(f, c), cmd.Data, "type texts, one per line")
	}
	shown.Clear()
	r, stopped := report(), errors.Is(err, context.Canceled)
	r.Model, r.Data = cmd.Model, name
	switch {
	case stopped && r.Texts == 0:
		return interrupted{"interrupted before a text was read"}
	case err != nil && !stopped:
		return err
	case r.Texts == 0:
		return input.Errorf(name, "no text")
	case cmd.JSON:
		err = json.NewEncoder(c.out).Encode(r)
	default:
		err = r.Write(c.out, cmd.terminal(c), chosen)
	}
	if err == nil && stopped {
		err = interrupted{fmt.Sprintf("interrupted; examples of the first %s are shown", quote.Counted(r.Texts, "text", "texts"))}
	}
	return err
}

// Validate is called by the parser.
func (cmd *headsCommand) Validate() error {
	if cmd.PerLine {
		var names []string
		for _, m := range importance.LineMethods {
			names = append(names, m.String())
		}
		for _, name := range cmd.Method {
			if !slices.Contains(names, name) {
				return fmt.Errorf("--method %s cannot be used with --per-line, want any of %s", name, strings.Join(names, ", "))
			}
		}
	}
	if cmd.Format != 0 && (len(cmd.Method) > 0 || cmd.Sums != "") {
		return errors.New("--format cannot be used with --method or --sums: heads are scored in float32")
	}
	return cmd.scoredFlags.Validate()
}

func (cmd *headsCommand) streams() bool { return cmd.PerLine && cmd.Data == "" }

func (cmd *headsCommand) model() (string, bool) { return cmd.Model, true }

// load loads a model with heads, and an encoder-decoder if heads are scored.
func (cmd *headsCommand) load(c console, o models.Options) (*models.Model, error) {
	m, err := load(c, models.Load, cmd.Model, o)
	switch {
	case err != nil:
		return nil, err
	case len(cmd.Method) > 0 && m.Sizes().Decoder == nil:
		return nil, input.Errorf(cmd.Model, "is %s model, want an encoder-decoder for --method with --per-line or --sums", quote.A(m.Family.Name))
	}
	return m, tasks.WantHeads(cmd.Model, m)
}

func (cmd *headsCommand) stream(c console) (shards.Stream, error) {
	methods, err := cmd.methods()
	if err != nil {
		return nil, err
	}
	o := cmd.options()
	o.Trainable = len(methods) > 0
	m, err := cmd.load(c, o)
	if err != nil {
		return nil, err
	}
	f := importance.Lines(m, methods, c.err)
	f.MaxBytes, f.Strict = texts.LongestPair, cmd.Strict
	return newStream(f, c), nil
}

// showMerged shows the report of lines that attn shards has added up.
func (cmd *headsCommand) showMerged(c console, o importance.Options) error {
	m, err := cmd.load(c, models.Options{Trainable: true, Allowed: cmd.AllowSetting})
	if err != nil {
		return err
	}
	id, err := identityOf(cmd, nil)
	if err != nil {
		return err
	}
	r, err := importance.Merged(cmd.Sums, m, cmd.Model, id.Model, len(cmd.Method) > 0, o)
	if err != nil {
		return err
	}
	return cmd.write(r, c)
}

// scoredFlags are the flags of the commands that score heads.
type scoredFlags struct {
	Model     string   `required:"" help:"Directory of the model." placeholder:"DIR"`
	Data      string   `help:"Texts that the model was not trained on, one per line, with the columns that attn heads --help lists (default new dates, for a dates model)." placeholder:"FILE"`
	Method    []string `enum:"${methods}" help:"${methods_or}, or several, comma-separated (default all but random)." placeholder:"NAME" group:"Importance"`
	Normalize bool     `help:"Divide the scores of gradient, taylor and fisher by their norm over the layer." group:"Importance"`
	Limit     int      `default:"1000" help:"Use at most N sources of the data, or of each of its parts." placeholder:"N" want:"1 to 250000"`
	Seed      uint64   `default:"1" help:"Random seed." placeholder:"N"`
}

// Validate is called by the parser.
func (f *scoredFlags) Validate() error {
	gradients := func(name string) bool { return slices.Contains([]string{"gradient", "taylor", "fisher"}, name) }
	if f.Normalize && len(f.Method) > 0 && !slices.ContainsFunc(f.Method, gradients) {
		return errors.New("--normalize requires gradient, taylor or fisher")
	}
	return nil
}

// methods returns the methods that are asked for, each once.
func (f *scoredFlags) methods() ([]prune.Method, error) {
	var list []prune.Method
	for _, name := range f.Method {
		m, err := prune.ParseMethod(name)
		if err != nil {
			return nil, usage("%w", err)
		}
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list, nil
}

// open loads the model with its data.
func (f *scoredFlags) open(c console, allowed settingFlag, most tasks.Limits) (*tasks.Model, error) {
	open := func(dir string, o models.Options) (*tasks.Model, error) { return tasks.Open(dir, f.Data, o, most) }
	return load(c, open, f.Model, models.Options{Allowed: allowed.AllowSetting})
}
