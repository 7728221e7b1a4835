package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/app/lens"
	"github.com/attn-go/attn/internal/app/progress"
	"github.com/attn-go/attn/internal/atomicfile"
	of "github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
)

type lensCommand struct {
	Model  string   `required:"" help:"Directory of the model." placeholder:"DIR"`
	Metric string   `help:"The number that effects are measured on: sums of logit(TOKEN), with the token's leading space or its number, logit(#7); loss; probability; class(NAME); or similarity(\"a sentence\") (default the logit of the model's best next token for the first text minus that of the second best)." placeholder:"TEXT" group:"What to measure" filled:""`
	What   []string `enum:"${whats}" help:"${whats_or}, or several, comma-separated (default patch with two texts, mean with --mean, otherwise zero)." placeholder:"NAME" group:"What to measure"`
	Part   []string `enum:"${parts}" default:"head" help:"${parts_or}, or several, comma-separated." placeholder:"NAME" group:"What to measure"`
	Ablate []string `help:"Silence these heads in all runs: 5.3, or 7.* for all heads of layer 7, or several, comma-separated; cross.5.3 of one kind of attention. With --mean, they have their means." placeholder:"HEAD" group:"What to measure"`
	Patch  []string `help:"Put what these heads compute for the first text into all runs of the second." placeholder:"HEAD" group:"What to measure"`
	Mean   string   `help:"Texts for the means of mean and --ablate, one per line." placeholder:"FILE" group:"What to measure"`
	// Positions is long for heads: a run for each head and token.
	Positions bool     `help:"Change each position alone." group:"What to measure" excludes:"pairs"`
	Edges     bool     `help:"Score every edge from one head or network to another, through queries, keys or values, by EAP-IG: how the metric of the first text changes if an edge has what it carries for the second." group:"What to measure" excludes:"pairs,what,part,ablate,patch,mean,positions,lens,circuit,csv,npy"`
	Steps     int      `default:"5" help:"Steps of EAP-IG; 0 is EAP." placeholder:"N" group:"What to measure" want:"0 to 1000" needs:"edges"`
	Top       int      `help:"Edges in the circuit: those with the largest scores (default a tenth of all)." placeholder:"N" group:"What to measure" want:"at least 1" needs:"edges"`
	Circuit   string   `help:"Measure a circuit: of the first text, with what the second computes on all edges outside it." placeholder:"FILE" group:"What to measure" excludes:"pairs,what,part,ablate,patch,mean,positions,lens,csv,npy"`
	Save      string   `help:"Write the circuit, in the format of EAP-IG and MIB, which attn prune --keep reads." placeholder:"FILE" group:"Files, - for standard output" writes:"-" needs:"edges|circuit"`
	Lens      bool     `help:"Logit lens: what the residual stream before each layer predicts." group:"What to measure" excludes:"second,metric,pairs,what,part,ablate,patch,mean,positions,csv,npy,svg,png,html"`
	IDs       []string `name:"ids" sep:"none" help:"Comma-separated token ids, instead of the first text; a second --ids is instead of the second." placeholder:"N" either:"input"`
	Pairs     string   `help:"Many pairs of texts: JSON lines {\"a\": \"a text\", \"b\": \"another\", \"metric\": \"loss\"}, or lines of two texts and, optionally, a metric, with tabs between them. Effects are means over the pairs, with 95% intervals." placeholder:"FILE" either:"input"`
	Target    *string  `help:"What the decoder of an encoder-decoder has written before the token of a logit, or the translation of loss and probability (default nothing for a logit, otherwise what the model writes for the first text)." placeholder:"TEXT"`

	CSV   string `name:"csv" help:"Write a table with one line per effect." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	NPY   string `name:"npy" help:"Write the heat maps as a NumPy array [panels rows columns]." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	SVG   string `name:"svg" help:"Write an SVG image." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	PNG   string `name:"png" help:"Write a PNG image." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	HTML  string `name:"html" help:"Write an HTML page that shows the effect of each cell." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	JSON  bool   `name:"json" help:"Write a JSON object for each effect to standard output, one per line."`
	Color string `default:"auto" enum:"auto,truecolor,256,16,none" help:"auto, truecolor, 256, 16 or none." placeholder:"NAME" group:"On the terminal"`
	Width *int   `help:"Characters per line (default the width of the terminal)." placeholder:"N" group:"On the terminal" want:"at least 24"`
	formatFlag
	languageFlags
	Text   *string `arg:"" optional:"" help:"Text that the model reads." either:"input"`
	Second *string `arg:"" optional:"" help:"Second text, of as many tokens, to patch." needs:"text"`
}

func (lensCommand) Help() string {
	return `Examples:

  attn lens --model gpt2 "The capital of France is" --metric 'logit( Paris) - logit( Rome)'
  attn lens --model gpt2 "The capital of France is" "The capital of Italy is" \
    --metric 'logit( Paris) - logit( Rome)' --what patch,attribution --json > effects.jsonl
  attn lens --model gpt2 --ids 464,3139 --ids 464,1748 --metric 'logit(#286) - logit(#11)'
  attn lens --model gpt2 --part residual,mlp --positions "The cat sat" "The dog sat" --png maps.png
  attn lens --model gpt2 --ablate '5.1,5.5,7.*' --metric loss "The cat sat. The cat sat"
  attn lens --model bert-base-uncased "The capital of France is [MASK]." --metric 'logit(paris)'
  attn lens --model all-MiniLM-L6-v2 "A cat sat" --metric 'similarity("A dog sat")'

An effect is the metric with a change minus the metric without it. zero silences a part, and
mean replaces it by its mean over --mean: both in the first text. patch puts what a part
computes for the first text into a run of the second. attribution estimates patch, or with
one text zero, for all parts from one backward pass: see its correlation with the exact
effects, if both are measured. A part is the output of a head, its queries, keys, values or
pattern of weights, the residual stream before a layer, or the output of an mlp. In a model
with grouped keys, query 0.5 is a head of queries and key 0.1 one of keys.`
}

// Validate is called by the parser.
func (cmd *lensCommand) Validate() error {
	has := func(what string) bool { return slices.Contains(cmd.What, what) }
	switch two := cmd.Second != nil || len(cmd.IDs) > 1 || cmd.Pairs != ""; {
	case len(cmd.IDs) > 2:
		return fmt.Errorf("%d times --ids, want at most 2", len(cmd.IDs))
	case len(cmd.IDs) > 1 && cmd.Lens:
		return errors.New("--lens and a second --ids cannot be used together")
	case has(lens.Patch) && !two, len(cmd.Patch) > 0 && !two:
		return errors.New("patch requires a second text, or a second --ids: it is put into a run of that one")
	case (cmd.Edges || cmd.Circuit != "") && !two:
		return errors.New("edges and circuits require a second text, or a second --ids")
	case len(cmd.Patch) > 0 && len(cmd.What) > 0 && !has(lens.Patch):
		return errors.New("--patch requires patch in --what")
	case has(lens.Mean) && cmd.Mean == "":
		return errors.New("--what mean requires --mean")
	case cmd.Mean != "" && len(cmd.What) > 0 && !has(lens.Mean) && len(cmd.Ablate) == 0:
		return errors.New("--mean requires mean in --what, or --ablate")
	case has(lens.Attribution) && (len(cmd.Ablate) > 0 || len(cmd.Patch) > 0):
		return errors.New("--what attribution and --ablate or --patch cannot be used together")
	case (has(lens.Attribution) || cmd.Edges || cmd.Circuit != "") && cmd.Format != 0:
		return errors.New("--format cannot be used with attribution, edges and circuits, which are computed in float32")
	case cmd.Mean != "" && slices.Contains(cmd.Part, of.Pattern.String()):
		return errors.New("--mean cannot be used with the part pattern, whose size depends on the text")
	case cmd.NPY != "" && len(cmd.Part) > 1 && (slices.Contains(cmd.Part, of.Residual.String()) || slices.Contains(cmd.Part, of.FeedForward.String())):
		return errors.New("--npy writes one array: want residual or mlp alone in --part, whose maps have other sizes")
	case len(cmd.What) == 0 && len(cmd.Patch) > 0:
		cmd.What = []string{lens.Patch}
	case len(cmd.What) == 0 && cmd.Mean != "" && len(cmd.Ablate) == 0:
		cmd.What = []string{lens.Mean}
	case len(cmd.What) == 0 && two:
		cmd.What = []string{lens.Patch}
	case len(cmd.What) == 0:
		cmd.What = []string{lens.Zero}
	}
	return nil
}

func (cmd *lensCommand) Run(ctx context.Context, c console) error {
	shown := progress.NewStages(c.err)
	defer shown.Clear()
	s, err := cmd.study(c)
	if err != nil {
		return err
	}
	defer lessGarbage()()
	s.Progress = shown.Update
	if cmd.Lens || cmd.Edges || cmd.Circuit != "" {
		return cmd.read(ctx, c, s, shown)
	}
	r, err := s.Run(ctx)
	shown.Clear()
	stopped := errors.Is(err, context.Canceled)
	switch {
	case stopped && len(r.Effects) == 0:
		return interrupted{"interrupted before an effect was measured"}
	case err != nil && !stopped:
		return err
	}
	if err := cmd.write(r, c); err != nil {
		return err
	}
	if stopped {
		return interrupted{"interrupted; what has been measured so far is shown"}
	}
	return nil
}

// lessGarbage lets garbage grow to 32 MB, or to 5% of what the loaded model takes if that is more. By default it may be as large
// as the weights, although a collection is fast: it skips numbers. The result undoes it.
func lessGarbage() (undo func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before := debug.SetGCPercent(int(min(100, max(5, 100*32<<20/m.HeapAlloc))))
	return func() { debug.SetGCPercent(before) }
}

// read shows the logit lens, or a circuit.
func (cmd *lensCommand) read(ctx context.Context, c console, s *lens.Study, shown *progress.Stages) error {
	if cmd.Lens {
		y, err := s.Lens(ctx, 5)
		switch {
		case err != nil:
			return err
		case cmd.JSON:
			return y.JSON(c.out)
		}
		return y.Text(c.out, terminalOf(c.out, cmd.Color, cmd.Width, false).Width)
	}
	var given *of.Circuit
	if cmd.Circuit != "" {
		var err error
		if given, err = lens.ReadCircuit(cmd.Circuit, s.Model); err != nil {
			return err
		}
	}
	y, err := s.Circuit(ctx, given, cmd.Steps, cmd.Top)
	shown.Clear()
	if err != nil {
		return err
	}
	g := y.Graph(300)
	written, err := c.writeFiles(
		atomicfile.File{Path: cmd.Save, Write: y.Write},
		atomicfile.File{Path: cmd.SVG, Write: g.SVG},
		atomicfile.File{Path: cmd.PNG, Write: func(w io.Writer) error { return g.PNG(w, 2) }},
		atomicfile.File{Path: cmd.HTML, Write: g.HTML},
	)
	switch {
	case err != nil || written && slices.Contains([]string{cmd.Save, cmd.SVG, cmd.PNG, cmd.HTML}, "-"):
		return err
	case cmd.JSON:
		return y.JSON(c.out)
	}
	return y.Text(c.out)
}

// distinct returns a list without repeated names, which would be measured again.
func distinct(names []string) (list []string) {
	for _, name := range names {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// study loads the model and the texts.
func (cmd *lensCommand) study(c console) (*lens.Study, error) {
	s := &lens.Study{Target: cmd.Target, What: distinct(cmd.What), Means: cmd.Mean, Positions: cmd.Positions}
	for _, name := range distinct(cmd.Part) {
		p, err := of.ParsePart(name)
		if err != nil {
			return nil, usage("%w", err)
		}
		s.Parts = append(s.Parts, p)
	}
	item := lens.Item{A: deref(cmd.Text), B: deref(cmd.Second), Metric: cmd.Metric}
	for _, list := range cmd.IDs {
		var ids []int
		for text := range strings.SplitSeq(list, ",") {
			id, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil {
				return nil, usage("--ids: %q, want comma-separated numbers", text)
			}
			ids = append(ids, id)
		}
		item.IDs = append(item.IDs, ids)
	}
	s.Items = []lens.Item{item}
	if cmd.Pairs != "" {
		var err error
		if s.Items, err = lens.Pairs(cmd.Pairs, cmd.Metric); err != nil {
			return nil, err
		}
	}
	o := cmd.options()
	o.Trainable = slices.Contains(cmd.What, lens.Attribution) || cmd.Edges || cmd.Circuit != ""
	if slices.ContainsFunc(s.Items, func(it lens.Item) bool { _, ok := of.ParseSimilarity(it.Metric); return ok }) {
		e, err := load(c, models.LoadEmbedder, cmd.Model, o)
		if err != nil {
			return nil, err
		}
		s.Embedder, s.Model = e, e.Model
	} else {
		m, err := load(c, models.Load, cmd.Model, o)
		if err != nil {
			return nil, err
		}
		if s.Model, err = cmd.choose(m); err != nil {
			return nil, err
		}
	}
	if cmd.Target != nil && s.Model.Sizes().Decoder == nil {
		return nil, usage("--target requires an encoder-decoder, and %s is a %s model", quoted(cmd.Model), s.Model.Family.Name)
	}
	var err error
	if s.Ablated, err = lens.ParseHeads(s.Model, cmd.Ablate); err == nil {
		s.Patched, err = lens.ParseHeads(s.Model, cmd.Patch)
	}
	return s, err
}

// write draws the effects, or writes them to the files of the flags.
func (cmd *lensCommand) write(r *lens.Report, c console) error {
	f := r.Figure()
	written, err := c.writeFiles(
		atomicfile.File{Path: cmd.CSV, Write: r.CSV},
		atomicfile.File{Path: cmd.NPY, Write: f.NPY},
		atomicfile.File{Path: cmd.SVG, Write: f.SVG},
		atomicfile.File{Path: cmd.PNG, Write: func(w io.Writer) error { return f.PNG(w, 2) }},
		atomicfile.File{Path: cmd.HTML, Write: f.HTML},
	)
	switch {
	case err != nil:
		return err
	case cmd.JSON:
		return r.JSON(c.out)
	case written:
		return nil
	}
	return r.Text(c.out, terminalOf(c.out, cmd.Color, cmd.Width, false))
}
