package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// open returns a new run, or the one in the directory.
func (cmd *trainCommand) open(c console) (s *train.Session, err error) {
	o := train.Options{Force: cmd.Force, Reserved: []string{reportFile, unfinishedFile}, Prepare: cmd.Prepare, Every: cmd.SaveEvery, Steps: cmd.Steps}
	if cmd.JSON {
		o.JSON = c.out
	}
	dir := cmd.dir()
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
		fmt.Fprintf(c.err, "pairs of more than %d tokens left out: %d\n", s.Recipe.Training.MaxLength, n)
	}
	if s.Replaces {
		fmt.Fprintf(c.err, "%s holds an earlier run, which this one replaces when it first saves\n", dir)
	}
	if done, _ := s.Trainer.Done(); done >= s.Recipe.Training.Epochs {
		fmt.Fprintf(c.err, "all %d epochs are done; raise --epochs to train further\n", done)
	}
	return s, nil
}

// taken says what to do about files that a new run would replace.
func taken(err error) error {
	var o *train.OccupiedError
	if !errors.As(err, &o) {
		return err
	}
	switch o.File {
	case reportFile, unfinishedFile:
		return usage("--out %s holds what attn prune has made, want a directory of its own", quoted(o.Dir))
	case train.TrainingFile:
		return usage("%s holds a run of attn train: --resume goes on with it, --force replaces it", quoted(o.Dir))
	case models.WeightsFile:
		return usage("%s holds a model: --force replaces it", quoted(o.Dir))
	}
	return usage("%s is a file that the run would write: --force replaces it", quoted(filepath.Join(o.Dir, o.File)))
}
