//go:build !js || translator

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

func init() {
	handle("train.start", startTraining)
	handle("train.run", runTraining)
	handle("train.look", lookAtTraining)
	handle("train.measure", measureTraining)
}

// trainingOptions are the choices of a page. The same options give the same training.
type trainingOptions struct {
	Task  string `json:"task"`  // a key of tasks
	Seed  uint64 `json:"seed"`  // of the pairs, where they are random, and of the first weights
	Arch  string `json:"arch"`  // "transformer" or "gru"; "": transformer
	Score string `json:"score"` // a name of score.Kinds; "": scaled
}

// task is something to learn.
type task struct {
	network  models.TranslatorConfig
	settings train.Settings
	// build returns the pairs to learn, new pairs, and a model of the configuration with its first weights.
	build func(c models.TranslatorConfig, seed uint64) (learn, test []seq2seq.Pair, m *models.Model, err error)
}

var tasks = map[string]func() task{"reverse": reverseTask, "dates": datesTask}

// training is a model that is being trained, one at a time.
type training struct {
	sync.Mutex // held for a step, and while the model is used
	model      *models.Model
	trainer    *train.Trainer
	test       []seq2seq.Pair
	step       int
	steps      int     // of all epochs
	seconds    float64 // of the steps so far
	text       string  // to show, with its right answer
	target     string
	stop       context.CancelFunc // ends the run that is under way
	done       chan struct{}      // closed when it has ended
}

var current *training

// trainingState is the result of train.start and train.run, and a frame of the latter.
type trainingState struct {
	Step    int     `json:"step"`
	Steps   int     `json:"steps"`
	Losses  []real  `json:"losses"`  // of the steps since the last frame, nats per token
	Rate    float64 `json:"rate"`    // tokens per second
	Seconds float64 `json:"seconds"` // of computation so far
	Shown   *shown  `json:"shown"`
}

// startTraining replaces the training by one with the given options, before its first step.
func startTraining(ctx context.Context, o trainingOptions, _ func(any)) (any, error) {
	build := tasks[o.Task]
	if build == nil {
		return nil, fmt.Errorf("no task is named %q", o.Task)
	}
	endRun()
	t := build()
	if o.Score != "" {
		t.network.Score = o.Score
	}
	if o.Arch == models.GRU {
		t.network = train.Recipe{Network: t.network}.Recurrent().Network
	} else if o.Arch != "" {
		t.network.Arch = o.Arch
	}
	learn, test, m, err := t.build(t.network, o.Seed)
	if err != nil {
		return nil, err
	}
	tr, err := train.NewTrainer(m, learn, t.settings)
	if err != nil {
		return nil, err
	}
	batches := (len(learn) + t.settings.Batch - 1) / t.settings.Batch
	current = &training{model: m, trainer: tr, test: test, steps: batches * t.settings.Epochs}
	current.text, current.target = test[0].Source, test[0].Target
	if o.Task == "reverse" {
		current.text, current.target = "abcdefgh", "hgfedcba"
	}
	return current.state(ctx, nil, 0)
}

// endRun ends the run that is under way, if there is one.
func endRun() {
	for current != nil && current.stop != nil { // several calls may wait: each ends the one before it
		current.stop()
		<-current.done
	}
}

func (t *training) state(ctx context.Context, losses []real, rate float64) (*trainingState, error) {
	s, err := look(ctx, t.model, t.text, t.target)
	if losses == nil {
		losses = []real{}
	}
	return &trainingState{Step: t.step, Steps: t.steps, Losses: losses, Rate: rate, Seconds: t.seconds, Shown: s}, err
}

// locked returns the current training, locked. While a call waits for the end of a step, "Start again" may replace the
// training: the call then gets the new one.
func locked() (*training, error) {
	for {
		t := current
		if t == nil {
			return nil, errNoTraining
		}
		t.Lock()
		if t == current {
			return t, nil
		}
		t.Unlock()
	}
}

var errNoTraining = errors.New("no training has been started")

// frameEvery is the time between two frames of a run: more would be drawn than a screen shows.
const frameEvery = 60 * time.Millisecond

// runTraining trains up to the given step, or to the end if it is 0. It ends early if ctx ends: a page pauses a
// training by cancelling its run, and continues it by another one.
func runTraining(ctx context.Context, o struct {
	To int `json:"to"`
}, frame func(any)) (any, error) {
	if current == nil {
		return nil, errNoTraining
	}
	endRun()
	t := current
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	t.stop, t.done = stop, done
	defer func() {
		stop()
		t.stop = nil
		close(done)
	}()
	if o.To == 0 || o.To > t.steps {
		o.To = t.steps
	}
	var losses []real
	rate, last := 0., time.Now()
	t.Lock()
	defer t.Unlock()
	var err error
	if t.step < o.To {
		err = t.trainer.Run(ctx, func(p train.Progress) error {
			t.step, rate = p.Total, p.Rate
			t.seconds += p.Time.Seconds()
			losses = append(losses, rounded(p.StepLoss))
			if t.step >= o.To {
				return train.ErrStop
			}
			if time.Since(last) >= frameEvery {
				state, err := t.state(context.Background(), losses, rate)
				if err != nil {
					return err
				}
				frame(state)
				losses, last = nil, time.Now()
			}
			t.Unlock()
			pause()
			t.Lock()
			return nil
		})
	}
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	return t.state(context.Background(), losses, rate)
}

// rounded returns a loss with the digits that a chart and a line of text show.
func rounded(x float64) real { return real(math.Round(float64(x*1e4)) / 1e4) }

// lookAtTraining sets the text of the frames, and returns a frame.
func lookAtTraining(ctx context.Context, o struct {
	Text   string `json:"text"`
	Target string `json:"target"` // "": what the model writes
}, _ func(any)) (any, error) {
	if err := checkText(o.Text); err != nil {
		return nil, err
	}
	t, err := locked()
	if err != nil {
		return nil, err
	}
	defer t.Unlock()
	t.text, t.target = o.Text, o.Target
	return t.state(ctx, nil, 0)
}

// measureTraining returns the share of new texts that the model translates correctly.
func measureTraining(ctx context.Context, o struct {
	Texts int `json:"texts"`
}, frame func(any)) (any, error) {
	t, err := locked()
	if err != nil {
		return nil, err
	}
	defer t.Unlock()
	return measure(ctx, t.model, t.test[:max(1, min(o.Texts, len(t.test)))])
}

// quality is how well a model translates texts that it has not been trained on.
type quality struct {
	Texts int  `json:"texts"`
	Exact int  `json:"exact"` // of them
	Loss  real `json:"loss"`  // nats per token
}

func measure(ctx context.Context, m *models.Model, pairs []seq2seq.Pair) (*quality, error) {
	metrics, err := train.Evaluate(ctx, m, pairs, 1)
	if err != nil {
		return nil, err
	}
	return &quality{
		Texts: metrics.Sources, Exact: int(float64(float64(metrics.ExactMatch)*float64(metrics.Sources)) + 0.5),
		Loss: real(metrics.Loss),
	}, nil
}

// seeded returns the source of a task's random numbers. Seed 1 is that of examples/reverse.
func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }
