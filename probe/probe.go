// Package probe measures models: their loss on examples, the importance of their heads, how far the predictions of a
// model are from those of another, and the weights of their attention. A program that only runs models does not need it.
//
//	m, err := models.Load("bert-base-uncased", models.Options{Trainable: true})
//	x, err := probe.TextExample(m, "Attention is all you need", rng)
//	p, err := probe.New(m, []probe.Example{x})
//	scores, err := prune.Importance(ctx, p, prune.ImportanceOptions{})
package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
)

// Probe is a model with examples, on which the importance of its heads is measured. The loss is
// that of the model's task: see New, NewSimilarity and NewVector.
//
// Without disables heads with gates of 0; Compact and WriteMasked remove them from the weights.
type Probe struct {
	model   *models.Model
	aim     aim
	batches []batch
	kept    map[string][]int  // remaining heads by layer; nil means all
	layers  []attn.LayerHeads // with the remaining heads
}

var _ prune.Prunable[*Probe] = (*Probe)(nil)

// batch is a batch of examples.
type batch struct {
	x        models.Batch // the first sequence of each example, then the second ones in pairs
	examples []int        // indexes into the caller's list
	terms    []int        // number of terms of the loss, by example
	// For predictions by logits: the rows of hidden states that count, and their targets.
	places, targets []int
	// For vectors: the target cosines, which are 1 unless they are those of pairs of texts.
	cosines []float32
	// For texts: their target vectors, divided by their length: [B Width].
	vectors *tensor.Tensor
}

// batching limits the size of a batch: its tokens, padding included, pairs of tokens, and logits.
// A single example may exceed the limits.
type batching struct{ tokens, pairs, logits int }

const mostSequences = 64

var (
	usualBatches = batching{tokens: 2048, pairs: math.MaxInt, logits: 1 << 24}
	// smallBatches are larger. They are for models of at most smallWidth.
	smallBatches = batching{tokens: math.MaxInt, pairs: mostSequences * 256 * 256, logits: math.MaxInt}
)

const smallWidth = 256

// first returns the number of examples in the first batch of a list. length returns the length of
// an example, logits the number of its logits; nil means few.
func (b batching) first(list []int, length, logits func(i int) int) int {
	n, longest, sum := 0, 0, 0
	for ; n < min(len(list), mostSequences); n++ {
		longest = max(longest, length(list[n]))
		if logits != nil {
			sum += logits(list[n])
		}
		if all := (n + 1) * longest; n > 0 && (all > b.tokens || all*longest > b.pairs || sum > b.logits) {
			break
		}
	}
	return n
}

// newProbe batches examples of similar lengths, in the order that compare defines. length returns
// the length of an example, and logits the number of its logits.
func newProbe(
	m *models.Model, a aim, n int, length, logits func(i int) int, compare func(i, j int) int, makeBatch func(examples []int) batch,
) *Probe {
	order, size := stats.Numbers(n), usualBatches
	if m.Sizes().Width <= smallWidth {
		size = smallBatches
	}
	slices.SortStableFunc(order, compare)
	p := &Probe{model: m, aim: a, layers: m.HeadLayers()}
	for len(order) > 0 {
		n := size.first(order, length, logits)
		p.batches, order = append(p.batches, makeBatch(order[:n])), order[n:]
	}
	return p
}

// longestFirst compares examples so that the longest is first. Most probes use it.
func longestFirst(length func(i int) int) func(i, j int) int {
	return func(i, j int) int { return cmp.Compare(length(j), length(i)) }
}

// Model returns the probe's model, with all its heads.
func (p *Probe) Model() *models.Model { return p.model }

// Layers describes the layers whose heads have weights, with their remaining heads.
func (p *Probe) Layers() []attn.LayerHeads { return slices.Clone(p.layers) }

// Batches returns the number of examples in each batch, which are of similar lengths.
func (p *Probe) Batches() []int {
	sizes := make([]int, len(p.batches))
	for i, b := range p.batches {
		sizes[i] = len(b.examples)
	}
	return sizes
}

// examples returns the number of examples.
func (p *Probe) examples() (n int) {
	for _, b := range p.batches {
		n += len(b.examples)
	}
	return n
}

// Run runs batch i. A tape of mode tensor.Train would apply the dropout of a translator of attn train.
func (p *Probe) Run(t *tensor.Tape, i int, pass prune.Pass) prune.Outcome {
	b := &p.batches[i]
	outputs := p.aim.outputs(t, p.states(t, i, pass))
	terms := 0
	for _, n := range b.terms {
		terms += n
	}
	var losses func() []float64
	if _, ok := p.aim.(headAim); ok {
		losses = func() (list []float64) {
			for _, y := range b.predictions(tensor.LogSoftmax(nil, outputs)) {
				list = append(list, y.Loss)
			}
			return list
		}
	}
	mean, n := p.aim.loss(t, outputs, b)
	return prune.Outcome{
		Loss:    tensor.Scale(t, mean, float32(n)),
		Losses:  losses,
		Terms:   terms,
		Queries: b.queries,
	}
}

