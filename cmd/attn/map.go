package main

import (
	"context"
	"fmt"
	"io"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/figures"
	"github.com/attn-go/attn/internal/app/film"
	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/viz"
)

type mapCommand struct {
	Model   string  `help:"Directory of the model to run." placeholder:"DIR" group:"What to run" either:"source"`
	Weights string  `help:"File of recorded weights, instead of a model. In a film.safetensors of attn train, --film draws all steps; everything else draws the last." placeholder:"FILE" group:"What to run" either:"source" reads:"tensors" stdin:""`
	Target  *string `help:"Translation to feed to the decoder, instead of the one it generates." placeholder:"TEXT" group:"What to run" needs:"model"`
	Pair    *string `help:"Second text, for an encoder or a decoder." placeholder:"TEXT" group:"What to run" needs:"model" filled:""`
	Steps   int     `name:"generate" help:"With a decoder, generate N tokens after the text, and draw what they attend to." placeholder:"N" group:"What to run" want:"at least 1" needs:"model" excludes:"pair"`
	Kind    *string `enum:"${drawn}" help:"${drawn_or} (default cross if the model has cross-attention)." placeholder:"NAME" group:"What to draw"`
	Layer   *int    `help:"Layer, from 0, or from the end if negative (default the last)." placeholder:"L" group:"What to draw" excludes:"mean=layers"`
	Head    *int    `help:"Head, from 0, or from the end if negative (default the mean over heads)." placeholder:"H" group:"What to draw"`
	All     bool    `help:"All heads; with --layer, all heads of that layer." group:"What to draw" excludes:"head"`
	Mean    *string `enum:"heads,layers" help:"Mean over the heads of one layer (heads, the default without --head), or over the heads of all layers (layers)." placeholder:"OVER" group:"What to draw" excludes:"head,all"`
	Rollout bool    `help:"Attention rollout (Abnar and Zuidema 2020): the share of each input token in each output vector of the last layer. Of the encoder, unless --kind decoder." group:"What to draw" excludes:"all,head,layer,mean,kind=cross"`
	Differ  bool    `name:"divergence" help:"Difference between heads: the Jensen–Shannon divergence in nats between each pair of heads of one kind, or, with --layer, of one layer (Clark et al. 2019)." group:"What to draw" excludes:"all,head,mean,rollout,embed"`
	Values  bool    `name:"value-weighted" help:"Multiply each weight by the norm of its value's contribution to the layer's output (Kobayashi et al. 2020)." group:"What to draw" excludes:"rollout,divergence"`
	Scale   string  `default:"largest" enum:"largest,unit" help:"Range of the colours: from 0 to the largest weight in the picture (largest), or from 0 to 1 (unit), to compare pictures." placeholder:"NAME" group:"What to draw"`
	SVG     string  `name:"svg" help:"Write an SVG image." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	PNG     string  `name:"png" help:"Write a PNG image." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	HTML    string  `name:"html" help:"Write an HTML page that shows the weight of each cell." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	CSV     string  `name:"csv" help:"Write a table with one line per weight; tokens that a spreadsheet could run as formulas get an apostrophe in front." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	JSON    string  `name:"json" help:"Write the tokens and matrices as JSON." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	Embed   string  `name:"embed" help:"Write the page of attn view as an HTML fragment, for notebooks and blogs." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	NPY     string  `name:"npy" help:"Write a NumPy array [panels rows columns]." placeholder:"FILE" group:"Files, - for standard output" writes:"-"`
	Film    string  `name:"film" help:"Write a WebP animation of how these heads changed during training, from the recording of attn train." placeholder:"FILE" group:"Files, - for standard output" writes:"-" excludes:"text,target,from,to,pair,generate,value-weighted,scale=largest,svg,png,html,csv,json,embed,npy" stdin:""`
	Dark    bool    `help:"Draw --png or --film on a dark ground." group:"Files, - for standard output" needs:"png|film"`
	Font    string  `help:"Font file (.ttf, .otf, .ttc) for characters in --png and --film beyond Latin, Greek and Cyrillic (default a system font)." placeholder:"FILE" group:"Files, - for standard output" needs:"png|film"`
	Color   string  `default:"auto" enum:"auto,truecolor,256,16,none" help:"auto, truecolor, 256, 16 or none." placeholder:"NAME" group:"On the terminal"`
	Width   *int    `help:"Characters per line (default the width of the terminal)." placeholder:"N" group:"On the terminal" want:"at least 24"`
	ASCII   bool    `name:"ascii" help:"Draw with ASCII characters only, without colours." group:"On the terminal" excludes:"color=truecolor,color=256,color=16"`
	settingFlag
	languageFlags
	Text *string `arg:"" optional:"" help:"Text that the model reads; without it, a line of standard input." needs:"model" stdin:""`
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
  attn map --weights runs/dates/film.safetensors --kind encoder --all --film heads.webp

The map is drawn in the terminal, unless a flag names a file. Rows are queries: the
tokens that attend. Columns are keys: the tokens that are attended to. --png draws Latin,
Greek and Cyrillic letters with a built-in font and other characters with --font or a
system font; without one, it draws their code points. --svg and --html show all characters.`
}

// Validate is called by the parser.
func (cmd *mapCommand) Validate() error { return film.CheckName(cmd.Film) }

// choice returns which weights the flags select.
func (cmd *mapCommand) choice() figures.Choice {
	return figures.Choice{
		Path: cmd.Weights, Kind: deref(cmd.Kind), Layer: cmd.Layer, Head: cmd.Head, All: cmd.All,
		MeanOfLayers: deref(cmd.Mean) == "layers", Rollout: cmd.Rollout, Divergence: cmd.Differ,
		ValueWeighted: cmd.Values, Largest: cmd.Scale == "largest", Most: recording.MaxWeights,
	}
}

// ground returns the ground of --png and --film.
func (cmd *mapCommand) ground() viz.Ground {
	if cmd.Dark {
		return viz.OnDark
	}
	return viz.OnLight
}

func (cmd *mapCommand) Run(ctx context.Context, c console) error {
	if cmd.Film != "" {
		return cmd.film(ctx, c)
	}
	record, film, err := cmd.record(ctx, c)
	if err != nil {
		return err
	}
	choice := cmd.choice()
	figure, err := choice.Figure(record)
	if err != nil {
		return err
	}
	drawn := figures.Labelled(figure, record) // tables have the original tokens
	if cmd.PNG != "" {
		if drawn.Fonts, err = figures.Fonts(cmd.Font, drawn.Lacking()); err != nil {
			return err
		}
	}
	written, err := c.writeFiles(
		atomicfile.File{Path: cmd.SVG, Write: drawn.SVG},
		atomicfile.File{Path: cmd.PNG, Write: func(w io.Writer) error { return figures.PNG(w, drawn, cmd.ground()) }},
		atomicfile.File{Path: cmd.HTML, Write: drawn.HTML},
		atomicfile.File{Path: cmd.CSV, Write: figure.CSV},
		atomicfile.File{Path: cmd.JSON, Write: figure.JSON},
		atomicfile.File{Path: cmd.NPY, Write: figure.NPY},
		atomicfile.File{Path: cmd.Embed, Write: func(w io.Writer) error {
			state, err := choice.State(record, cmd.Mean != nil)
			if err != nil {
				return err
			}
			o := view.Options{Name: choice.Title(record), Film: film}
			if film == nil {
				o.Records = []*heads.Record{record}
			}
			return view.WriteEmbed(ctx, w, o, state)
		}},
	)
	if err != nil || written {
		return err
	}
	return drawn.Text(c.out, terminalOf(c.out, cmd.Color, cmd.Width, cmd.ASCII))
}

// film writes the file of --film.
func (cmd *mapCommand) film(ctx context.Context, c console) error {
	read, path := recording.Film, cmd.Model
	if cmd.Weights != "" {
		read, path = heads.ReadFilm, cmd.Weights
	}
	f, err := read(path)
	if err != nil {
		return err
	}
	file, err := film.File(ctx, cmd.Film, f, cmd.choice(), cmd.Font, cmd.ground())
	if err == nil {
		_, err = c.writeFiles(file)
	}
	return err
}

// record returns the recorded weights, from a file or from a run of the model. If the file is a film, record also
// returns the film.
func (cmd *mapCommand) record(ctx context.Context, c console) (*heads.Record, *heads.Film, error) {
	if cmd.Weights != "" {
		return recording.Weights(cmd.Weights)
	}
	r, err := cmd.run(ctx, c)
	return r, nil, err
}

// run runs the model and returns its weights.
func (cmd *mapCommand) run(ctx context.Context, c console) (*heads.Record, error) {
	from, err := openRecorded(cmd.Model, c, cmd.Steps, cmd.settingFlag, cmd.languageFlags)
	if err != nil {
		return nil, err
	}
	m := from.Model
	second, flag := cmd.Pair, "--pair"
	switch writes := m.Sizes().Decoder != nil; {
	case !writes && cmd.Target != nil:
		return nil, usage("--target requires an encoder-decoder, and %s is %s model; use --pair for a second text", quoted(cmd.Model), quote.A(m.Family.Name))
	case writes && cmd.Pair != nil:
		return nil, usage("--pair requires an encoder or a decoder, and %s is an encoder-decoder; use --target for its output", quoted(cmd.Model))
	case writes:
		second, flag = cmd.Target, "--target"
	}
	source, err := c.text(ctx, cmd.Text, "type a text for the model to read, then Enter", recording.MaxText)
	if err == nil && second != nil {
		err = checkText(flag, 0, *second, recording.MaxText)
	}
	if err != nil {
		return nil, err
	}
	r, err := from.Record(ctx, source, deref(second))
	if err != nil {
		return nil, recordError(1, err)
	}
	if cmd.Kind == nil && !cmd.Rollout && r.Layer(heads.Mamba, 0) != nil {
		fmt.Fprintln(c.err, "attention is drawn; --kind mamba draws the Mamba layers beside it")
	}
	return r, nil
}
