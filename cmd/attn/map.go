package main

import (
	"context"
	"image/png"
	"io"
	"slices"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/filter"
	"github.com/attn-go/attn/internal/fonts"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/panels"
	"github.com/attn-go/attn/internal/view"
	"github.com/attn-go/attn/train"
	"github.com/attn-go/attn/viz"
)

type mapCommand struct {
	Model   string  `help:"Directory of the model to run." placeholder:"DIR" group:"What to run" either:"source"`
	Weights string  `help:"File of recorded weights, instead of a model." placeholder:"FILE" group:"What to run" either:"source" reads:"tensors" stdin:""`
	Target  *string `help:"Translation to feed to the decoder, instead of the one it generates." placeholder:"TEXT" group:"What to run" needs:"model"`
	Pair    *string `help:"Second text, for a pretrained encoder." placeholder:"TEXT" group:"What to run" needs:"model"`
	Steps   int     `name:"generate" help:"With a pretrained decoder, generate N tokens after the text, and draw what they attend to." placeholder:"N" group:"What to run" want:"at least 1" needs:"model" excludes:"pair"`
	Kind    *string `enum:"${kinds}" help:"${kinds_or} (default cross if the model has cross-attention)." placeholder:"NAME" group:"What to draw"`
	Layer   *int    `help:"Layer, from 0, or from the end if negative (default the last)." placeholder:"L" group:"What to draw" excludes:"mean=layers"`
	Head    *int    `help:"Head, from 0, or from the end if negative (default the mean over heads)." placeholder:"H" group:"What to draw"`
	All     bool    `help:"All heads; with --layer, all heads of that layer." group:"What to draw" excludes:"head"`
	Mean    *string `enum:"heads,layers" help:"Mean over the heads of one layer (heads, the default without --head), or over the heads of all layers (layers)." placeholder:"OVER" group:"What to draw" excludes:"head,all"`
	Rollout bool    `help:"Attention rollout (Abnar and Zuidema 2020): the share of each input token in each output vector of the last layer. Of the encoder, unless --kind decoder." group:"What to draw" excludes:"all,head,layer,mean,kind=cross"`
	Differ  bool    `name:"divergence" help:"Difference between heads: the Jensen–Shannon divergence in nats between each pair of heads of one kind, or, with --layer, of one layer (Clark et al. 2019)." group:"What to draw" excludes:"all,head,mean,rollout,embed"`
	Values  bool    `name:"value-weighted" help:"Multiply each weight by the norm of its value's contribution to the layer's output (Kobayashi et al. 2020)." group:"What to draw" excludes:"rollout,divergence"`
	Scale   string  `default:"unit" enum:"unit,largest" help:"Weight of the last colour: 1 (unit) or the largest weight drawn (largest)." placeholder:"NAME" group:"What to draw"`
	SVG     string  `name:"svg" help:"Write an SVG image." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	PNG     string  `name:"png" help:"Write a PNG image." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	HTML    string  `name:"html" help:"Write an HTML page that shows the weight of each cell." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	CSV     string  `name:"csv" help:"Write a table with one line per weight; tokens that a spreadsheet could run as formulas get an apostrophe in front." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	JSON    string  `name:"json" help:"Write the tokens and matrices as JSON." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	Embed   string  `name:"embed" help:"Write the page of attn view as an HTML fragment, for notebooks and blogs." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	NPY     string  `name:"npy" help:"Write a NumPy array [panels rows columns]." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	Film    string  `name:"film" help:"Write a WebP animation of these heads while the model was trained, from the recording of attn train." placeholder:"FILE" group:"Files, - for standard output" writes:"-" needs:"model" excludes:"text,target,pair,generate,value-weighted,scale=largest,svg,png,html,csv,json,embed,npy" stdin:""`
	Dark    bool    `help:"Draw --png or --film on a dark ground." group:"Files, - for standard output" needs:"png|film"`
	Font    string  `help:"Font file (.ttf, .otf, .ttc) for characters in --png and --film beyond Latin, Greek and Cyrillic (default a system font)." placeholder:"FILE" group:"Files, - for standard output" needs:"png|film"`
	Color   string  `default:"auto" enum:"auto,truecolor,256,16,none" help:"auto, truecolor, 256, 16 or none." placeholder:"NAME" group:"On the terminal"`
	Width   *int    `help:"Characters per line (default the width of the terminal)." placeholder:"N" group:"On the terminal" want:"at least 24"`
	ASCII   bool    `name:"ascii" help:"Draw with ASCII characters only, without colours." group:"On the terminal" excludes:"color=truecolor,color=256,color=16"`
	Text    *string `arg:"" optional:"" help:"Text that the model reads; without it, a line of standard input." needs:"model" stdin:""`
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
  attn map --model runs/dates --all --film heads.webp

The map is drawn in the terminal, unless a flag names a file. Rows are queries: the
tokens that attend. Columns are keys: the tokens that are attended to. --png draws Latin,
Greek and Cyrillic letters with a built-in font and other characters with --font or a
system font; without one, it draws their code points. --svg and --html show all characters.`
}

