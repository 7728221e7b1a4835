package probe

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// aim computes the loss of a probe's task from hidden states.
type aim interface {
	// states returns the part of a batch's hidden states that the loss depends on.
	states(t *tensor.Tape, hidden *tensor.Tensor, b *batch) *tensor.Tensor
	// loss returns the mean loss of a batch's outputs over its n terms; n·mean is the sum over
	// all examples.
	loss(t *tensor.Tape, outputs *tensor.Tensor, b *batch) (mean *tensor.Tensor, n int)
	// predicted sets the entries of the batch's examples in list. out are the outputs of a model,
	// and whole those of the model with all its heads.
	predicted(t *tensor.Tape, out, whole *tensor.Tensor, b *batch, list []Predicted)
	// onModel returns the same aim for another model.
	onModel(m *models.Model) (aim, error)
	// outputs returns the model's outputs: logits or cosines.
	outputs(t *tensor.Tape, states *tensor.Tensor) *tensor.Tensor
}

// Example is a sequence of tokens and the targets that a model's head should predict.
type Example struct {
	IDs   []int
	Types []int // token types, nil for 0
	// Reads are the input tokens of the decoder in an encoder–decoder: the start token, then the
	// target without its last token. IDs are then the source. Reads is nil in other models.
	Reads []int
	// Targets are class numbers or token ids: one for a task with one row of logits for a text,
	// otherwise one for each token. Targets equal to Ignore do not count.
	Targets []int
}

// Ignore is the target of a token that has no target.
const Ignore = -1

// New returns a probe of m on examples. The loss is the cross entropy of the targets under
// the predictions of the model's head.
//
// Errors: a model without a head or loaded without Options.Trainable; no examples; an example that
// the model cannot run on, without targets, or with invalid targets.
func New(m *models.Model, examples []Example) (*Probe, error) {
	bad := func(format string, args ...any) (*Probe, error) {
		return nil, fmt.Errorf("probe: New: "+format, args...)
	}
	if err := m.WantTrainable("probe: New"); err != nil {
		return nil, err
	}
	head := m.Head()
	switch {
	case head == nil:
		return bad("the model has no head, want one for any of %s, %s and %s", models.MaskedWords, models.NextWord, models.TextClasses)
	case head.Task == models.AnswerSpan:
		return bad("the model's head is for the %s, want one for any of %s, %s and %s", head.Task, models.MaskedWords, models.NextWord, models.TextClasses)
	case len(examples) == 0:
		return bad("no examples, want one or more")
	}
	classes := len(head.Labels)
	if head.Labels == nil {
		classes = m.Sizes().Output().Vocabulary
	}
	for i, e := range examples {
		if m.Sizes().Decoder != nil && e.Reads == nil {
			return bad("example %d has nothing for the decoder to read", i)
		}
		if err := m.Sizes().Check(batchOf(examples[i : i+1])); err != nil {
			return bad("example %d has %w", i, err)
		}
		if want := e.rows(head.Task); len(e.Targets) != want {
			return bad("example %d has %d targets, want %d", i, len(e.Targets), want)
		}
		for _, target := range e.predicted() {
			if target < 0 || target >= classes {
				return bad("example %d has target %d, want 0 to %d", i, target, classes-1)
			}
		}
		if len(e.predicted()) == 0 {
			return bad("example %d has nothing to predict", i)
		}
	}
	length := func(i int) int { return max(len(examples[i].IDs), len(examples[i].Reads)) }
	logits := func(i int) int { return classes * len(examples[i].predicted()) }
	order := longestFirst(length)
	if m.Sizes().Decoder != nil {
		// Sorted by both lengths, sources and targets need little padding. The scores of taylor depend on
		// which examples share a batch: another order would change reports.
		order = func(i, j int) int {
			a, b := &examples[i], &examples[j]
			return cmp.Or(cmp.Compare(len(a.IDs), len(b.IDs)), cmp.Compare(len(a.Reads), len(b.Reads)))
		}
	}
	return newProbe(m, headAim{head: head}, len(examples), length, logits, order, func(list []int) batch {
		b := predictedBatch(stats.Pick(examples, list))
		b.examples = list
		return b
	}), nil
}

// predictedBatch returns a batch of examples for a headAim.
func predictedBatch(examples []Example) batch {
	b := batch{x: batchOf(examples)}
	width := slices.Max(b.x.Lens())
	if b.x.Targets != nil {
		width = slices.Max(lens(b.x.Targets))
	}
	most := 0
	for _, e := range examples {
		most += len(e.Targets)
	}
	b.places, b.targets, b.terms = make([]int, 0, most), make([]int, 0, most), make([]int, 0, len(examples))
	for i, e := range examples {
		terms := 0
		for at, target := range e.Targets {
			if target != Ignore {
				b.places, b.targets = append(b.places, i*width+at), append(b.targets, target)
				terms++
			}
		}
		b.terms = append(b.terms, terms)
	}
	return b
}

