package main

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/attn-go/attn/internal/app/progress"
	"github.com/attn-go/attn/internal/app/pruning"
	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/train"
)

type viewCommand struct {
	Model    []string `help:"Directory of the model; repeat the flag to compare models." placeholder:"DIR" sep:"none" either:"source"`
	Weights  []string `help:"Safetensors file with weights [H Lq Lk], or film.safetensors of a run; can be repeated." placeholder:"FILE" sep:"none" either:"source" reads:"tensors"`
	Addr     string   `default:"127.0.0.1:0" help:"Address to serve at; port 0 picks a free port." placeholder:"HOST:PORT"`
	Open     bool     `help:"Open the page in the browser."`
	Pair     *string  `help:"Second text of each pair; for an encoder-decoder, the target." placeholder:"TEXT" needs:"text" filled:""`
	Scores   string   `name:"importance" help:"Also show the importance of heads from this file, the output of attn heads --json." placeholder:"FILE"`
	Examples string   `help:"Also show the best examples of the open head from this file, the output of attn heads --examples --json." placeholder:"FILE"`
	PruneTo  string   `help:"New directory: a button of the page writes the first model to it, without the heads that are switched off." placeholder:"DIR" writes:"model" needs:"model"`
	Steps    int      `name:"generate" help:"With a decoder, generate N tokens after each text, and show what they attend to." placeholder:"N" want:"at least 1" needs:"model" excludes:"pair"`
	settingFlag
	languageFlags
	Text []string `arg:"" optional:"" help:"Texts to show first." needs:"model"`
}

func (viewCommand) Help() string {
	return `Examples:

  attn view --model runs/dates "tuesday 5 march 2019"
  attn view --model bert-base-uncased "The cat sat on the mat"
  attn view --model bert-base-uncased --pair "It weights keys." "What is attention?"
  attn view --model gpt2 --generate 20 "The cat sat on"
  attn view --weights bert.safetensors --open
  attn view --weights runs/dates/film.safetensors
  attn view --model runs/dates --model runs/dates-pruned "5/3/19"
  attn view --model runs/dates --importance heads.json "5/3/19"
  attn view --model gpt2 --examples examples.json "The cat sat on the mat"
  attn view --model gpt2 --prune-to small "The cat sat on the mat"
  attn view --model runs/fra.run --addr 127.0.0.1:8080

The page shows every head. The server runs until Ctrl-C and accepts connections from this
machine only, unless --addr is given. The only line on standard output is the URL of the
page. Anyone with this URL can open the page; requests without its token are rejected.`
}

// Validate is called by the parser.
func (cmd *viewCommand) Validate() error { return view.CheckAddress(cmd.Addr) }

func (cmd *viewCommand) Run(ctx context.Context, c console) error {
	o, err := cmd.options(ctx, c)
	if err != nil {
		return err
	}
	if cmd.Scores != "" {
		if err := o.ReadScores(cmd.Scores); err != nil {
			return err
		}
	}
	if cmd.Examples != "" {
		if err := o.ReadExamples(cmd.Examples); err != nil {
			return err
		}
	}
	return view.New(o).ServeAt(ctx, cmd.Addr, cmd.Open, c.out, c.err)
}

// modelName returns the name of a directory, or of the model that it is in the cache of the Hub.
func modelName(dir string) string {
	dir = filepath.Clean(dir)
	if name, ok := strings.CutPrefix(filepath.Base(filepath.Dir(filepath.Dir(dir))), "models--"); ok {
		return strings.Replace(name, "--", "/", 1)
	}
	return filepath.Base(dir)
}

// options loads the models, or opens the files, that the page shows.
func (cmd *viewCommand) options(ctx context.Context, c console) (view.Options, error) {
	if len(cmd.Model) == 0 {
		return cmd.files(c)
	}
	if cmd.PruneTo != "" && atomicfile.Exists(cmd.PruneTo) {
		return view.Options{}, usage("--prune-to %s already exists, want a new directory", quoted(cmd.PruneTo))
	}
	var recorded []recording.Model
	for _, dir := range cmd.Model {
		s, err := openRecorded(dir, c, cmd.Steps, cmd.settingFlag, cmd.languageFlags)
		if err != nil {
			return view.Options{}, err
		}
		recorded = append(recorded, s)
	}
	o := recorded[0].Page()
	if cmd.PruneTo != "" {
		o.Recorder = pruning.Page{Model: recorded[0], Out: cmd.PruneTo, Allowed: cmd.AllowSetting}
	}
	o.Name = modelName(cmd.Model[0])
	for i, s := range recorded[1:] {
		o.Others = append(o.Others, view.Model{Name: modelName(cmd.Model[i+1]), Recorder: s})
	}
	var err error
	if o.Film, err = train.ReadFilm(cmd.Model[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return o, err
	}
	for i, text := range cmd.Text {
		if err := checkText("argument", i+1, text, o.MaxText); err != nil {
			return o, err
		}
		r, err := o.Recorder.Record(ctx, text, deref(cmd.Pair))
		if err != nil {
			return o, recordError(i+1, err)
		}
		o.Records = append(o.Records, r)
	}
	return o, nil
}

// files opens the files that the page shows.
func (cmd *viewCommand) files(c console) (view.Options, error) {
	o := view.Options{Name: filepath.Base(cmd.Weights[0])}
	shown := progress.NewStages(c.err)
	defer shown.Clear()
	for i, path := range cmd.Weights {
		if len(cmd.Weights) > 1 {
			shown.Update("opening files", i, len(cmd.Weights))
		}
		if err := o.Open(path); err != nil {
			return o, err
		}
	}
	return o, nil
}
