package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/attn-go/attn/internal/app/film"
	"github.com/attn-go/attn/internal/app/progress"
	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/train"
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
