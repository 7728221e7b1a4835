package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// Settings are the options of training. The result depends only on them, the translator and the
// pairs.
type Settings struct {
	Epochs int `json:"epochs"`
	// Batch is the number of pairs per step.
	Batch int `json:"batch"`
	// LR is the peak learning rate; see optim.WarmupInvSqrt.
	LR     float64 `json:"lr"`
	Warmup int     `json:"warmup"` // steps
	// Smoothing is the label smoothing of the loss.
	Smoothing float32 `json:"smoothing"`
	// Clip is the limit on the norm of the gradient. 0 means no limit.
	Clip float32 `json:"clip"`
	// Format is that of the products of a step, see tensor.Tape.SetFormat: tensor.Float32, which is also meant by 0, or
	// tensor.BFloat16.
	Format tensor.Format `json:"format,omitempty"`
	// MaxLength is the limit on tokens per text; longer pairs are omitted. 0 means no limit.
	MaxLength int    `json:"max_length"`
	Seed      uint64 `json:"seed"`
}

// Limits that prevent overflows in numbers computed from the settings.
const (
	maxEpochs = 1_000_000
	maxBatch  = 1_000_000
)

// Validate returns an error unless the settings are in range.
func (s Settings) Validate() error {
	switch {
	case s.Epochs < 1 || s.Epochs > maxEpochs:
		return fmt.Errorf("epochs %d, want 1 to %d", s.Epochs, maxEpochs)
	case s.Batch < 1 || s.Batch > maxBatch:
		return fmt.Errorf("batch %d, want 1 to %d", s.Batch, maxBatch)
	case !(s.LR > 0) || math.IsInf(s.LR, 0):
		return fmt.Errorf("learning rate %v, want a positive number", s.LR)
	case s.Warmup < 0:
		return fmt.Errorf("warm-up of %d steps, want at least 0", s.Warmup)
	case !(s.Smoothing >= 0 && s.Smoothing < 1):
		return fmt.Errorf("label smoothing %v is outside [0, 1)", s.Smoothing)
	case !(s.Clip >= 0):
		return fmt.Errorf("gradient clipping at %v, want at least 0", s.Clip)
	case s.format() != tensor.Float32 && s.format() != tensor.BFloat16:
		return fmt.Errorf("format %v, want float32 or bfloat16", s.Format)
	case s.MaxLength < 0:
		return fmt.Errorf("maximum length %d, want at least 0", s.MaxLength)
	}
	return nil
}

func (s Settings) format() tensor.Format { return cmp.Or(s.Format, tensor.Float32) }

// Trainer trains a translator.
type Trainer struct {
	Settings Settings
	// Skipped is the number of pairs that were omitted because of MaxLength.
	Skipped int

	model     *models.Model
	made      [][]int // the last result of batches, and its epoch: Run needs it for each step
	madeEpoch int

	params   nn.Vars // of the model, in a list: walking through its modules allocates a thousand small objects
	examples []probe.Example
	optim    *optim.AdamW
	schedule optim.Schedule
	tape     *tensor.Tape
	at       position
}

// position is the progress of training.
type position struct {
	Epoch int `json:"epoch"` // epochs completed
	Step  int `json:"step"`  // steps completed in the next epoch
	Total int `json:"total"` // steps completed in all epochs
	sums      // of the epoch so far
	// Window has the sums of the steps since the last Progress.Window.
	Window struct {
		Steps int `json:"steps"`
		sums
	} `json:"window,omitzero"`
}

// sums are totals over consecutive steps.
type sums struct {
	Loss  float64 `json:"loss"`  // summed over the target tokens
	Count int     `json:"count"` // number of target tokens
	// Tokens and Seconds are zero in runs that were saved by versions that did not count them.
	Tokens  int     `json:"tokens,omitempty"` // source and target
	Seconds float64 `json:"seconds,omitempty"`
}

func (s *sums) add(o sums) {
	s.Loss += o.Loss
	s.Count += o.Count
	s.Tokens += o.Tokens
	s.Seconds += o.Seconds
}

// mean returns the loss per token.
func (s *sums) mean() float64 { return s.Loss / float64(s.Count) }

func (s *sums) time() time.Duration { return time.Duration(s.Seconds * float64(time.Second)) }

// possible reports whether the sums are valid.
func (s *sums) possible() bool { return s.Count >= 0 && s.Tokens >= 0 && s.Seconds >= 0 }

