package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/attn-go/attn/internal/app/chart"
	"github.com/attn-go/attn/internal/app/figures"
	"github.com/attn-go/attn/internal/app/film"
	"github.com/attn-go/attn/internal/app/progress"
	"github.com/attn-go/attn/internal/app/recording"
	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/train"
	"github.com/attn-go/attn/viz"
)

type trainCommand struct {
	recipeFlags
	Out       string         `help:"Directory for the model (default runs/dates, or runs/NAME.run for --data NAME.tsv)." placeholder:"DIR" writes:"model"`
	Resume    bool           `help:"Resume the run in the directory; --epochs may be increased." excludes:"force,prepare"`
	Force     bool           `help:"Overwrite an existing model."`
	SaveEvery train.Interval `default:"1m" help:"Write a checkpoint within an epoch after this time, such as 30s or 5m, or this number of steps, such as 500; 0 saves only after each epoch." placeholder:"TIME|STEPS"`
	Film      string         `help:"At the end, or after Ctrl-C, write a WebP animation of how the heads of the last cross-attention layer formed (default none; attn map --film draws any heads later)." placeholder:"FILE" writes:"file" excludes:"prepare"`
	JSON      bool           `name:"json" help:"Write JSON to standard output, one object per line."`
	Steps     bool           `help:"With --json, also write an object for each step." needs:"json"`
	Prepare   bool           `help:"Write the untrained model and the tokenized pairs, and exit, to train elsewhere; see docs/scale-training.md."`
}

func (trainCommand) Help() string {
	return `Examples:

  attn train                                   dates in twelve languages, in seconds
  attn train --data fra.tsv --epochs 10        your own sentence pairs
  attn train --data fra.tsv --arch gru --score additive
  attn train --resume --out runs/fra.run --epochs 20

Checkpoints are written after each epoch, every --save-every steps, and on Ctrl-C.
--resume continues from the last checkpoint, bit for bit. metrics.svg in the directory
plots the losses; attn follow plots them live in the browser.`
}

// Validate is called by the parser.
func (cmd *trainCommand) Validate() error {
	cmd.Out = cmp.Or(cmd.Out, cmd.directory())
	return film.CheckName(cmd.Film)
}

func (cmd *trainCommand) Run(ctx context.Context, c console) error {
	s, err := cmd.open(c)
	if err != nil {
		return err
	}
	defer s.Close()
	if cmd.Film != "" && s.Film() == nil {
		return usage("--film requires attention and test pairs of fewer tokens; this run records no heads")
	}
	learn := len(s.Data.Learn)
	if cmd.Prepare {
		if err := s.Prepare(); err != nil {
			return err
		}
		fmt.Fprintf(c.err, "%s contains an untrained model of %d parameters and %d pairs; after training, evaluate it with: attn train --resume --out %s\n",
			quoted(s.Dir), nn.Count(s.Model), learn-s.Trainer.Skipped, quoted(s.Dir))
		return nil
	}
	n, _ := s.Model.TranslatorConfig()
	fmt.Fprintf(c.err, "%s with %s scores, %d parameters; training pairs: %d, test pairs: %d\n",
		n.Arch, n.Score, nn.Count(s.Model), learn, len(s.Data.Test))
	p := progress.NewTraining(c.err, curve.Parse(s.Metrics()))
	err = s.Train(ctx, p)
	p.Clear()
	switch {
	case errors.Is(err, context.Canceled) && !s.Saved:
		return interrupted{"interrupted before the first step; nothing was saved"}
	case errors.Is(err, context.Canceled):
		epochs, steps := s.Trainer.Done()
		message := fmt.Sprintf("interrupted after %d epochs and %d steps; all progress is saved, resume with: ", epochs, steps)
		return cmd.interrupted(ctx, c, s.Dir, message)
	case err != nil:
		return err
	}
	m, err := s.Measure(ctx)
	if err == nil {
		err = cmd.show(ctx, c, s, m)
	}
	if err == nil && cmd.Film != "" {
		if err = cmd.drawFilm(ctx, c, s.Dir); errors.Is(err, context.Canceled) {
			return interrupted{"interrupted while drawing; the model is saved, draw the film with: " + cmd.laterFilm(s.Dir)}
		}
	}
	if errors.Is(err, context.Canceled) {
		return cmd.interrupted(ctx, c, s.Dir, "interrupted during evaluation; the model is saved, evaluate it with: ")
	}
	return err
}

