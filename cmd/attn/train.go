package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/viz"
)

type trainCommand struct {
	recipeFlags
	Out    string `help:"Directory for the model (default runs/dates, or runs/NAME.run for NAME.tsv)." placeholder:"DIR"`
	Resume bool   `help:"Resume the run in the directory; --epochs may be raised."`
	JSON   bool   `name:"json" help:"Write JSON to standard output, one object per line."`
}

func (trainCommand) Help() string {
	return `Examples:

  attn train                                   dates in ten languages, in seconds
  attn train --data fra.tsv --epochs 10        a translator of your own
  attn train --data fra.tsv --arch gru --score additive
  attn train --resume --out runs/fra.run --epochs 20

An interrupted run (Ctrl-C) is saved; --resume continues exactly where it stopped.`
}

// metricsFile gets a JSON object for each epoch and one for the final
// measurement.
const metricsFile = "metrics.jsonl"

func (cmd *trainCommand) touches() touched {
	t := touched{makes: []place{{"--out", cmd.dir()}}}
	for _, p := range []struct {
		flag string
		path *string
	}{{"--data", cmd.Data}, {"--valid", cmd.Valid}} {
		if p.path != nil {
			t.reads = append(t.reads, place{p.flag, *p.path})
		}
	}
	return t
}

// dir returns where the run goes.
func (cmd *trainCommand) dir() string { return cmp.Or(cmd.Out, cmd.directory()) }

func (cmd *trainCommand) Run(ctx context.Context, c console) error {
	s := session{console: c, dir: cmd.dir(), json: cmd.JSON, resumed: cmd.Resume}
	if err := s.open(cmd); err != nil {
		return err
	}
	defer s.close()
	if err := s.train(ctx); err != nil {
		return err
	}
	err := s.measure(ctx)
	if errors.Is(err, context.Canceled) {
		return interrupted{"interrupted while measuring; the model is saved, measure it with: attn train --resume --out " + quoted(s.dir)}
	}
	return err
}

// session is a run of attn train.
type session struct {
	console
	dir     string
	json    bool
	resumed bool
	recipe  recipe
	data    trainingData
	model   *seq2seq.Translator
	trainer *seq2seq.Trainer
	metrics *os.File // nil until there is something to write
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
	if s.data, err = s.recipe.pairs(); err != nil {
		return err
	}
	if cmd.Resume {
		s.model, err = seq2seq.Load(s.dir)
	} else {
		source, target := s.recipe.vocabularies(s.data.learn)
		s.model, err = seq2seq.New(s.recipe.Network, source, target, rand.New(rand.NewPCG(s.recipe.Training.Seed, 0)))
	}
	if err != nil {
		return err
	}
	if s.trainer, err = seq2seq.NewTrainer(s.model, s.data.learn, s.recipe.Training); err != nil {
		return err
	}
	if n := s.trainer.Skipped + s.data.tooLong; n > 0 {
		fmt.Fprintf(s.err, "pairs of more than %d tokens left out: %d\n", s.recipe.Training.MaxLength, n)
	}
	if cmd.Resume {
		if err := s.trainer.Resume(s.dir); err != nil {
			return err
		}
		if done, _ := s.trainer.Done(); done >= s.recipe.Training.Epochs {
			fmt.Fprintf(s.err, "all %d epochs are done; raise --epochs to train further\n", done)
		}
	}
	return s.probe()
}

// probe makes the run's directory. What an earlier run has left stays until there
// is something to put in its place.
func (s *session) probe() error {
	if exists(filepath.Join(s.dir, reportFile)) || exists(filepath.Join(s.dir, unfinishedFile)) {
		return usage("--out %s holds what attn prune has made, want a directory of its own", quoted(s.dir))
	}
	if err := writable(s.dir); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(s.dir, recipeFile)); err == nil && !s.resumed {
		fmt.Fprintf(s.err, "%s holds an earlier run, which this one replaces when it first saves\n", s.dir)
	}
	return nil
}

// save writes everything that resuming needs.
func (s *session) save() error {
	if err := s.trainer.Save(s.dir); err != nil {
		return err
	}
	if err := s.recipe.save(s.dir); err != nil {
		return err
	}
	return s.openMetrics()
}

// openMetrics opens the metrics file, emptying that of an earlier run.
func (s *session) openMetrics() error {
	if s.metrics != nil {
		return nil
	}
	mode := os.O_TRUNC
	if s.resumed {
		mode = os.O_APPEND
	}
	var err error
	s.metrics, err = os.OpenFile(filepath.Join(s.dir, metricsFile), os.O_CREATE|os.O_WRONLY|mode, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Join(s.dir, metricsFile), errors.Unwrap(err))
	}
	return nil
}