// Predict runs a model on a batch of examples. It returns the logits [N C] of all targets,
// example by example, and these targets, [N]. A tape of mode tensor.Train applies a translator's
// dropout.
func Predict(t *tensor.Tape, m *models.Model, examples []Example, r models.Run) (logits *tensor.Tensor, targets []int) {
	b, a := predictedBatch(examples), headAim{head: m.Head()}
	return a.outputs(t, a.states(t, m.Hidden(t, b.x, r), &b)), b.targets
}

// batchOf returns the sequences of examples, with token types if any example has them.
func batchOf(examples []Example) models.Batch {
	x := models.Batch{IDs: make([][]int, 0, len(examples))}
	typed := slices.ContainsFunc(examples, func(e Example) bool { return e.Types != nil })
	for _, e := range examples {
		x.IDs = append(x.IDs, e.IDs)
		if typed && e.Types == nil {
			e.Types = make([]int, len(e.IDs))
		}
		if typed {
			x.Types = append(x.Types, e.Types)
		}
		if e.Reads != nil {
			x.Targets = append(x.Targets, e.Reads)
		}
	}
	return x
}

// rows returns the number of rows of logits for the example.
func (e Example) rows(task models.Task) int {
	switch {
	case !task.PerToken():
		return 1
	case e.Reads != nil:
		return len(e.Reads)
	}
	return len(e.IDs)
}

// predicted returns the targets that count.
func (e Example) predicted() []int {
	return slices.DeleteFunc(slices.Clone(e.Targets), func(target int) bool { return target == Ignore })
}

// headAim is the prediction by a model's head. Its loss is the cross entropy.
type headAim struct {
	head   *models.TaskHead
	smooth float32 // label smoothing of the loss
}

// Smoothed returns a probe whose Run has the loss with label smoothing, if the model has a head with labels.
func (p *Probe) Smoothed(by float32) *Probe {
	if a, ok := p.aim.(headAim); ok {
		same := *p
		same.aim = headAim{a.head, by}
		return &same
	}
	return p
}

func (a headAim) onModel(m *models.Model) (aim, error) {
	head := m.Head()
	if head == nil || head.Task != a.head.Task {
		return nil, fmt.Errorf("probe: Of: the model of %s has no head for the %s", m.Dir, a.head.Task)
	}
	if !slices.Equal(head.Labels, a.head.Labels) { // targets are label numbers
		return nil, fmt.Errorf("probe: Of: the model of %s has the classes [%s], want [%s]",
			m.Dir, quote.Texts(head.Labels), quote.Texts(a.head.Labels))
	}
	return headAim{head, a.smooth}, nil
}

// states are the hidden states of the tokens that are predicted, [1 N D]: there are few of them, but
// each has many logits. If a text has one row of logits, states are these logits.
func (a headAim) states(t *tensor.Tape, hidden *tensor.Tensor, b *batch) *tensor.Tensor {
	if !a.head.Task.PerToken() {
		return a.head.Of(t, hidden, b.x)
	}
	rows := tensor.Reshape(t, hidden, hidden.Dim(0)*hidden.Dim(1), hidden.Dim(2))
	if len(b.places) < rows.Dim(0) { // otherwise all rows count, in order
		rows = tensor.Gather(t, rows, b.places)
	}
	return tensor.Reshape(t, rows, 1, len(b.places), hidden.Dim(2))
}

func (a headAim) outputs(t *tensor.Tape, states *tensor.Tensor) *tensor.Tensor {
	if !a.head.Task.PerToken() {
		return states
	}
	logits := a.head.Logits(t, states)
	return tensor.Reshape(t, logits, logits.Dim(1), logits.Dim(2))
}

func (a headAim) loss(t *tensor.Tape, logits *tensor.Tensor, b *batch) (*tensor.Tensor, int) {
	return nn.CrossEntropy(t, logits, b.targets, Ignore, a.smooth), len(b.targets)
}

func (a headAim) predicted(t *tensor.Tape, logits, whole *tensor.Tensor, b *batch, list []Predicted) {
	far, row := nn.KLDivergence(t, whole, logits).Data(), 0
	for i, y := range b.predictions(tensor.LogSoftmax(t, logits)) {
		for range y.Terms {
			y.KL += float64(far[row])
			row++
		}
		list[b.examples[i]] = y
	}
}

// predictions returns the loss and the right answers of each example from log probabilities [N
// C].
func (b *batch) predictions(logp *tensor.Tensor) []Predicted {
	list, classes, row := make([]Predicted, len(b.terms)), logp.Dim(1), 0
	for i, terms := range b.terms {
		y := Predicted{Terms: terms, Cosine: math.NaN()}
		for range terms {
			of := logp.Data()[row*classes:][:classes]
			y.Loss -= float64(of[b.targets[row]])
			if of[b.targets[row]] == slices.Max(of) {
				y.Right++
			}
			row++
		}
		list[i] = y
	}
	return list
}
