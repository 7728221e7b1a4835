package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
)

// Probe is a model and examples on which the importance of its heads is measured: the loss
// is that of what the model is for, which NewProbe and NewSimilarityProbe say.
//
// Heads that Without takes away stay in the model's weights, behind gates of 0; Compact and
// WriteMasked take them out of the weights.
type Probe struct {
	model   *Model
	aim     aim
	batches []probeBatch
	kept    map[string][]int  // by layer, the heads that are left; nil means all
	layers  []*attn.MultiHead // with those heads
}

var _ prune.Prunable[*Probe] = (*Probe)(nil)

// probeBatch is examples that are run at once.
type probeBatch struct {
	x        Batch // first the first sequence of each example, then the second, where they have two
	examples []int // by their numbers in the list that was given
	each     int   // sequences of an example
	terms    []int // of the loss, of each example
	// Of what logits predict: the rows of hidden states that count, and what they are to be.
	places, targets []int
	// Of pairs of texts: what the cosine of their vectors is to be.
	cosines []float32
}

// How many sequences and tokens, padding included, and logits a batch has at most, unless a
// single example has more.
const (
	probeExamples = 64
	probeTokens   = 2048
	probeLogits   = 1 << 24
)

// newProbe puts examples of similar lengths together, the longest first. length is how
// long an example is, and logits how many numbers are computed of it behind the model.
func newProbe(m *Model, a aim, n int, length, logits func(i int) int, batch func(examples []int) probeBatch) *Probe {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(length(b), length(a)) })
	p := &Probe{model: m, aim: a, layers: m.Attention()}
	for len(order) > 0 {
		n, sum, longest := 0, 0, length(order[0])
		for n < min(len(order), probeExamples) {
			sum += logits(order[n])
			if n > 0 && ((n+1)*longest > probeTokens || sum > probeLogits) {
				break
			}
			n++
		}
		p.batches, order = append(p.batches, batch(order[:n])), order[n:]
	}
	return p
}

// Model returns the model that is probed, with all its heads.
func (p *Probe) Model() *Model { return p.model }

// Layers returns the attention layers, with the heads that are left.
func (p *Probe) Layers() []*attn.MultiHead { return p.layers }

// Batches returns the number of examples in each batch, which are of similar lengths.
func (p *Probe) Batches() []int {
	sizes := make([]int, len(p.batches))
	for i, b := range p.batches {
		sizes[i] = len(b.examples)
	}
	return sizes
}

// Run runs batch i. The models have no dropout.
func (p *Probe) Run(t *tensor.Tape, i int, pass prune.Pass) prune.Outcome {
	b := &p.batches[i]
	states := p.states(t, i, pass)
	terms := 0
	for _, n := range b.terms {
		terms += n
	}
	return prune.Outcome{
		Loss:  p.aim.loss(t, states, b),
		Terms: terms,
		Queries: func(layer string) []int {
			if kind, _ := heads.Place(layer); b.x.Targets != nil && kind != heads.Encoder {
				return Batch{IDs: b.x.Targets}.Lens()
			}
			return b.x.Lens()
		},
	}
}

// states runs the model on batch i as far as the aim needs it.
func (p *Probe) states(t *tensor.Tape, i int, pass prune.Pass) *tensor.Tensor {
	b := &p.batches[i]
	given := pass.Gates
	if b.each > 1 && given != nil { // both sequences of an example have its gates
		given = func(layer string) *tensor.Tensor {
			g := pass.Gates(layer)
			if g == nil || g.Rank() == 1 {
				return g
			}
			return tensor.Concat(t, 0, slices.Repeat([]*tensor.Tensor{g}, b.each)...)
		}
	}
	return p.aim.states(t, p.model.Hidden(t, b.x, Run{Gates: p.gates(t, given), Observe: p.observer(pass.Observe)}), b)
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
func (p *Probe) observer(tell attn.WeightsFunc) attn.WeightsFunc {
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
		out := p.Run(tape, i, prune.Pass{})
		sum, terms = sum+float64(out.Loss.Item()), terms+out.Terms
	}
	return sum / float64(terms), nil
}

// Write returns what a model that writes does write for a source or behind a prompt, without
// the heads that are gone: as Model.Generate does.
//
// Errors: those of Model.Generate; if ctx ends, ctx.Err().
func (p *Probe) Write(ctx context.Context, prompt []int, g Generation) ([]int, error) {
	g.Run.Gates = p.gates(nil, g.Run.Gates)
	tokens, err := p.model.Generate(prompt, g)
	if err != nil {
		return nil, err
	}
	var written []int
	for id := range tokens {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		written = append(written, id)
	}
	return written, nil
}

// On returns a probe of the same heads on the examples of another probe for the same task.
func (p *Probe) On(other *Probe) *Probe {
	return &Probe{p.model, p.aim, other.batches, p.kept, p.layers}
}

// Of returns a probe of another model, with all its heads, on the same examples: of one that
// was written by WriteMasked or Compact, say.
//
// Errors: a model of other sizes, numbers of attention heads aside, or for another task.
func (p *Probe) Of(m *Model) (*Probe, error) {
	mine, its := p.model.Sizes(), m.Sizes()
	for _, z := range []*Sizes{&mine, &its} {
		z.Heads, z.KVHeads = 0, 0
	}
	same := mine.output() == its.output()
	if mine.Decoder, its.Decoder = nil, nil; !same || mine != its {
		return nil, fmt.Errorf("models: Of: the model of %s has other sizes than that of %s", m.Dir, p.model.Dir)
	}
	a, err := p.aim.of(m)
	if err != nil {
		return nil, err
	}
	return &Probe{model: m, aim: a, batches: p.batches, layers: m.Attention()}, nil
}

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
func (p *Probe) Without(gone []prune.Head) (*Probe, error) {
	rest := &Probe{model: p.model, aim: p.aim, batches: p.batches, kept: map[string][]int{}}
	known := 0
	before := p.Kept()
	for _, l := range p.layers {
		name := l.Config().Name
		var left []int // of l
		for h := range l.Config().Heads {
			if slices.Contains(gone, prune.Head{Layer: name, Number: h}) {
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
