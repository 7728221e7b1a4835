package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/seq2seq"
)

type trainCommand struct {
	recipeFlags
	Out       string   `help:"Directory for the model (default runs/dates, or runs/NAME.run for NAME.tsv)." placeholder:"DIR"`
	Resume    bool     `help:"Resume the run in the directory; --epochs may be raised."`
	Force     bool     `help:"Replace the model in the directory."`
	SaveEvery interval `default:"1m" help:"Within an epoch, save after this time, such as 30s or 5m, or this number of steps, such as 500; 0 saves at the ends of epochs only." placeholder:"TIME|STEPS"`
	JSON      bool     `name:"json" help:"Write JSON to standard output, one object per line."`
	Steps     bool     `help:"With --json, write an object for each step as well."`
	Prepare   bool     `help:"Save the untrained model and the pairs as numbers, and stop: to train elsewhere, see docs/scale-training.md."`
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
	switch {
	case cmd.Resume && cmd.Force:
		return errors.New("want one of --resume and --force")
	case cmd.Resume && cmd.Prepare:
		return errors.New("want one of --resume and --prepare")
	case cmd.Steps && !cmd.JSON:
		return errors.New("--steps goes with --json")
	}
	return nil
}

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
	s := session{console: c, dir: cmd.dir(), json: cmd.JSON, steps: cmd.Steps, resumed: cmd.Resume, every: cmd.SaveEvery}
	defer s.close()
	if err := s.open(cmd); err != nil {
		return err
	}
	if cmd.Prepare {
		return s.prepareOnly()
	}
	if err := s.train(ctx); err != nil {
		return err
	}
	err := s.measure(ctx)
	if errors.Is(err, context.Canceled) {
		return interrupted{"interrupted while measuring; the model is saved, measure it with: attn train --resume --out " + quoted(s.dir)}
	}
	return err
}

// interval is how often a run is saved within an epoch: after some steps or after some
// time, whichever is not zero.
type interval struct {
	steps int
	time  time.Duration
}

// UnmarshalText reads a flag.
func (i *interval) UnmarshalText(text []byte) error {
	*i = interval{}
	steps, err := strconv.Atoi(string(text))
	if err == nil && steps >= 0 {
		i.steps = steps
		return nil
	}
	if i.time, err = time.ParseDuration(string(text)); err != nil || i.time <= 0 {
		return fmt.Errorf("%q, want a time such as 30s or a number of steps such as 500", text)
	}
	return nil
}

// due reports whether it is time to save.
func (i interval) due(steps int, last time.Time) bool {
	return i.steps > 0 && steps >= i.steps || i.time > 0 && time.Since(last) >= i.time
}

// session is a run of attn train.
type session struct {
	console
	dir     string
	json    bool
	steps   bool // write an object for each, with json
	resumed bool
	every   interval
	recipe  recipe
	data    trainingData
	model   *seq2seq.Translator
	trainer *seq2seq.Trainer
	metrics metrics
	store   *atomicfile.Dir // nil until the directory is locked
	saved   bool            // the directory holds this run
}

// open makes or loads everything that training needs.
func (s *session) open(cmd *trainCommand) error {
	if cmd.Resume {
		return s.reopen(cmd)
	}
	var err error
	if s.recipe, err = cmd.fresh(); err != nil {
		return err
	}
	if err := s.vacant(cmd); err != nil {
		return err
	}
	if s.data, err = s.recipe.pairs(); err != nil {
		return err
	}
	source, target := s.recipe.vocabularies(s.data.learn)
	s.model, err = seq2seq.New(s.recipe.Network, source, target, rand.New(rand.NewPCG(s.recipe.Training.Seed, 0)))
	if err != nil {
		return err
	}
	if err := s.prepare(); err != nil {
		return err
	}
	if err := s.lock(); err != nil {
		return err
	}
	if err := s.vacant(cmd); err != nil { // somebody else may have saved meanwhile
		return err
	}
	if firstOf(s.dir, seq2seq.TrainingFile) != "" {
		fmt.Fprintf(s.err, "%s holds an earlier run, which this one replaces when it first saves\n", s.dir)
	}
	return nil
}

// reopen loads the run in the directory.
func (s *session) reopen(cmd *trainCommand) error {
	if !exists(s.dir) {
		return input.Errorf(s.dir, "holds no run to resume")
	}
	if err := s.lock(); err != nil {
		return err
	}
	var err error
	if s.recipe, err = cmd.resume(s.dir); err != nil {
		return err
	}
	if s.data, err = s.recipe.pairs(); err != nil {
		return err
	}
	if s.model, err = seq2seq.Load(s.dir); err != nil {
		return err
	}
	if err := s.prepare(); err != nil {
		return err
	}
	if err := s.trainer.Resume(s.dir); err != nil {
		return err
	}
	if s.metrics, err = readMetrics(s.dir, s.trainer.Total()); err != nil {
		return err
	}
	s.saved = true
	if done, _ := s.trainer.Done(); done >= s.recipe.Training.Epochs {
		fmt.Fprintf(s.err, "all %d epochs are done; raise --epochs to train further\n", done)
	}
	return nil
}

