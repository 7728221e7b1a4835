package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/term"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/filter"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/view"
	"github.com/attn-go/attn/train"
	"github.com/attn-go/attn/viz"
)

type mapCommand struct {
	Model   string  `help:"Directory of the model to run." placeholder:"DIR" group:"What to run"`
	Weights string  `help:"File of recorded weights, instead of a model." placeholder:"FILE" group:"What to run"`
	Target  *string `help:"What the decoder writes, instead of its own translation." placeholder:"TEXT" group:"What to run"`
	Pair    *string `help:"With a pretrained encoder, a second text." placeholder:"TEXT" group:"What to run"`
	Steps   int     `name:"generate" help:"With a pretrained decoder, continue the text by N tokens, and draw what these attend to." placeholder:"N" group:"What to run"`
	Kind    *string `enum:"${kinds}" help:"${kinds_or} (default cross if there is any)." placeholder:"NAME" group:"What to draw"`
	Layer   *int    `help:"Layer, from 0, or from the end if negative (default the last)." placeholder:"L" group:"What to draw"`
	Head    *int    `help:"Head, from 0, or from the end if negative (default the mean over heads)." placeholder:"H" group:"What to draw"`
	All     bool    `help:"All heads; with --layer, those of one layer." group:"What to draw"`
	Mean    *string `enum:"heads,layers" help:"Mean over the heads of a layer (heads, what is drawn without --head), or over the heads of all layers (layers)." placeholder:"OVER" group:"What to draw"`
	Rollout bool    `help:"How much of each input token is in each vector behind the last layer, by attention rollout (Abnar and Zuidema 2020), of the encoder unless --kind decoder." group:"What to draw"`
	Differ  bool    `name:"divergence" help:"How much heads differ: the Jensen–Shannon divergence of any two heads of one kind, or, with --layer, of one layer, in nats (Clark et al. 2019)." group:"What to draw"`
	Values  bool    `name:"value-weighted" help:"Weights times the norms of what the values add to the layer's result (Kobayashi et al. 2020)." group:"What to draw"`
	Scale   string  `default:"unit" enum:"unit,largest" help:"Weight that the last colour stands for: 1 (unit) or the largest there is (largest)." placeholder:"NAME" group:"What to draw"`
	SVG     string  `name:"svg" help:"Write a vector graphic." placeholder:"FILE" group:"Files, - for standard output"`
	PNG     string  `name:"png" help:"Write an image." placeholder:"FILE" group:"Files, - for standard output"`
	HTML    string  `name:"html" help:"Write a page that shows the weight of each cell." placeholder:"FILE" group:"Files, - for standard output"`
	CSV     string  `name:"csv" help:"Write a table with a line for each weight; an apostrophe keeps spreadsheets from running tokens." placeholder:"FILE" group:"Files, - for standard output"`
	JSON    string  `name:"json" help:"Write tokens and matrices as they are." placeholder:"FILE" group:"Files, - for standard output"`
	Embed   string  `name:"embed" help:"Write the page of attn view as a fragment of HTML, for notebooks and blogs." placeholder:"FILE" group:"Files, - for standard output"`
	NPY     string  `name:"npy" help:"Write a NumPy array [panels rows columns]." placeholder:"FILE" group:"Files, - for standard output"`
	Font    string  `help:"Font file (.ttf, .otf, .ttc) for characters in --png beyond Latin, Greek and Cyrillic (default one of the system)." placeholder:"FILE" group:"Files, - for standard output"`
	Color   string  `default:"auto" enum:"auto,truecolor,256,16,none" help:"auto, truecolor, 256, 16 or none." placeholder:"NAME" group:"On the terminal"`
	Width   *int    `help:"Characters per line (default as many as the terminal has)." placeholder:"N" group:"On the terminal"`
	ASCII   bool    `name:"ascii" help:"No colours, and weights in ASCII characters only." group:"On the terminal"`
	Text    *string `arg:"" optional:"" help:"Text that the model reads; without it, a line of standard input."`
}

