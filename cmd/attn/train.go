package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/seq2seq"
)

type trainCommand struct {
	recipeFlags
	Out    string `help:"Directory for the model; runs/dates or runs/NAME.run if not given." placeholder:"DIR"`
	Resume bool   `help:"Go on with the run in the directory; --epochs may ask for more."`
	JSON   bool   `name:"json" help:"Write one JSON object a line to standard output."`
}

func (trainCommand) Help() string {
	return `Examples:

  attn train                                   dates in ten languages, in seconds
  attn train --data fra.tsv --epochs 10        a translator of your own
  attn train --data fra.tsv --arch gru --score additive
  attn train --resume --out runs/fra.run --epochs 20

An interrupted run (Ctrl-C) is saved; --resume goes on exactly where it stopped.`
}

// metricsFile gets a JSON object for each epoch and one for the final
// measurement.
const metricsFile = "metrics.jsonl"

func (cmd *trainCommand) Run(ctx context.Context, c console) error {
	dir := cmd.Out
	if dir == "" {
		dir = cmd.directory()
	}
	s := session{console: c, dir: dir, json: cmd.JSON}
	if err := s.open(cmd); err != nil {
		return err
	}
	defer s.metrics.Close()
	if err := s.train(ctx); err != nil {
		return err
	}
	return s.measure(ctx)
}

// session is a run of attn train.
type session struct {
	console
	dir         string
	json        bool
	recipe      recipe
	learn, test []seq2seq.Pair
	unseen      bool // test is not part of learn
	model       *seq2seq.Translator
	trainer     *seq2seq.Trainer
	metrics     *os.File
}

// open makes or loads everything that training needs.
func (s *session) open(cmd *trainCommand) error {
	var err error
	if cmd.Resume {
		s.recipe, err = cmd.resume(s.dir)
	} else {
		s.recipe, err = cmd.fresh()
	}
	if err != nil {
		return err
	}
	if s.learn, s.test, s.unseen, err = s.recipe.pairs(); err != nil {
		return err
	}
	if cmd.Resume {
		s.model, err = seq2seq.Load(s.dir)
	} else {
		source, target := s.recipe.vocabularies(s.learn)
		s.model, err = seq2seq.New(s.recipe.Network, source, target, rand.New(rand.NewPCG(s.recipe.Training.Seed, 0)))
	}
	if err != nil {
		return err
	}
	if s.trainer, err = seq2seq.NewTrainer(s.model, s.learn, s.recipe.Training); err != nil {
		return err
	}
	if n := s.trainer.Skipped; n > 0 {
		fmt.Fprintf(s.err, "left out %d pairs of more than %d tokens\n", n, s.recipe.Training.MaxLength)
	}
	mode := os.O_TRUNC
	if cmd.Resume {
		mode = os.O_APPEND
		if err := s.trainer.Resume(s.dir); err != nil {
			return err
		}
		if done, _ := s.trainer.Done(); done >= s.recipe.Training.Epochs {
			fmt.Fprintf(s.err, "all %d epochs are done; --epochs asks for more\n", done)
		}
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := s.recipe.save(s.dir); err != nil {
		return err
	}
	s.metrics, err = os.OpenFile(filepath.Join(s.dir, metricsFile), os.O_CREATE|os.O_WRONLY|mode, 0o644)
	return err
}

// epochMetrics is a line of the metrics file.
type epochMetrics struct {
	Epoch     int     `json:"epoch"`
	TrainLoss float64 `json:"train_loss"` // with dropout and smoothing
	ValidLoss float64 `json:"valid_loss"`
	Tokens    int     `json:"tokens"`
	Seconds   float64 `json:"seconds"`
}

// train runs the epochs, measuring and saving after each.
func (s *session) train(ctx context.Context) error {
	n := s.model.Config
	fmt.Fprintf(s.err, "%s with %s scores, %d parameters; %d pairs to learn, %d to measure on\n",
		n.Arch, n.Score, nn.Count(s.model), len(s.learn), len(s.test))
	p := newProgress(s.err)
	defer p.stop()
	epoch := epochMetrics{}
	start := time.Now()
	err := s.trainer.Run(ctx, func(step seq2seq.Progress) error {
		epoch.Tokens += step.Tokens
		p.step(step)
		if !step.EpochDone {
			return nil
		}
		epoch.Epoch, epoch.TrainLoss, epoch.Seconds = step.Epoch, step.Loss, time.Since(start).Seconds()
		var err error
		if epoch.ValidLoss, err = s.model.Loss(ctx, s.test); err != nil && ctx.Err() == nil {
			return err
		}
		if err := s.trainer.Save(s.dir); err != nil {
			return err
		}
		if err := s.record(epoch); err != nil {
			return err
		}
		p.epoch(epoch)
		epoch, start = epochMetrics{}, time.Now()
		return ctx.Err()
	})
	p.stop()
	if errors.Is(err, context.Canceled) {
		if err := s.trainer.Save(s.dir); err != nil {
			return err
		}
		epochs, steps := s.trainer.Done()
		return interrupted{fmt.Sprintf("interrupted after %d epochs and %d steps; all is saved, go on with: attn train --resume --out %s", epochs, steps, s.dir)}
	}
	return err
}

// finalMetrics is the last line of the metrics file.
type finalMetrics struct {
	seq2seq.Metrics
	Unseen bool `json:"unseen"` // the sources were kept from training
}

// measure translates the test pairs and shows how well.
func (s *session) measure(ctx context.Context) error {
	m, err := s.model.Evaluate(ctx, s.test, seq2seq.Decoding{})
	if err != nil {
		return err
	}
	if err := s.record(finalMetrics{m, s.unseen}); err != nil {
		return err
	}
	what := "unseen"
	if !s.unseen {
		what = "training" // too few pairs to keep some apart
	}
	fmt.Fprintf(s.err, "%d %s sources: %.1f%% exact, BLEU %.1f, perplexity %.3f\n",
		m.Sources, what, 100*m.ExactMatch, m.BLEU, m.Perplexity)
	fmt.Fprintf(s.err, "model in %s; try: attn translate --model %s --map\n", s.dir, s.dir)
	if s.json {
		return nil
	}
	example := s.test[0].Source
	translations, err := s.model.Translate(ctx, []string{example}, seq2seq.Decoding{})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s → %s\n", example, translations[0])
	return drawAlignment(s.out, s.model, example, translations[0])
}

// record appends a line to the metrics file and, with --json, to the output.
func (s *session) record(line any) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if _, err := s.metrics.Write(data); err != nil {
		return err
	}
	if s.json {
		return write(s.out, data)
	}
	return nil
}

func write(w io.Writer, data []byte) error {
	_, err := w.Write(data)
	return err
}