// prepare makes the trainer.
func (s *session) prepare() (err error) {
	if s.trainer, err = seq2seq.NewTrainer(s.model, s.data.learn, s.recipe.Training); err != nil {
		return err
	}
	if n := s.trainer.Skipped + s.data.tooLong; n > 0 {
		fmt.Fprintf(s.err, "pairs of more than %d tokens left out: %d\n", s.recipe.Training.MaxLength, n)
	}
	return nil
}

// vacant returns an error if a new run would replace something in the directory that
// nobody has given up.
func (s *session) vacant(cmd *trainCommand) error {
	files := append(seq2seq.ModelFiles(), recipeFile, curve.File, curve.PictureFile)
	if cmd.Prepare {
		files = append(files, seq2seq.ExamplesFile)
	}
	switch {
	case firstOf(s.dir, reportFile, unfinishedFile) != "":
		return usage("--out %s holds what attn prune has made, want a directory of its own", quoted(s.dir))
	case cmd.Force:
		return nil
	case firstOf(s.dir, seq2seq.TrainingFile) != "":
		return usage("%s holds a run of attn train: --resume goes on with it, --force replaces it", quoted(s.dir))
	case firstOf(s.dir, seq2seq.WeightsFile) != "":
		return usage("%s holds a model: --force replaces it", quoted(s.dir))
	}
	if name := firstOf(s.dir, files...); name != "" {
		return usage("%s is a file that the run would write: --force replaces it", quoted(filepath.Join(s.dir, name)))
	}
	return nil
}

// lock makes the run's directory, finds out whether it can be written to, and keeps
// other runs out. What an earlier run has left stays until there is something to put in
// its place.
func (s *session) lock() (err error) {
	if err := writable(s.dir); err != nil {
		return err
	}
	s.store, err = atomicfile.Lock(s.dir)
	return err
}

func (s *session) close() {
	if s.store != nil {
		curve.RemoveLive(s.dir)
		s.store.Unlock()
	}
}

// save writes everything that resuming needs.
func (s *session) save() error {
	files := append(s.trainer.Files(), s.recipe.file())
	if err := s.store.Replace(append(files, s.metrics.files()...)); err != nil {
		return err
	}
	s.saved = true
	return s.tell()
}

// train runs the epochs, measuring and saving after each, and saving within as often as
// was asked for.
func (s *session) train(ctx context.Context) error {
	n := s.model.Config
	fmt.Fprintf(s.err, "%s with %s scores, %d parameters; %d pairs to learn, %d to measure on\n",
		n.Arch, n.Score, nn.Count(s.model), len(s.data.learn), len(s.data.test))
	p := newProgress(s.err, curve.Parse(s.metrics.lines))
	defer p.clear()
	if err := s.complete(ctx); err != nil {
		return err
	}
	made, unsaved, last := 0, 0, time.Now() // steps; those since the last save; its time
	told := time.Now()                      // those who follow
	err := s.trainer.Run(ctx, func(step seq2seq.Progress) error {
		made++
		unsaved++
		p.step(step)
		if err := s.tellStep(step); err != nil {
			return err
		}
		if step.Window != nil {
			if err := s.metrics.add(stepLine(step)); err != nil {
				return err
			}
		}
		if time.Since(told) >= curve.Interval {
			told = time.Now()
			_ = curve.WriteLive(s.dir, p.live(step, &s.metrics, !s.saved)) // no reason to stop
		}
		if !step.EpochDone && !s.every.due(unsaved, last) {
			return nil
		}
		var epoch curve.Epoch
		if step.EpochDone {
			var err error
			if epoch, err = s.epoch(ctx, step); err != nil {
				return err
			}
			if err := s.metrics.add(epoch); err != nil {
				return err
			}
		}
		if err := s.save(); err != nil {
			return err
		}
		unsaved, last = 0, time.Now()
		if step.EpochDone && ctx.Err() == nil {
			p.epoch(epoch)
		}
		return ctx.Err()
	})
	p.clear()
	if errors.Is(err, context.Canceled) {
		if made == 0 && !s.resumed { // nothing worth replacing an earlier run for
			return interrupted{"interrupted before the first step; nothing is saved"}
		}
		if made == 0 || unsaved > 0 {
			if err := s.save(); err != nil {
				return err
			}
		}
		epochs, steps := s.trainer.Done()
		if epochs >= s.recipe.Training.Epochs {
			return nil // only measuring is left, and that will be told of
		}
		return interrupted{fmt.Sprintf("interrupted after %d epochs and %d steps; all is saved, go on with: attn train --resume --out %s", epochs, steps, quoted(s.dir))}
	}
	return err
}