// states runs the model on batch i and returns the states that the aim needs.
func (p *Probe) states(t *tensor.Tape, i int, pass prune.Pass) *tensor.Tensor {
	b := &p.batches[i]
	given := pass.Gates
	if each := len(b.x.IDs) / len(b.examples); each > 1 && given != nil { // both sequences of an example use its gates
		given = func(layer string) *tensor.Tensor {
			g := pass.Gates(layer)
			if g == nil || g.Rank() == 1 {
				return g
			}
			return tensor.Concat(t, 0, slices.Repeat([]*tensor.Tensor{g}, each)...)
		}
	}
	r := models.Run{Gates: p.gates(t, given)}
	if pass.Observe != nil {
		r.Observers = []attn.Observer{observe.Weights(p.remaining(pass.Observe))}
	}
	if k := pass.Kept; k != nil && models.Resumes(p.model) {
		_, block := heads.Place(k.Layer)
		if k.Input != nil {
			r.From, r.Input = block, k.Input
		} else {
			r.States = func(number int, x *tensor.Tensor) {
				if number == block {
					k.Input = x.Clone()
				}
			}
		}
	}
	return p.aim.states(t, p.model.Hidden(t, b.x, r), b)
}

// gates returns a function for the gates of all heads of a layer: those of a pass for remaining
// heads, and 0 for removed ones.
func (p *Probe) gates(t *tensor.Tape, given func(layer string) *tensor.Tensor) func(layer string) *tensor.Tensor {
	if p.kept == nil {
		return given
	}
	sizes := map[string]int{}
	for _, l := range p.model.HeadLayers() {
		sizes[l.Name] = l.Heads
	}
	return func(layer string) *tensor.Tensor {
		left, all := p.kept[layer], sizes[layer]
		var own *tensor.Tensor
		if given != nil {
			own = given(layer) // also called for layers without heads
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
		spread := tensor.Zeros(len(left), all) // [H' H]: 1 at the place of each head
		for i, h := range left {
			spread.Data()[i*all+h] = 1
		}
		y := tensor.MatMul(t, tensor.Reshape(t, own, -1, len(left)), spread)
		return tensor.Reshape(t, y, append(slices.Clone(own.Shape()[:own.Rank()-1]), all)...)
	}
}

// remaining returns a function that receives the weights of all heads and calls tell with those of the
// remaining ones.
func (p *Probe) remaining(tell func(string, *tensor.Tensor)) func(string, *tensor.Tensor) {
	if p.kept == nil {
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

// Loss returns the mean loss over all examples, in nats per target. If ctx ends, it returns
// ctx.Err().
func (p *Probe) Loss(ctx context.Context) (float64, error) {
	sum, terms := 0., 0
	err := p.each(ctx, func(t *tensor.Tape, i int) {
		b := &p.batches[i]
		mean, n := p.aim.loss(t, p.aim.outputs(t, p.states(t, i, prune.Pass{})), b)
		sum += float64(mean.Item()) * float64(n)
		for _, n := range b.terms {
			terms += n
		}
	})
	return sum / float64(terms), err
}

// Losses returns the loss of each example, in the order given to the constructor. It does not
// depend on the other examples, bit for bit. If ctx ends, it returns ctx.Err().
func (p *Probe) Losses(ctx context.Context) ([]Predicted, error) {
	list := make([]Predicted, p.examples())
	return list, p.each(ctx, func(t *tensor.Tape, i int) {
		outputs := p.aim.outputs(t, p.states(t, i, prune.Pass{}))
		p.aim.predicted(t, outputs, outputs, &p.batches[i], list)
	})
}

// each calls visit for each batch with a tape that has been reset.
func (p *Probe) each(ctx context.Context, visit func(t *tensor.Tape, batch int)) error {
	t := tensor.NewTape(tensor.Infer)
	t.SetContext(ctx)
	for i := range p.batches {
		t.Reset()
		if err := par.Stopped(func() { visit(t, i) }); err != nil {
			return err
		}
	}
	return nil
}

// Write returns the tokens that the model without the removed heads writes for each source, like
// Model.Write.
func (p *Probe) Write(ctx context.Context, sources [][]int, g models.Generation) ([][]int, error) {
	g.Run.Gates = p.gates(nil, g.Run.Gates)
	return p.model.Write(ctx, sources, g)
}

// On returns a probe of the same model and heads on the examples of another probe for the same
// task.
func (p *Probe) On(other *Probe) *Probe {
	return &Probe{p.model, p.aim, other.batches, p.kept, p.layers}
}

// Of returns a probe of another model, with all its heads, on the same examples. The model may be
// one that WriteMasked or Compact wrote.
//
// Errors: a model for another task, of other sizes apart from the number of heads, or loaded
// without Options.Trainable.
func (p *Probe) Of(m *models.Model) (*Probe, error) {
	if err := m.WantTrainable("probe: Of"); err != nil {
		return nil, err
	}
	mine, its := p.model.Sizes(), m.Sizes()
	for _, z := range []*models.Sizes{&mine, &its} {
		z.Heads, z.KVHeads = 0, 0
	}
	same := mine.Output() == its.Output()
	if mine.Decoder, its.Decoder = nil, nil; !same || mine != its {
		return nil, fmt.Errorf("probe: Of: the model of %s has other sizes than that of %s", m.Dir, p.model.Dir)
	}
	x, _ := p.model.Tokenizer()
	if y, _ := m.Tokenizer(); x != nil && y != nil && !(x.Same(y) && x.Target().Same(y.Target())) {
		return nil, errors.New("probe: Of: the tokenizers of the two models have different tokens")
	}
	a, err := p.aim.onModel(m)
	if err != nil {
		return nil, err
	}
	return &Probe{model: m, aim: a, batches: p.batches, layers: m.HeadLayers()}, nil
}

// Kept returns the remaining heads of each layer, by their numbers in the model.
func (p *Probe) Kept() map[string][]int {
	kept := map[string][]int{}
	for _, l := range p.model.HeadLayers() {
		if kept[l.Name] = p.kept[l.Name]; p.kept == nil && l.Heads > 0 {
			kept[l.Name] = stats.Numbers(l.Heads)
		}
	}
	return kept
}

// Without returns a probe on the same examples without the given heads, which are numbered as in
// Layers.
//
// Errors: a head that does not exist; only some of the heads that share keys and values.
func (p *Probe) Without(gone []prune.Head) (*Probe, error) {
	rest := &Probe{model: p.model, aim: p.aim, batches: p.batches, kept: map[string][]int{}}
	known, before := 0, p.Kept()
	for _, l := range p.layers {
		rest.kept[l.Name] = nil // also of a layer that loses all
		for h := range l.Heads {
			if slices.Contains(gone, prune.Head{Layer: l.Name, Number: h}) {
				known++
				continue
			}
			rest.kept[l.Name] = append(rest.kept[l.Name], before[l.Name][h])
		}
	}
	if known != len(gone) {
		return nil, errors.New("probe: Without: a head that the model lacks or that is given twice")
	}
	if err := rest.renew(); err != nil {
		return nil, fmt.Errorf("probe: Without: %w", err)
	}
	return rest, nil
}

// renew describes the probe's layers anew.
func (p *Probe) renew() error {
	p.layers = p.model.HeadLayers()
	for i := range p.layers {
		l := &p.layers[i]
		left, some := p.kept[l.Name]
		if !some || len(left) == l.Heads {
			continue
		}
		groups, err := l.Groups(left)
		if err != nil {
			return err
		}
		l.KeyHeads = min(l.KeyHeads, len(groups))
		l.Out = l.Out.KeepInputs(left, l.Out.Weight.Dim(1)/l.Heads)
		if l.Heads = len(left); l.Heads == 0 {
			l.Group = 0
		}
	}
	return nil
}

// Network returns the pruned model as a network whose layers lack the removed heads: see models.Model.WithHeads.
func (p *Probe) Network() (models.Network, error) { return p.model.WithHeads(p.Kept()) }

// Compact returns the model without the weights of the heads that Without removed: see models.Model.Compact.
func (p *Probe) Compact() (*models.Compact, error) { return p.model.Compact(p.Kept()) }

// WriteMasked writes the model with zeros in place of the heads that Without removed: see models.Model.WriteMasked.
func (p *Probe) WriteMasked(w io.Writer) error { return p.model.WriteMasked(w, p.Kept()) }

// Parameters returns the number of parameters, without those of removed heads if the model has a
// compact form.
func (p *Probe) Parameters() int {
	if c, err := p.Compact(); err == nil {
		return c.Parameters()
	}
	return nn.Count(p.model)
}

// MeanTokens returns the mean length of the examples' sequences in tokens, sources and targets
// alike, at least 1.
func (p *Probe) MeanTokens() int {
	tokens, sequences := 0, 0
	for _, b := range p.batches {
		for _, n := range append(b.x.Lens(), lens(b.x.Targets)...) {
			tokens, sequences = tokens+n, sequences+1
		}
	}
	return max(1, (tokens+sequences/2)/max(1, sequences))
}

// Change gives p its own copy of the model and calls change with it, which may change the parameters.
// Other probes of the model do not change.
//
// Errors: those of models.Model.Change.
func (p *Probe) Change(change func(m *models.Model) error) error {
	return p.model.Change(func(own *models.Model) error {
		a, err := p.aim.onModel(own)
		if err != nil {
			return err
		}
		p.aim, p.model = a, own
		if err := p.renew(); err != nil {
			return err
		}
		return cmp.Or(change(own), p.renew())
	})
}

// lens returns the lengths of sequences.
func lens(ids [][]int) []int { return models.Batch{IDs: ids}.Lens() }
