package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// Probe is a model and examples on which the importance of its heads is measured: the loss
// is the cross entropy of what the model's head is to predict.
//
// Heads that Without takes away stay in the model's weights, behind gates of 0; Masked
// takes them out of the weights.
type Probe struct {
	model   *Model
	batches [][]Example
	kept    map[string][]int  // by layer, the heads that are left; nil means all
	layers  []*attn.MultiHead // with those heads
}

var _ heads.Prunable[*Probe] = (*Probe)(nil)

// Example is a sequence of tokens and what the head of a model is to predict of it.
type Example struct {
	IDs   []int
	Types []int // token types, nil for 0
	// Targets are classes: one for a task whose logits are those of a text; else one for
	// each token, the number of a token or a class, where Ignore counts for nothing.
	Targets []int
}

// Ignore is the target of a token of which nothing is to be predicted.
const Ignore = -1

// How many examples and tokens, padding included, and logits a batch has at most, unless a
// single example has more.
const (
	probeExamples = 64
	probeTokens   = 2048
	probeLogits   = 1 << 24
)

// NewProbe returns a probe of m on examples.
//
// Errors: a model without a head, or whose weights are packed; no examples; an
// example that the model does not take, without anything to predict, or with targets that
// are none of the head's.
func NewProbe(m *Model, examples []Example) (*Probe, error) {
	bad := func(format string, args ...any) (*Probe, error) {
		return nil, fmt.Errorf("models: NewProbe: "+format, args...)
	}
	head := m.Head()
	switch {
	case head == nil:
		return bad("the model has no head, want one for any of %s, %s and %s", MaskedWords, NextWord, TextClasses)
	case head.Task == AnswerSpan:
		return bad("the model's head is for the %s, want one for any of %s, %s and %s", head.Task, MaskedWords, NextWord, TextClasses)
	case m.packed:
		return bad("the model was loaded with Options.Weights, want one without")
	case len(examples) == 0:
		return bad("no examples, want one or more")
	}
	classes := len(head.Labels)
	if head.Labels == nil {
		classes = m.Sizes().Vocabulary
	}
	for i, e := range examples {
		if err := m.Sizes().Check(e.batch()); err != nil {
			return bad("example %d has %w", i, err)
		}
		if want := e.rows(head.Task); len(e.Targets) != want {
			return bad("example %d has %d targets, want %d", i, len(e.Targets), want)
		}
		if err := within("target", e.predicted(), classes); err != nil {
			return bad("example %d has %w", i, err)
		}
		if len(e.predicted()) == 0 {
			return bad("example %d has nothing to predict", i)
		}
	}
	return &Probe{m, batchesOf(examples, classes), nil, m.Attention()}, nil
}

func (e Example) batch() Batch {
	if e.Types == nil {
		return Batch{IDs: [][]int{e.IDs}}
	}
	return Batch{IDs: [][]int{e.IDs}, Types: [][]int{e.Types}}
}

// rows returns how many rows of logits a task has for the example.
func (e Example) rows(task Task) int {
	if task.PerToken() {
		return len(e.IDs)
	}
	return 1
}

// predicted returns the targets that count.
func (e Example) predicted() []int {
	return slices.DeleteFunc(slices.Clone(e.Targets), func(target int) bool { return target == Ignore })
}

// batchesOf puts examples of similar lengths together, the longest first.
func batchesOf(examples []Example, classes int) [][]Example {
	examples = slices.Clone(examples)
	slices.SortStableFunc(examples, func(a, b Example) int { return cmp.Compare(len(b.IDs), len(a.IDs)) })
	var batches [][]Example
	for len(examples) > 0 {
		n, logits, longest := 0, 0, len(examples[0].IDs)
		for n < min(len(examples), probeExamples) {
			logits += classes * len(examples[n].predicted())
			if n > 0 && ((n+1)*longest > probeTokens || logits > probeLogits) {
				break
			}
			n++
		}
		batches, examples = append(batches, examples[:n]), examples[n:]
	}
	return batches
}

// Model returns the model that is probed, with all its heads.
func (p *Probe) Model() *Model { return p.model }

// Layers returns the attention layers, with the heads that are left.
func (p *Probe) Layers() []*attn.MultiHead { return p.layers }

// Batches returns the number of examples in each batch, which are of similar lengths.
func (p *Probe) Batches() []int {
	sizes := make([]int, len(p.batches))
	for i, b := range p.batches {
		sizes[i] = len(b)
	}
	return sizes
}

// Run runs batch i. The models have no dropout.
func (p *Probe) Run(t *tensor.Tape, i int, pass heads.Pass) heads.Outcome {
	examples, head := p.batches[i], p.model.Head()
	var x Batch
	typed := slices.ContainsFunc(examples, func(e Example) bool { return e.Types != nil })
	for _, e := range examples {
		x.IDs = append(x.IDs, e.IDs)
		if typed && e.Types == nil {
			e.Types = make([]int, len(e.IDs))
		}
		if typed {
			x.Types = append(x.Types, e.Types)
		}
	}
	hidden := p.model.Hidden(t, x, Run{Gates: p.gates(t, pass.Gates), Observe: p.observer(pass.Observe)})
	// A word is predicted at few of the places, and its logits are many.
	var places, targets []int
	for b, e := range examples {
		for at, target := range e.Targets {
			if target != Ignore {
				places, targets = append(places, b*x.longest()+at), append(targets, target)
			}
		}
	}
	if head.Task.PerToken() {
		hidden = tensor.Gather(t, tensor.Reshape(t, hidden, hidden.Dim(0)*hidden.Dim(1), hidden.Dim(2)), places)
	}
	mean := nn.CrossEntropy(t, head.Logits(t, hidden), targets, Ignore, 0)
	return heads.Outcome{
		Loss:    tensor.Scale(t, mean, float32(len(targets))),
		Terms:   len(targets),
		Queries: func(string) []int { return x.Lens() },
	}
}

// gates returns the gates of all heads of a layer: those of a pass for the heads that are
// left, and 0 for the others.
func (p *Probe) gates(t *tensor.Tape, given func(layer string) *tensor.Tensor) func(layer string) *tensor.Tensor {
	if p.kept == nil {
		return given
	}
	sizes := map[string]int{}
	for _, l := range p.model.Attention() {
		sizes[l.Config().Name] = l.Config().Heads
	}
	return func(layer string) *tensor.Tensor {
		left, all := p.kept[layer], sizes[layer]
		var own *tensor.Tensor
		if given != nil {
			own = given(layer) // which is asked for of layers without heads too
		}
		if len(left) == all {
			return own
		}
		if own == nil {
			own = tensor.Full(1, len(left))
		}
		if len(left) == 0 {
			return tensor.Zeros(all)
		}
		spread := tensor.Zeros(len(left), all) // [H' H]: 1 where a head has its place
		for i, h := range left {
			spread.Data()[i*all+h] = 1
		}
		if own.Rank() == 1 {
			return tensor.Reshape(t, tensor.MatMul(t, tensor.Reshape(t, own, 1, len(left)), spread), all)
		}
		return tensor.MatMul(t, own, spread)
	}
}

// observer returns an observer that is told of all heads, and tells of those that are left.
func (p *Probe) observer(tell attn.Observer) attn.Observer {
	if tell == nil || p.kept == nil {
		return tell
	}
	return func(layer string, w *tensor.Tensor) {
		left := p.kept[layer]
		b, n := w.Dim(0), w.Dim(1)
		if len(left) == n {
			tell(layer, w)
			return
		}
		index := make([]int, 0, b*len(left))
		for i := range b {
			for _, h := range left {
				index = append(index, i*n+h)
			}
		}
		rows := tensor.Gather(nil, tensor.Reshape(nil, w, b*n, w.Dim(2), w.Dim(3)), index)
		tell(layer, tensor.Reshape(nil, rows, b, len(left), w.Dim(2), w.Dim(3)))
	}
}

// Loss returns the loss on all examples, in nats for each target. If ctx ends, it returns
// ctx.Err().
func (p *Probe) Loss(ctx context.Context) (float64, error) {
	tape, sum, terms := tensor.NewTape(tensor.Infer), 0., 0
	for i := range p.batches {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		tape.Reset()
		out := p.Run(tape, i, heads.Pass{})
		sum, terms = sum+float64(out.Loss.Item()), terms+out.Terms
	}
	return sum / float64(terms), nil
}

// On returns a probe of the same heads on the examples of another probe of the model.
func (p *Probe) On(other *Probe) *Probe { return &Probe{p.model, other.batches, p.kept, p.layers} }

// Kept returns the heads that are left in each layer, by the numbers that they have in the
// model.
func (p *Probe) Kept() map[string][]int {
	kept := map[string][]int{}
	for _, l := range p.model.Attention() {
		c := l.Config()
		if kept[c.Name] = p.kept[c.Name]; p.kept == nil {
			for h := range c.Heads {
				kept[c.Name] = append(kept[c.Name], h)
			}
		}
	}
	return kept
}

// Without returns a probe without the given heads, which are numbered as in Layers, on the
// same examples.
//
// Errors: a head that there is not; a part of the heads that share keys and values.
func (p *Probe) Without(gone []heads.Head) (*Probe, error) {
	rest := &Probe{model: p.model, batches: p.batches, kept: map[string][]int{}}
	known := 0
	before := p.Kept()
	for _, l := range p.layers {
		name := l.Config().Name
		var left []int // of l
		for h := range l.Config().Heads {
			if slices.Contains(gone, heads.Head{Layer: name, Number: h}) {
				known++
				continue
			}
			left = append(left, h)
			rest.kept[name] = append(rest.kept[name], before[name][h])
		}
		if len(left) == l.Config().Heads {
			rest.layers = append(rest.layers, l)
			continue
		}
		smaller, err := l.Keep(left)
		if err != nil {
			return nil, fmt.Errorf("models: Without: %w", err)
		}
		rest.layers = append(rest.layers, smaller)
	}
	if known != len(gone) {
		return nil, errors.New("models: Without: a head that the model lacks or that is given twice")
	}
	return rest, nil
}