// complete measures the last epoch of a run that was interrupted while doing so.
func (s *session) complete(ctx context.Context) error {
	m, ok := s.metrics.unmeasured()
	if !ok {
		return nil
	}
	loss, err := s.model.Loss(ctx, s.data.test)
	if ctx.Err() != nil {
		return nil // the next time
	} else if err != nil {
		return err
	}
	m.ValidLoss = number(loss)
	if err := s.metrics.add(m); err != nil {
		return err
	}
	return s.save()
}

// epoch measures at the end of one.
func (s *session) epoch(ctx context.Context, step seq2seq.Progress) (curve.Epoch, error) {
	m := curve.Epoch{
		Kind: curve.KindEpoch, Epoch: step.Epoch, Step: step.Total,
		TrainLoss: number(step.Loss), Tokens: step.EpochTokens, Seconds: step.EpochTime.Seconds(),
	}
	loss, err := s.model.Loss(ctx, s.data.test)
	switch {
	case ctx.Err() != nil:
		loss = math.NaN()
	case err != nil:
		return m, err
	case math.IsNaN(loss) || math.IsInf(loss, 0): // not to be saved over something better
		return m, fmt.Errorf("epoch %d: %w", step.Epoch, seq2seq.ErrDiverged)
	}
	m.ValidLoss = number(loss)
	return m, nil
}

// prepareOnly saves what another program needs to train the model.
func (s *session) prepareOnly() error {
	files := append(s.trainer.Files(), s.recipe.file(), s.trainer.Examples())
	if err := s.store.Replace(append(files, s.metrics.files()...)); err != nil {
		return err
	}
	fmt.Fprintf(s.err, "%s holds an untrained model of %d parameters and %d pairs; when it is trained, measure it with: attn train --resume --out %s\n",
		quoted(s.dir), nn.Count(s.model), len(s.data.learn)-s.trainer.Skipped, quoted(s.dir))
	return nil
}

// stepMetrics is what is written for a step. It is not kept.
type stepMetrics struct {
	Kind  curve.Kind `json:"kind"`
	Epoch int        `json:"epoch"`
	Step  int        `json:"step"` // of the epoch, from 1
	Loss  float64    `json:"loss"` // of the step's pairs, with dropout and smoothing
	Norm  float32    `json:"norm"` // of the gradient, before clipping
}

// tellStep writes a step to the output, with --steps.
func (s *session) tellStep(p seq2seq.Progress) error {
	if !s.steps {
		return nil
	}
	return json.NewEncoder(s.out).Encode(stepMetrics{curve.KindUpdate, p.Epoch, p.Step, p.StepLoss, p.Norm})
}

// tell writes the lines that have been saved to the output, with --json.
func (s *session) tell() error {
	text := s.metrics.told()
	if !s.json {
		return nil
	}
	_, err := s.out.Write(text)
	return err
}

// measure translates the test pairs and shows how well.
func (s *session) measure(ctx context.Context) error {
	m, err := s.model.Evaluate(ctx, s.data.test, seq2seq.Decoding{})
	if err != nil {
		return err
	}
	if err := s.metrics.add(finalMetrics{curve.KindFinal, newMeasured(m), s.data.unseen}); err != nil {
		return err
	}
	if err := s.store.Replace(s.metrics.files()); err != nil {
		return err
	}
	if err := s.tell(); err != nil {
		return err
	}
	what := "unseen"
	if !s.data.unseen {
		what = "training" // too few pairs to keep some apart
	}
	fmt.Fprintf(s.err, "%d %s sources: %.1f%% exact, BLEU %.1f, perplexity %.3f\n",
		m.Sources, what, 100*m.ExactMatch, m.BLEU, m.Perplexity)
	example := exampleOf(s.data.test)
	fmt.Fprintf(s.err, "the model is in %s; %s\n", quoted(s.dir), tryHint(s.dir, example))
	if s.json {
		return nil
	}
	translations, err := s.model.Translate(ctx, []string{example}, seq2seq.Decoding{})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s → %s\n", example, translations[0])
	if err := drawAlignment(s.out, terminalOf(s.out, "auto", nil, false), s.model, example, translations[0]); err != nil {
		return err
	}
	fmt.Fprintln(s.err, "rows are queries, the tokens written; columns are keys, the tokens read")
	return nil
}

// exampleOf returns a source to show: of the first few, the longest that fits on
// a terminal.
func exampleOf(test []seq2seq.Pair) string {
	const few, fits = 10, 32
	best := test[0].Source
	for _, p := range test[1:min(few, len(test))] {
		if n := utf8.RuneCountInString(p.Source); n > utf8.RuneCountInString(best) && n <= fits {
			best = p.Source
		}
	}
	return best
}