// Progress describes a completed step.
type Progress struct {
	Epoch, Epochs int           // the current epoch, from 1, and the number of epochs
	Step, Steps   int           // the step within the epoch, from 1, and the number of steps
	Total         int           // steps of all epochs so far
	LR            float64       // the learning rate of this step
	StepLoss      float64       // mean over the target tokens of this step
	Loss          float64       // mean over the target tokens of the epoch so far, nats, with smoothing
	Norm          float32       // of the gradient, before clipping
	Tokens        int           // source and target tokens of this step
	Time          time.Duration // duration of this step
	EpochTokens   int           // source and target tokens of the epoch so far
	EpochTime     time.Duration // duration of these steps, also those of earlier processes
	EpochDone     bool
	Rate          float64       // tokens per second, smoothed over the steps of this call of Run
	Left          time.Duration // time until all epochs are done, at the mean speed of this call
	// Window is a point of the training curve, or nil for steps between two points. There is a point
	// at the end of each epoch and after about every 32nd of all steps so far: enough to draw a run
	// of any length. The points do not depend on interruptions.
	Window *Window
}

// Window summarizes the steps since the last one, within an epoch.
type Window struct {
	Steps  int
	Loss   float64 // mean over their target tokens, nats, with smoothing
	Tokens int     // source and target
	Time   time.Duration
}

