package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/attn-go/attn/internal/app/chart"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

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
