package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/train"
)

type trainCommand struct {
	recipeFlags
	Out       string         `help:"Directory for the model (default runs/dates, or runs/NAME.run for NAME.tsv)." placeholder:"DIR" writes:"model"`
	Resume    bool           `help:"Resume the run in the directory; --epochs may be raised." excludes:"force,prepare"`
	Force     bool           `help:"Replace the model in the directory."`
	SaveEvery train.Interval `default:"1m" help:"Within an epoch, save after this time, such as 30s or 5m, or this number of steps, such as 500; 0 saves at the ends of epochs only." placeholder:"TIME|STEPS"`
	JSON      bool           `name:"json" help:"Write JSON to standard output, one object per line."`
	Steps     bool           `help:"With --json, write an object for each step as well." needs:"json"`
	Prepare   bool           `help:"Save the untrained model and the pairs as numbers, and stop: to train elsewhere, see docs/scale-training.md."`
}

func (trainCommand) Help() string {
	return `Examples:

  attn train                                   dates in ten languages, in seconds
  attn train --data fra.tsv --epochs 10        a translator of your own
  attn train --data fra.tsv --arch gru --score additive
  attn train --resume --out runs/fra.run --epochs 20

A run is saved after each epoch, within it as --save-every says, and when it is
interrupted (Ctrl-C). However it ends, --resume continues exactly from what was saved
last. metrics.svg in its directory is the curve of the losses; attn follow shows it on a
page meanwhile.`
}

// Validate is called by the parser.
func (cmd *trainCommand) Validate() error {
	cmd.Out = cmp.Or(cmd.Out, cmd.directory())
	return nil
}

func (cmd *trainCommand) Run(ctx context.Context, c console) error {
	s, err := cmd.open(c)
	if err != nil {
		return err
	}
	defer s.Close()
	learn := len(s.Data.Learn)
	if cmd.Prepare {
		if err := s.Prepare(); err != nil {
			return err
		}
		fmt.Fprintf(c.err, "%s holds an untrained model of %d parameters and %d pairs; when it is trained, measure it with: attn train --resume --out %s\n",
			quoted(s.Dir), nn.Count(s.Model), learn-s.Trainer.Skipped, quoted(s.Dir))
		return nil
	}
	n := s.Model.Translator.Config
	fmt.Fprintf(c.err, "%s with %s scores, %d parameters; %d pairs to learn, %d to measure on\n",
		n.Arch, n.Score, nn.Count(s.Model), learn, len(s.Data.Test))
	p := newProgress(c.err, curve.Parse(s.Metrics()))
	err = s.Train(ctx, p)
	p.clear()
	switch {
	case errors.Is(err, context.Canceled) && !s.Saved:
		return interrupted{"interrupted before the first step; nothing is saved"}
	case errors.Is(err, context.Canceled):
		epochs, steps := s.Trainer.Done()
		return interrupted{fmt.Sprintf("interrupted after %d epochs and %d steps; all is saved, go on with: attn train --resume --out %s", epochs, steps, quoted(s.Dir))}
	case err != nil:
		return err
	}
	m, err := s.Measure(ctx)
	if err == nil {
		err = cmd.show(ctx, c, s, m)
	}
	if errors.Is(err, context.Canceled) {
		return interrupted{"interrupted while measuring; the model is saved, measure it with: attn train --resume --out " + quoted(s.Dir)}
	}
	return err
}