// NewTrainer returns a trainer at the start of the first epoch.
func NewTrainer(m *models.Model, pairs []seq2seq.Pair, s Settings) (*Trainer, error) {
	var examples []probe.Example
	for _, p := range pairs {
		e, err := probe.TranslationExample(m, p.Source, p.Target)
		if err != nil {
			return nil, err
		}
		examples = append(examples, e)
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	tr := &Trainer{
		Settings: s, model: m, tape: tensor.NewTape(tensor.Train), schedule: optim.WarmupInvSqrt(s.Warmup),
	}
	tr.tape.SetFormat(s.format())
	for name, p := range m.Params() {
		tr.params = append(tr.params, nn.Var{Name: name, Tensor: p})
	}
	tr.optim = optim.NewAdamW(tr.params)
	tr.optim.Beta2 = 0.98 // Vaswani et al. 2017, section 5.3
	tr.examples = slices.DeleteFunc(examples, func(e probe.Example) bool {
		return s.MaxLength > 0 && max(len(e.IDs), len(e.Targets)) > s.MaxLength
	})
	tr.Skipped = len(pairs) - len(tr.examples)
	switch {
	case len(pairs) == 0:
		return nil, errors.New("train: no pairs to learn")
	case len(tr.examples) == 0:
		return nil, errors.New("train: every pair is longer than the maximum length")
	}
	return tr, nil
}

// ErrStop is returned by the argument of Trainer.Run to end training without an error.
var ErrStop = errors.New("train: stop")

// Run trains until all epochs are done, and calls report after each step. If ctx ends, Run
// finishes the current step and returns the context's error; the next call continues. An error
// of report, or models.ErrDiverged, also ends training. After ErrStop, Run returns nil, and the next
// call continues.
func (tr *Trainer) Run(ctx context.Context, report func(Progress) error) error {
	start, before, rate := time.Now(), tr.at.Total, 0.
	for tr.at.Epoch < tr.Settings.Epochs {
		if err := ctx.Err(); err != nil {
			return err
		}
		batches := tr.batches(tr.at.Epoch)
		p, err := tr.step(batches[tr.at.Step])
		if err != nil {
			return fmt.Errorf("epoch %d, step %d: %w", tr.at.Epoch+1, tr.at.Step+1, err)
		}
		p.Epoch, p.Epochs = tr.at.Epoch+1, tr.Settings.Epochs
		p.Step, p.Steps = tr.at.Step, len(batches)
		p.EpochDone = p.Step == p.Steps
		now := float64(p.Tokens) / p.Time.Seconds()
		rate = cmp.Or(rate, now)
		rate += float64(0.05 * (now - rate))
		p.Rate = rate
		p.Left = time.Duration(float64(time.Since(start)) * float64(p.Epochs*p.Steps-p.Total) / float64(p.Total-before))
		p.Window = tr.window(p.EpochDone)
		if p.EpochDone {
			tr.at = position{Epoch: tr.at.Epoch + 1, Total: tr.at.Total}
		}
		switch err := report(p); {
		case errors.Is(err, ErrStop):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// step updates the model with one batch.
func (tr *Trainer) step(batch []int) (Progress, error) {
	start := time.Now()
	examples, tokens, targets := stats.Pick(tr.examples, batch), 0, 0
	for _, e := range examples {
		tokens += len(e.IDs) + len(e.Targets)
		targets += len(e.Targets)
	}
	p := Progress{Tokens: tokens, Total: tr.at.Total + 1}
	p.LR = tr.Settings.LR * tr.schedule(p.Total)
	var loss float32
	if loss, p.Norm = tr.update(p.Total, p.LR, examples); diverged(loss, p.Norm) {
		return Progress{}, models.ErrDiverged
	}
	tr.at.Step++
	tr.at.Total++
	p.StepLoss, p.Time = float64(loss), time.Since(start)
	took := sums{float64(p.StepLoss * float64(targets)), targets, tokens, p.Time.Seconds()}
	tr.at.add(took)
	tr.at.Window.add(took)
	tr.at.Window.Steps++
	p.Loss, p.EpochTokens, p.EpochTime = tr.at.mean(), tr.at.Tokens, tr.at.time()
	return p, nil
}

// update makes one update with the examples of a batch. number counts the steps of all epochs, from 1. It returns the mean
// loss over the target tokens, and the norm of the gradient before clipping. It leaves the parameters as they are if the
// result has diverged.
func (tr *Trainer) update(number int, lr float64, batch []probe.Example) (loss, norm float32) {
	t := tr.tape
	t.Reset()
	t.Seed(tr.Settings.Seed, number-1)
	logits, write := probe.Predict(t, tr.model, batch, models.Run{})
	mean := nn.CrossEntropy(t, logits, write, probe.Ignore, tr.Settings.Smoothing)
	optim.ZeroGrad(tr.params)
	t.Backward(mean, nil)
	loss, norm = mean.Item(), optim.ClipGradNorm(tr.params, cmp.Or(tr.Settings.Clip, float32(math.Inf(1))))
	if !diverged(loss, norm) {
		tr.optim.Step(lr)
	}
	return loss, norm
}

// diverged reports whether a loss or a gradient is not finite. The norm is finite only if every element of the
// gradient is.
func diverged(loss, norm float32) bool {
	sum := float64(norm) + float64(loss)
	return math.IsNaN(sum) || math.IsInf(sum, 0)
}

// windows is the least number of points of the curve between a number of steps and twice that
// number.
const windows = 32

// window returns the point of the curve that the last step completes, or nil.
func (tr *Trainer) window(epochDone bool) *Window {
	// A power of two, so that the points depend only on the number of steps.
	every := max(1, 1<<(bits.Len(uint(tr.at.Total))-1)/windows)
	if !epochDone && tr.at.Total%every != 0 {
		return nil
	}
	at := &tr.at.Window
	w := &Window{Steps: at.Steps, Loss: at.mean(), Tokens: at.Tokens, Time: at.time()}
	at.Steps, at.sums = 0, sums{}
	return w
}

// steps returns the number of batches of an epoch.
func (tr *Trainer) steps() int {
	return (len(tr.examples) + tr.Settings.Batch - 1) / tr.Settings.Batch
}

// batches returns the batches of an epoch as indexes of examples. The order is shuffled, but neighbours have similar
// lengths, so that batches have little padding. The result depends only on these lengths, the settings and the epoch.
func (tr *Trainer) batches(epoch int) [][]int {
	if tr.made != nil && tr.madeEpoch == epoch {
		return tr.made
	}
	rng := rand.New(rand.NewPCG(tr.Settings.Seed, uint64(epoch)))
	order, size := rng.Perm(len(tr.examples)), tr.Settings.Batch
	var batches [][]int
	// Sorting within pools of many batches, instead of over all examples, keeps the composition of
	// batches random.
	for pool := range slices.Chunk(order, size*64) {
		slices.SortStableFunc(pool, func(i, j int) int {
			a, b := tr.examples[i], tr.examples[j]
			return cmp.Or(cmp.Compare(len(a.IDs), len(b.IDs)), cmp.Compare(len(a.Targets), len(b.Targets)))
		})
		batches = slices.AppendSeq(batches, slices.Chunk(pool, size))
	}
	rng.Shuffle(len(batches), func(i, j int) { batches[i], batches[j] = batches[j], batches[i] })
	tr.made, tr.madeEpoch = batches, epoch
	return batches
}