// choice returns which weights the flags select.
func (cmd *mapCommand) choice() panels.Choice {
	return panels.Choice{
		Path: cmd.Weights, Kind: deref(cmd.Kind), Layer: cmd.Layer, Head: cmd.Head, All: cmd.All,
		MeanOfLayers: deref(cmd.Mean) == "layers", Rollout: cmd.Rollout, Divergence: cmd.Differ,
		ValueWeighted: cmd.Values, Largest: cmd.Scale == "largest", Most: mostPretrained,
	}
}

// Validate is called by the parser.
func (cmd *mapCommand) Validate() error { return checkFilm(cmd.Film) }

// ground returns the ground of --png and --film.
func (cmd *mapCommand) ground() viz.Ground {
	if cmd.Dark {
		return viz.OnDark
	}
	return viz.OnLight
}

func (cmd *mapCommand) Run(ctx context.Context, c console) error {
	if cmd.Film != "" {
		f, err := readFilm(cmd.Model)
		if err != nil {
			return err
		}
		return writeFilm(cmd.Film, c.out, f, cmd.choice(), cmd.Font, cmd.ground())
	}
	record, err := cmd.record(ctx, c)
	if err != nil {
		return err
	}
	figure, err := cmd.choice().Figure(record)
	if err != nil {
		return err
	}
	drawn := panels.ShortMarks(figure, record.Special)
	if cmd.PNG != "" {
		if drawn.Fonts, err = fonts.For(cmd.Font, drawn.Lacking()); err != nil {
			return err
		}
	}
	outputs := cmd.outputs(ctx, record, figure, drawn)
	if len(outputs) == 0 {
		return drawn.Text(c.out, terminalOf(c.out, cmd.Color, cmd.Width, cmd.ASCII))
	}
	if err := atomicfile.WriteAll(slices.DeleteFunc(slices.Clone(outputs), toStandardOutput)...); err != nil {
		return err
	}
	if at := slices.IndexFunc(outputs, toStandardOutput); at >= 0 {
		return outputs[at].Write(c.out)
	}
	return nil
}

func toStandardOutput(f atomicfile.File) bool { return f.Path == "-" }

// outputs returns the files that the flags name. Tables contain the original tokens, figures the
// shortened marks.
func (cmd *mapCommand) outputs(ctx context.Context, r *heads.Record, figure, drawn viz.Figure) []atomicfile.File {
	return slices.DeleteFunc([]atomicfile.File{
		{Path: cmd.SVG, Write: drawn.SVG},
		{Path: cmd.PNG, Write: func(w io.Writer) error {
			img, err := drawn.Image(2, cmd.ground())
			if err != nil {
				return err
			}
			return png.Encode(w, img)
		}},
		{Path: cmd.HTML, Write: drawn.HTML},
		{Path: cmd.CSV, Write: figure.CSV},
		{Path: cmd.JSON, Write: figure.JSON},
		{Path: cmd.NPY, Write: figure.NPY},
		{Path: cmd.Embed, Write: func(w io.Writer) error { return cmd.embed(ctx, r, w) }},
	}, func(f atomicfile.File) bool { return f.Path == "" })
}

// embed writes the page with the record as a fragment for another page.
func (cmd *mapCommand) embed(ctx context.Context, r *heads.Record, w io.Writer) error {
	choice := cmd.choice()
	state, err := choice.State(r, cmd.Mean != nil)
	if err != nil {
		return err
	}
	title := choice.Title(r)
	page, err := view.Page(ctx, view.Options{Name: title, Records: []*heads.Record{r}}, state)
	if err == nil {
		_, err = w.Write(view.Embed(page, "Attention: "+title))
	}
	return err
}

// record returns the recorded weights, from a file or from a run of the model.
func (cmd *mapCommand) record(ctx context.Context, c console) (*heads.Record, error) {
	if cmd.Weights != "" {
		return heads.Read(cmd.Weights)
	}
	from, err := openSource(cmd.Model, c, cmd.Steps)
	if err != nil {
		return nil, err
	}
	m, longest := from.m, train.LongestText
	if m.Translator == nil {
		longest = longestPretrained
	}
	source, err := cmd.source(ctx, c, longest)
	if err != nil {
		return nil, err
	}
	if m.Translator == nil {
		if cmd.Target != nil {
			return nil, usage("--target requires a translator, and %s is a %s model; use --pair for a second text", quoted(cmd.Model), m.Family.Name)
		}
		r, err := from.Record(ctx, source, deref(cmd.Pair))
		if err != nil {
			return nil, recordError(1, err)
		}
		return r, nil
	}
	if cmd.Pair != nil {
		return nil, usage("--pair requires a pretrained encoder, and %s is a translator; use --target for its output", quoted(cmd.Model))
	}
	from.unknown.source(m, source)
	if cmd.Target != nil {
		if err := checkText("--target", 0, *cmd.Target, train.LongestText); err != nil {
			return nil, err
		}
		from.unknown.target(m, *cmd.Target)
		return m.Record(source, *cmd.Target, cmd.recorded())
	}
	written, err := m.Translate(ctx, []string{source}, 1)
	if err != nil {
		return nil, err
	}
	return m.Record(source, written[0], cmd.recorded())
}

// recorded returns which data to record in a run of the model: all that the outputs can show.
func (cmd *mapCommand) recorded() heads.RecorderOptions {
	return heads.RecorderOptions{ValueNorms: cmd.Values || cmd.Embed != "", Vectors: cmd.Embed != ""}
}

// source returns the text of the command line, or else a line of standard input, of at most
// longest bytes.
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
