package train

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/models"
)

// Session is a run in its directory, which is locked against other processes. It is saved after
// each epoch, within epochs as Options.Every says, and when it is interrupted.
type Session struct {
	Dir     string
	Recipe  Recipe
	Data    Data
	Model   *models.Model
	Trainer *Trainer
	// Replaces reports whether the directory contains an earlier run, which the first save of
	// this run replaces.
	Replaces bool
	// Saved reports whether the directory contains the state of this run.
	Saved bool

	options Options
	resumed bool
	metrics metrics
	film    *camera // nil if there is nothing to record
	loss    float64 // of the last point of the curve, or NaN
	store   *atomicfile.Dir
	unsaved int       // steps since the last save
	last    time.Time // time of the last save
	told    time.Time // time of the last live file
}

// Options are the options of a Session.
type Options struct {
	// Force allows replacing existing files of the directory.
	Force bool
	// Reserved names files of other programs: no run is started in a directory that has one.
	Reserved []string
	// Prepare says that Session.Prepare will be called: the files that it writes must not exist.
	Prepare bool
	// Every is how often the run is saved within an epoch.
	Every Interval
	// JSON receives the lines of metrics.jsonl as they are saved and, if Steps is set, a
	// line after each step. It may be nil.
	JSON  io.Writer
	Steps bool
	// Picture draws the lines of metrics.jsonl for metrics.svg, which is written with each save once there is a
	// step to draw. If Picture is nil, there is no such file.
	Picture func(w io.Writer, metrics [][]byte) error
}

// Interval is how often a run is saved within an epoch: after a number of steps or after a
// time, whichever is not zero.
type Interval struct {
	Steps int
	Time  time.Duration
}

// UnmarshalText parses a number of steps, such as 500, or a time, such as 30s.
func (i *Interval) UnmarshalText(text []byte) error {
	*i = Interval{}
	steps, err := strconv.Atoi(string(text))
	if err == nil && steps >= 0 {
		i.Steps = steps
		return nil
	}
	if i.Time, err = time.ParseDuration(string(text)); err != nil || i.Time <= 0 {
		return fmt.Errorf("%q, want a time such as 30s or a number of steps such as 500", text)
	}
	return nil
}

// due reports whether it is time to save.
func (i Interval) due(steps int, last time.Time) bool {
	return i.Steps > 0 && steps >= i.Steps || i.Time > 0 && time.Since(last) >= i.Time
}

// Watcher receives the progress of a session.
type Watcher interface {
	// Step is called after each step.
	Step(p Progress)
	// Epoch is called after each epoch has been evaluated and saved, with the loss on the test
	// pairs.
	Epoch(p Progress, loss float64)
}

// OccupiedError says that a new run would replace a file, or that the file is reserved.
type OccupiedError struct{ Dir, File string }

// Error returns a message with the path of the file.
func (e *OccupiedError) Error() string {
	return filepath.Join(e.Dir, e.File) + ": already exists and would be replaced"
}

// RunFiles returns the names of the files that a session may write.
func RunFiles() []string {
	return append(models.TranslatorFiles(), TrainingFile, RecipeFile, FilmFile, curve.File, curve.PictureFile, ExamplesFile)
}

// Create returns a new run of a recipe. Nothing in the directory changes until the first save.
//
// Errors: an *OccupiedError; those of the recipe and its data; an error if another process uses the
// directory.
func Create(dir string, r Recipe, o Options) (*Session, error) {
	s := &Session{Dir: dir, Recipe: r, options: o, loss: math.NaN()}
	if err := s.vacant(); err != nil {
		return nil, err
	}
	var err error
	if s.Model, s.Trainer, s.Data, err = r.New(); err != nil {
		return nil, err
	}
	if s.film, err = s.newCamera(); err != nil {
		return nil, err
	}
	if err := s.lock(); err != nil {
		return nil, err
	}
	if err := s.vacant(); err != nil { // another process may have saved meanwhile
		s.Close()
		return nil, err
	}
	s.Replaces = has(dir, TrainingFile)
	return s, nil
}