func (s *session) close() {
	if s.metrics != nil {
		s.metrics.Close()
	}
}

// epochMetrics is a line of the metrics file.
type epochMetrics struct {
	Epoch     int     `json:"epoch"`
	TrainLoss number  `json:"train_loss"` // with dropout and smoothing
	ValidLoss number  `json:"valid_loss"` // NaN if it was interrupted
	Tokens    int     `json:"tokens"`
	Seconds   float64 `json:"seconds"`
}

// train runs the epochs, measuring and saving after each.
func (s *session) train(ctx context.Context) error {
	n := s.model.Config
	fmt.Fprintf(s.err, "%s with %s scores, %d parameters; %d pairs to learn, %d to measure on\n",
		n.Arch, n.Score, nn.Count(s.model), len(s.data.learn), len(s.data.test))
	p := newProgress(s.err)
	defer p.stop()
	epoch := epochMetrics{}
	start, steps := time.Now(), 0
	err := s.trainer.Run(ctx, func(step seq2seq.Progress) error {
		steps++
		epoch.Tokens += step.Tokens
		p.step(step)
		if !step.EpochDone {
			return nil
		}
		epoch.Epoch, epoch.TrainLoss, epoch.Seconds = step.Epoch, number(step.Loss), time.Since(start).Seconds()
		loss, err := s.model.Loss(ctx, s.data.test)
		switch {
		case ctx.Err() != nil:
			loss = math.NaN()
		case err != nil:
			return err
		case math.IsNaN(loss) || math.IsInf(loss, 0): // not to be saved over something better
			return fmt.Errorf("epoch %d: %w", step.Epoch, seq2seq.ErrDiverged)
		}
		epoch.ValidLoss = number(loss)
		if err := s.save(); err != nil {
			return err
		}
		if err := s.record(epoch); err != nil {
			return err
		}
		if ctx.Err() == nil {
			p.epoch(epoch)
		}
		epoch, start = epochMetrics{}, time.Now()
		return ctx.Err()
	})
	p.stop()
	if errors.Is(err, context.Canceled) {
		if steps == 0 && !s.resumed { // nothing worth replacing an earlier run for
			return interrupted{"interrupted before the first step; nothing is saved"}
		}
		if err := s.save(); err != nil {
			return err
		}
		epochs, steps := s.trainer.Done()
		return interrupted{fmt.Sprintf("interrupted after %d epochs and %d steps; all is saved, go on with: attn train --resume --out %s", epochs, steps, quoted(s.dir))}
	}
	return err
}

// finalMetrics is the last line of the metrics file.
type finalMetrics struct {
	measured
	Unseen bool `json:"unseen"` // the sources were kept from training
}

// measure translates the test pairs and shows how well.
func (s *session) measure(ctx context.Context) error {
	m, err := s.model.Evaluate(ctx, s.data.test, seq2seq.Decoding{})
	if err != nil {
		return err
	}
	if err := s.record(finalMetrics{newMeasured(m), s.data.unseen}); err != nil {
		return err
	}
	what := "unseen"
	if !s.data.unseen {
		what = "training" // too few pairs to keep some apart
	}
	fmt.Fprintf(s.err, "%d %s sources: %.1f%% exact, BLEU %.1f, perplexity %.3f\n",
		m.Sources, what, 100*m.ExactMatch, m.BLEU, m.Perplexity)
	example := s.example()
	fmt.Fprintf(s.err, "the model is in %s; %s\n", quoted(s.dir), tryHint(s.dir, example))
	if s.json {
		return nil
	}
	translations, err := s.model.Translate(ctx, []string{example}, seq2seq.Decoding{})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s → %s\n", example, translations[0])
	if err := drawAlignment(s.out, s.model, example, translations[0]); err != nil {
		return err
	}
	fmt.Fprintf(s.err, "rows are the tokens written, columns the tokens read; %s\n", viz.Legend())
	return nil
}

// example returns a source to show: of the first few, the longest that fits on
// a terminal.
func (s *session) example() string {
	const few, fits = 10, 32
	best := s.data.test[0].Source
	for _, p := range s.data.test[1:min(few, len(s.data.test))] {
		if n := utf8.RuneCountInString(p.Source); n > utf8.RuneCountInString(best) && n <= fits {
			best = p.Source
		}
	}
	return best
}

// record appends a line to the metrics file and, with --json, to the output.
func (s *session) record(line any) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if err := s.openMetrics(); err != nil {
		return err
	}
	end, err := s.metrics.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := s.metrics.Write(data); err != nil {
		_ = s.metrics.Truncate(end) // half a line would break who reads the file
		return err
	}
	if s.json {
		_, err = s.out.Write(data)
	}
	return err
}