// open returns a new run, or the one in the directory.
func (cmd *trainCommand) open(c console) (s *train.Session, err error) {
	o := train.Options{
		Force: cmd.Force, Reserved: []string{reportFile, unfinishedFile},
		Prepare: cmd.Prepare, Every: cmd.SaveEvery, Steps: cmd.Steps, Picture: chart.Picture,
	}
	if cmd.JSON {
		o.JSON = c.out
	}
	dir := cmd.Out
	if cmd.Resume {
		s, err = train.Reopen(dir, func(stored train.Recipe) (train.Recipe, error) { return cmd.resumed(stored, dir) }, o)
	} else {
		var r train.Recipe
		if r, err = cmd.fresh(); err == nil {
			s, err = train.Create(dir, r, o)
		}
	}
	if err != nil {
		return nil, taken(err)
	}
	if n := s.LeftOut(); n > 0 {
		fmt.Fprintf(c.err, "skipped pairs of more than %d tokens: %d\n", s.Recipe.Training.MaxLength, n)
	}
	if s.Replaces {
		fmt.Fprintf(c.err, "%s contains an earlier run; the first checkpoint overwrites it\n", dir)
	}
	if done, _ := s.Trainer.Done(); done >= s.Recipe.Training.Epochs {
		fmt.Fprintf(c.err, "all %d epochs are done; raise --epochs to train further\n", done)
	}
	return s, nil
}

// taken returns the usage error for files that a new run would overwrite.
func taken(err error) error {
	var o *train.OccupiedError
	if !errors.As(err, &o) {
		return err
	}
	switch o.File {
	case reportFile, unfinishedFile:
		return usage("--out %s contains the output of attn prune, want another directory", quoted(o.Dir))
	case train.TrainingFile:
		return usage("%s already contains a run; use --resume to continue it or --force to overwrite it", quoted(o.Dir))
	case models.WeightsFile:
		return usage("%s already contains a model; use --force to overwrite it", quoted(o.Dir))
	}
	return usage("%s already exists; use --force to overwrite it", quoted(filepath.Join(o.Dir, o.File)))
}

// show prints the evaluation of the model, and draws an example.
func (cmd *trainCommand) show(ctx context.Context, c console, s *train.Session, m train.Metrics) error {
	what := "unseen"
	if !s.Data.Unseen {
		what = "training" // too few pairs for a separate test set
	}
	fmt.Fprintf(c.err, "%d %s sources: %.1f%% exact, BLEU %.1f, perplexity %.3f\n",
		m.Sources, what, 100*m.ExactMatch, m.BLEU, m.Perplexity)
	example := s.Data.Example()
	fmt.Fprintf(c.err, "the model is in %s; %s\n", quoted(s.Dir), tryHint(s.Dir, example))
	if cmd.JSON {
		return nil
	}
	translations, err := s.Model.Translate(ctx, []string{example}, 1)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s → %s\n", example, translations[0])
	if err := drawAlignment(c.out, terminalOf(c.out, "auto", nil, false), s.Model, example, translations[0]); err != nil {
		return err
	}
	fmt.Fprintln(c.err, "rows are queries, the tokens written; columns are keys, the tokens read")
	return nil
}

// interrupted returns the error of an interrupted run in a directory, whose progress is saved: the message, and the
// command that resumes the run, or evaluates it if no epoch is left. It first draws the film of the steps so far. Drawing
// takes seconds; a second interruption ends the program, so the command that draws the film later is printed before.
func (cmd *trainCommand) interrupted(ctx context.Context, c console, dir, message string) error {
	resume := "attn train --resume --out " + quoted(dir)
	if cmd.Film == "" {
		return interrupted{message + resume}
	}
	message += resume + " --film " + quoted(cmd.Film)
	fmt.Fprintf(c.err, "drawing the film so far; Ctrl-C quits, and this command draws it later: %s\n", cmd.laterFilm(dir))
	if err := cmd.drawFilm(context.WithoutCancel(ctx), c, dir); err != nil {
		return interrupted{fmt.Sprintf("%s; the film is not drawn: %v", message, err)}
	}
	return interrupted{message}
}

// laterFilm returns the command that draws the film of a run.
func (cmd *trainCommand) laterFilm(dir string) string {
	return fmt.Sprintf("attn map --model %s --layer -1 --all --film %s", quoted(dir), quoted(cmd.Film))
}

// drawFilm writes the file of --film as laterFilm does: from the saved recording, whose weights are rounded.
func (cmd *trainCommand) drawFilm(ctx context.Context, c console, dir string) error {
	f, err := recording.Film(dir)
	if err != nil {
		return err
	}
	last := -1
	file, err := film.File(ctx, cmd.Film, f, figures.Choice{Layer: &last, All: true}, "", viz.OnLight)
	if err == nil {
		_, err = c.writeFiles(file)
	}
	return err
}