func (mapCommand) Help() string {
	return `Examples:

  attn map --model runs/dates "tuesday 5 march 2019"
  attn map --model runs/dates --all "tuesday 5 march 2019"
  attn map --model runs/dates --layer 0 --head -1 --svg head.svg --csv head.csv "5 march 2019"
  attn map --model runs/dates --target 2019-03-05 --html - "5 march 2019" > map.html
  attn map --model bert-base-uncased --layer 0 --all "The cat sat on the mat"
  attn map --model gpt2 --generate 8 --layer 5 --all "The cat sat on"
  attn map --weights run.safetensors --kind encoder --all --png heads.png
  attn map --model runs/dates --embed heads.html "5 march 2019"
  attn map --weights run.safetensors --kind encoder --mean layers
  attn map --weights run.safetensors --kind encoder --divergence --csv heads.csv

The map goes to the terminal unless a file is asked for. Rows are queries, the tokens
that attend; columns are keys, the tokens that are attended to. --png has Latin,
Greek and Cyrillic letters, and others from --font or a font of the system, else their
code points; --svg and --html have all characters.`
}

// Validate is called by the parser.
func (cmd *mapCommand) Validate() error {
	switch {
	case (cmd.Model == "") == (cmd.Weights == ""):
		return errors.New("want either --model or --weights")
	case cmd.Weights != "" && cmd.Text != nil:
		return errors.New("a text goes with --model; --weights has its own")
	case cmd.Weights != "" && cmd.Target != nil:
		return errors.New("--target goes with --model")
	case cmd.Weights != "" && cmd.Pair != nil:
		return errors.New("--pair goes with --model")
	case cmd.Steps < 0 || cmd.Steps > 0 && cmd.Model == "":
		return errors.New("--generate goes with --model, and with a positive number")
	case cmd.Steps > 0 && cmd.Pair != nil:
		return errors.New("--generate and --pair exclude each other")
	case cmd.Font != "" && cmd.PNG == "":
		return errors.New("--font goes with --png")
	case cmd.Rollout && (cmd.All || cmd.Head != nil || cmd.Layer != nil):
		return errors.New("--rollout is of all layers and heads; it excludes --all, --layer and --head")
	case cmd.Rollout && cmd.Kind != nil && *cmd.Kind == heads.Cross.String():
		return errors.New("--rollout is within one text, want --kind encoder or decoder")
	case cmd.Mean != nil && (cmd.All || cmd.Head != nil || cmd.Rollout || cmd.Differ):
		return errors.New("--mean excludes --head, --all, --rollout and --divergence")
	case cmd.Mean != nil && *cmd.Mean == "layers" && cmd.Layer != nil:
		return errors.New("--mean layers is of all layers; it excludes --layer")
	case cmd.Differ && (cmd.All || cmd.Head != nil || cmd.Rollout || cmd.Embed != ""):
		return errors.New("--divergence is of several heads; it excludes --all, --head, --rollout and --embed")
	case cmd.Values && (cmd.Rollout || cmd.Differ):
		return errors.New("--rollout and --divergence are of weights; they exclude --value-weighted")
	case cmd.All && cmd.Head != nil:
		return errors.New("--head and --all exclude each other")
	case cmd.ASCII && cmd.Color != "auto" && cmd.Color != "none":
		return fmt.Errorf("--ascii has no colours, but --color is %s", cmd.Color)
	case cmd.Width != nil && *cmd.Width < narrowestMap:
		return fmt.Errorf("--width %d, want at least %d", *cmd.Width, narrowestMap)
	}
	return nil
}

func (cmd *mapCommand) touches() touched {
	t := touched{
		models: []place{{"--model", cmd.Model}}, tensors: []place{{"--weights", cmd.Weights}}, reads: []place{{"--font", cmd.Font}},
		stdin: cmd.Model != "" && cmd.Text == nil, stdout: true,
	}
	for _, o := range cmd.outputs() {
		t.writes = append(t.writes, o.place)
	}
	return t
}

// narrowestMap is the least width of a map, marked lines and all.
const narrowestMap = 24

// output is a file that was asked for.
type output struct {
	place
	drawn bool // and not a table, in which tokens are written as they are
	write func(viz.Figure, io.Writer) error
	embed bool // of the whole record, and not of the figure
}

// outputs returns the files that were asked for.
func (cmd *mapCommand) outputs() []output {
	return slices.DeleteFunc([]output{
		{place{"--svg", cmd.SVG}, true, viz.Figure.SVG, false},
		{place{"--png", cmd.PNG}, true, func(f viz.Figure, w io.Writer) error { return f.PNG(w, 2) }, false},
		{place{"--html", cmd.HTML}, true, viz.Figure.HTML, false},
		{place{"--csv", cmd.CSV}, false, viz.Figure.CSV, false},
		{place{"--json", cmd.JSON}, false, viz.Figure.JSON, false},
		{place{"--npy", cmd.NPY}, false, viz.Figure.NPY, false},
		{place{"--embed", cmd.Embed}, false, nil, true},
	}, func(o output) bool { return o.path == "" })
}

func (cmd *mapCommand) Run(ctx context.Context, c console) error {
	record, err := cmd.record(ctx, c)
	if err != nil {
		return err
	}
	drawnFrom := record
	if cmd.Values {
		if drawnFrom, err = cmd.valueWeighted(record); err != nil {
			return err
		}
	}
	figure, err := cmd.figure(drawnFrom)
	if err != nil {
		return err
	}
	drawn := shortMarks(figure, record.Special)
	if cmd.PNG != "" {
		if drawn.Fonts, err = fontsFor(cmd.Font, drawn.Lacking()); err != nil {
			return err
		}
	}
	outputs := cmd.outputs()
	if len(outputs) == 0 {
		return drawn.Text(c.out, terminalOf(c.out, cmd.Color, cmd.Width, cmd.ASCII))
	}
	var files []atomicfile.File
	stdout := func(io.Writer) error { return nil }
	for _, o := range outputs {
		of := figure
		if o.drawn {
			of = drawn
		}
		write := func(w io.Writer) error { return o.write(of, w) }
		if o.embed {
			fragment, err := cmd.fragment(ctx, record)
			if err != nil {
				return err
			}
			write = func(w io.Writer) error { _, err := w.Write(fragment); return err }
		}
		if o.path == "-" {
			stdout = write
		} else {
			files = append(files, atomicfile.File{Path: o.path, Write: write})
		}
	}
	if err := atomicfile.WriteAll(files...); err != nil {
		return err
	}
	return stdout(c.out)
}

// opened returns the layer and the head that a page is to show, or what is in its
// place, and whether the command line says so. The figure has been made of them before.
func (cmd *mapCommand) opened(r *heads.Record, layers []*heads.Layer) (layer *heads.Layer, head string, said bool) {
	layer, last := layers[0], layers[len(layers)-1]
	switch {
	case cmd.Rollout:
		all := ofKind(r, cmd.rolloutKind(r))
		return &all[len(all)-1], "rollout", true
	case cmd.Mean != nil && *cmd.Mean == "layers" && len(layers) > 1:
		return last, "all", true
	case cmd.Mean != nil && last.Heads > 1:
		return last, "mean", true
	case cmd.Head != nil:
		return layer, strconv.Itoa(headAt(layer, *cmd.Head)), true
	}
	return layer, "0", cmd.Kind != nil || cmd.Layer != nil
}

// fragment returns the page with the record for another page to hold.
func (cmd *mapCommand) fragment(ctx context.Context, r *heads.Record) ([]byte, error) {
	layers, err := cmd.layers(r)
	if err != nil {
		return nil, err
	}
	state := url.Values{}
	if cmd.Values {
		state.Set("vw", "1")
	}
	if layer, head, said := cmd.opened(r, layers); said {
		at := slices.IndexFunc(r.Layers, func(l heads.Layer) bool { return l.Name == layer.Name })
		state.Set("a", fmt.Sprintf("%d.%s", at, head))
	}
	title := cmd.title(r)
	page, err := view.Page(ctx, view.Options{Name: title, Records: []*heads.Record{r}}, state)
	if err != nil {
		return nil, err
	}
	return view.Embed(page, "Attention: "+title), nil
}