// Reopen returns the run in a directory at its last save. Its recipe is the result of change for
// the saved one, see Recipe.Continues.
//
// Errors: those of change; a *seq2seq.InputError if there is no run that can be resumed, or
// if its files do not match each other; an error if another process uses the directory.
func Reopen(dir string, change func(Recipe) (Recipe, error), o Options) (*Session, error) {
	if !atomicfile.Exists(dir) {
		return nil, input.Errorf(dir, "contains no run to resume")
	}
	s := &Session{Dir: dir, options: o, resumed: true, Saved: true}
	if err := s.lock(); err != nil {
		return nil, err
	}
	if err := s.reopen(change); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) reopen(change func(Recipe) (Recipe, error)) error {
	stored, err := ReadRecipe(s.Dir)
	switch {
	case err != nil:
		return err
	case stored == nil:
		return input.Errorf(s.Dir, "contains no run to resume")
	case !has(s.Dir, TrainingFile):
		return input.Errorf(s.Dir, "contains a model without its training state and cannot be resumed")
	}
	if s.Recipe, err = change(*stored); err != nil {
		return err
	}
	if s.Model, err = models.Load(s.Dir, models.Options{Trainable: true}); err != nil {
		return err
	}
	if s.Data, err = s.Recipe.Pairs(); err != nil {
		return err
	}
	if s.Trainer, err = NewTrainer(s.Model, s.Data.Learn, s.Recipe.Training); err != nil {
		return err
	}
	if err := s.Trainer.Resume(s.Dir); err != nil {
		return err
	}
	if s.metrics, err = readMetrics(s.Dir, s.Trainer.Total()); err != nil {
		return err
	}
	s.loss = math.NaN()
	if points := curve.Parse(s.metrics.lines).Steps; len(points) > 0 {
		s.loss = float64(points[len(points)-1].TrainLoss)
	}
	s.film, err = s.newCamera()
	return err
}

// vacant returns an error if the run would replace a file without Force, or if the directory has
// a reserved file.
func (s *Session) vacant() error {
	files := slices.Clone(s.options.Reserved)
	if !s.options.Force {
		files = append(append(files, TrainingFile, models.WeightsFile), RunFiles()...) // the first ones make the clearest errors
	}
	for _, name := range files {
		if has(s.Dir, name) && (name != ExamplesFile || s.options.Prepare) {
			return &OccupiedError{s.Dir, name}
		}
	}
	return nil
}

// has reports whether a directory has a file. It includes files that a killed save has completed but not
// moved into place.
func has(dir, name string) bool { return atomicfile.Exists(filepath.Join(dir, name)) }

// lock creates the run's directory, checks that it is writable, and locks it. The files of an earlier
// run are kept until the first save.
func (s *Session) lock() (err error) {
	if err := atomicfile.Writable(s.Dir); err != nil {
		return err
	}
	s.store, err = atomicfile.Lock(s.Dir)
	return err
}

// Close unlocks the directory. Progress that is not saved is lost.
func (s *Session) Close() {
	curve.RemoveLive(s.Dir)
	s.store.Unlock()
}

// LeftOut returns the number of pairs that are too long for training.
func (s *Session) LeftOut() int { return s.Trainer.Skipped + s.Data.TooLong }

// Metrics returns the lines of metrics.jsonl so far, saved or not.
func (s *Session) Metrics() [][]byte { return s.metrics.lines }

// Prepare saves the untrained model and the pairs as ids, so that another program can train it.
func (s *Session) Prepare() error {
	s.film = nil // another program makes the steps
	return s.save(s.Trainer.Examples())
}

// save writes everything that resuming needs, together with other files.
func (s *Session) save(others ...atomicfile.File) error {
	film, err := s.recording()
	if err != nil {
		return err
	}
	if err := s.write(slices.Concat(s.Trainer.Files(), []atomicfile.File{s.Recipe.File()}, film, others)...); err != nil {
		return err
	}
	s.Saved, s.unsaved, s.last = true, 0, time.Now()
	return nil
}

// write replaces files, together with the metrics.
func (s *Session) write(files ...atomicfile.File) error {
	files = append(files, s.metrics.file())
	var gone []string // files of an earlier run that this one does not replace
	if s.film == nil {
		gone = append(gone, FilmFile)
	}
	if draw := s.options.Picture; draw != nil && curve.Parse(s.metrics.lines).Drawable() {
		files = append(files, atomicfile.File{Path: curve.PictureFile, Write: func(w io.Writer) error {
			return draw(w, s.metrics.lines)
		}})
	} else {
		gone = append(gone, curve.PictureFile)
	}
	if err := s.store.Replace(files, gone...); err != nil {
		return err
	}
	text := bytes.Join(s.metrics.fresh(), nil)
	s.metrics.told = len(s.metrics.lines)
	if s.options.JSON == nil {
		return nil
	}
	_, err := s.options.JSON.Write(text)
	return err
}