// record returns what is to be drawn from.
func (cmd *mapCommand) record(ctx context.Context, c console) (*heads.Record, error) {
	if cmd.Weights != "" {
		return heads.Read(cmd.Weights)
	}
	from, err := openSource(cmd.Model, c)
	if err == nil {
		from, err = continued(from, cmd.Steps, cmd.Model)
	}
	if err != nil {
		return nil, err
	}
	is, ok := from.(pretrainedSource)
	longest := train.LongestText
	if ok {
		longest = longestPretrained
	}
	source, err := cmd.source(ctx, c, longest)
	if err != nil {
		return nil, err
	}
	if ok {
		if cmd.Target != nil {
			return nil, usage("--target goes with a translator, and %s is a %s model: --pair is its second text", quoted(cmd.Model), is.m.Family.Name)
		}
		r, err := from.Record(ctx, source, deref(cmd.Pair))
		if err != nil {
			return nil, recordError(1, err)
		}
		return r, nil
	}
	if cmd.Pair != nil {
		return nil, usage("--pair goes with a pretrained encoder, and %s is a translator: --target is what it writes", quoted(cmd.Model))
	}
	m := from.(translatorSource).m
	unknown := newUnknown(c.err)
	unknown.source(m, source)
	if cmd.Target != nil {
		if err := checkText("--target", 0, *cmd.Target, train.LongestText); err != nil {
			return nil, err
		}
		unknown.target(m, *cmd.Target)
		return m.Record(source, *cmd.Target, cmd.recorded())
	}
	written, err := m.Translate(ctx, []string{source}, 1)
	if err != nil {
		return nil, err
	}
	return m.Record(source, written[0], cmd.recorded())
}

// recorded returns what a model's run is to leave: all that a page can show.
func (cmd *mapCommand) recorded() heads.RecorderOptions {
	return heads.RecorderOptions{ValueNorms: cmd.Values || cmd.Embed != "", Vectors: cmd.Embed != ""}
}

// source returns the text of the command line, or else a line of the input.
// It has at most so many bytes.
func (cmd *mapCommand) source(ctx context.Context, c console, longest int) (string, error) {
	if cmd.Text != nil {
		return *cmd.Text, checkText("argument", 1, *cmd.Text, longest)
	}
	c.invite("type a text for the model to read, then Enter")
	text, err := filter.First(ctx, c.in, "standard input", longest)
	if err == io.EOF {
		err = input.Errorf("standard input", "no text")
	}
	return text, err
}

// terminalOf returns what a figure is drawn on: that of w, changed by flags.
func terminalOf(w io.Writer, color string, width *int, ascii bool) viz.Terminal {
	t := viz.Terminal{Width: 80, ASCII: ascii}
	light, known := viz.DetectLight(os.Getenv)
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		t.Colors = viz.DetectColors(os.Getenv)
		if t.Colors != viz.NoColors && !known {
			light, known = askLight()
		}
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			t.Width = max(width, narrowestMap)
		}
	}
	t.Light, t.Dark = light, known && !light
	set(&t.Width, width)
	if ascii {
		t.Colors = viz.NoColors
	}
	switch color {
	case "truecolor":
		t.Colors = viz.TrueColor
	case "256":
		t.Colors = viz.Colors256
	case "16":
		t.Colors = viz.Colors16
	case "none":
		t.Colors = viz.NoColors
	}
	return t
}

// shortMarks returns the figure with ∎ for a mark that ends a text: its name would stand
// tall above the map, or turn all other tokens on end. Beside other marks, as [SEP] is
// beside [CLS], it keeps its name.
func shortMarks(f viz.Figure, special []string) viz.Figure {
	short := func(tokens []string) []string {
		last := len(tokens) - 1
		isMark := func(token string) bool { return slices.Contains(special, token) }
		if last < 0 || !isMark(tokens[last]) || slices.ContainsFunc(tokens[:last], isMark) {
			return tokens
		}
		return append(slices.Clone(tokens[:last]), endMark)
	}
	f.Panels = slices.Clone(f.Panels)
	for i := range f.Panels {
		p := &f.Panels[i]
		p.Rows, p.Columns = short(p.Rows), short(p.Columns)
	}
	return f
}

// title is what stands above a figure.
func (cmd *mapCommand) title(r *heads.Record) string {
	switch between := " → "; {
	case r.Source != "" && r.Target != "":
		if r.Layer(heads.Cross, 0) == nil { // two texts that an encoder has read as one
			between = " | "
		}
		return r.Source + between + r.Target
	case cmd.Weights != "":
		return cmp.Or(r.Source, r.Target, filepath.Base(cmd.Weights))
	}
	return cmp.Or(r.Source, r.Target)
}