// Train runs the remaining epochs. It evaluates and saves after each, and also saves within epochs as
// Options.Every says.
//
// If ctx ends, Train finishes the current step, saves, and returns the context's error unless no
// epoch is left. It does not save a new run that has made no step.
func (s *Session) Train(ctx context.Context, w Watcher) error {
	if e, ok := s.metrics.unmeasured(); ok { // interrupted during its evaluation
		_, err := s.epoch(ctx, e)
		if err == nil && ctx.Err() == nil {
			err = s.save()
		}
		if err != nil {
			return err
		}
	}
	if s.film != nil && s.Trainer.Total() == 0 {
		if err := s.frame(); err != nil {
			return err
		}
	}
	made := 0
	s.unsaved, s.last, s.told = 0, time.Now(), time.Now()
	err := s.Trainer.Run(ctx, func(p Progress) error {
		made++
		s.unsaved++
		return s.step(ctx, p, w)
	})
	if err == nil || err != ctx.Err() || made == 0 && !s.resumed {
		return err
	}
	if made == 0 || s.unsaved > 0 {
		if err := s.save(); err != nil {
			return err
		}
	}
	if done, _ := s.Trainer.Done(); done >= s.Recipe.Training.Epochs {
		return nil // only the evaluation is left
	}
	return err
}

// step is called after each step.
func (s *Session) step(ctx context.Context, p Progress, w Watcher) error {
	w.Step(p)
	if err := s.tell(p); err != nil {
		return err
	}
	if s.film != nil && filmed(p.Total, p.Total) {
		if err := s.frame(); err != nil {
			return err
		}
	}
	if !p.EpochDone && !s.options.Every.due(s.unsaved, s.last) {
		return nil
	}
	valid := math.NaN()
	if p.EpochDone {
		var err error
		valid, err = s.epoch(ctx, curve.Epoch{
			Kind: curve.KindEpoch, Epoch: p.Epoch, Step: p.Total, TrainLoss: Number(p.Loss),
			Tokens: p.EpochTokens, Seconds: p.EpochTime.Seconds(),
		})
		if err != nil {
			return err
		}
	}
	if err := s.save(); err != nil {
		return err
	}
	if p.EpochDone && ctx.Err() == nil {
		w.Epoch(p, valid)
	}
	return ctx.Err()
}

// update is the line of a single step, for Options.Steps. It is not saved.
type update struct {
	Kind  curve.Kind `json:"kind"`
	Epoch int        `json:"epoch"`
	Step  int        `json:"step"` // within the epoch, from 1
	Loss  float64    `json:"loss"` // of the pairs of this step, with dropout and smoothing
	Norm  float32    `json:"norm"` // of the gradient, before clipping
}

// tell reports a step: it writes the step's line, the point of the curve that the step completes, and the
// live file.
func (s *Session) tell(p Progress) error {
	if s.options.JSON != nil && s.options.Steps {
		line := update{curve.KindUpdate, p.Epoch, p.Step, p.StepLoss, p.Norm}
		if err := json.NewEncoder(s.options.JSON).Encode(line); err != nil {
			return err
		}
	}
	if w := p.Window; w != nil {
		s.loss = w.Loss
		err := s.metrics.add(curve.Step{
			Kind: curve.KindStep, Step: p.Total, TrainLoss: Number(w.Loss), LR: p.LR,
			Tokens: w.Tokens, Seconds: w.Time.Seconds(),
		})
		if err != nil {
			return err
		}
	}
	if time.Since(s.told) >= curve.Interval {
		s.told = time.Now()
		_ = curve.WriteLive(s.Dir, curve.Live{ // an error is no reason to stop
			Time: time.Now(), Epoch: p.Epoch, Epochs: p.Epochs, Step: p.Total, Steps: p.Epochs * p.Steps,
			TrainLoss: Number(p.Loss), LR: p.LR, Rate: Number(p.Rate), Left: p.Left,
			Recent: curve.Parse(s.metrics.fresh()).Steps, Unsaved: !s.Saved,
		})
	}
	return nil
}

// epoch evaluates after an epoch. It returns the loss, NaN if it was interrupted.
func (s *Session) epoch(ctx context.Context, e curve.Epoch) (float64, error) {
	loss, err := Loss(ctx, s.Model, s.Data.Test)
	switch {
	case ctx.Err() != nil:
		loss = math.NaN()
	case err != nil:
		return loss, err
	case math.IsNaN(loss) || math.IsInf(loss, 0): // do not overwrite a better model
		return loss, fmt.Errorf("epoch %d: %w", e.Epoch, models.ErrDiverged)
	}
	e.ValidLoss = Number(loss)
	return loss, s.metrics.add(e)
}

// Measure translates the test pairs, and saves and returns the metrics.
func (s *Session) Measure(ctx context.Context) (Metrics, error) {
	m, err := Evaluate(ctx, s.Model, s.Data.Test, 1)
	if err != nil {
		return m, err
	}
	if err := s.metrics.add(finalMetrics{curve.KindFinal, m, s.Data.Unseen}); err != nil {
		return m, err
	}
	return m, s.write()
}
