package models

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// GRU is the architecture of recurrent translators, named after their units.
const GRU = "gru"

var recurrentFamily = Family{
	Type: translatorType + GRU, Name: "recurrent translator", New: newRecurrent,
	Pruning: NamedHeads, Search: bestSearch,
}

// recurrent is the translator of Bahdanau et al., "Neural Machine Translation by Jointly Learning
// to Align and Translate", 2015, https://arxiv.org/abs/1409.0473: a bidirectional encoder, and a
// decoder whose state is the query at every step. It supports any score; "additive" is the
// paper's. If heads are configured, a multi-head layer computes the context.
type recurrent struct {
	config         TranslatorConfig
	source, target words
	logits         *nn.Linear
	// Each encoder layer has one unit per direction, of half the width.
	forward, backward []*nn.GRU
	initial           []*nn.Linear // maps the encoder's last states to the decoder's first, one per layer
	decoder           []*nn.GRU
	score             attn.Score      // for attention without heads
	cross             *attn.MultiHead // for attention with heads, else nil
	readout           *nn.Linear
}

func newRecurrent(b *Builder) Network {
	c, ok := b.translator(GRU)
	if !ok {
		return nil
	}
	m := &recurrent{config: c}
	m.source, _ = b.Words("source", c.SourceVocab, c.Width)
	m.target, m.logits = b.Words("target", c.TargetVocab, c.Width)
	from := len(b.params)
	for i := range c.Layers {
		m.forward = append(m.forward, b.gru(fmt.Sprintf("encoder.forward.%d", i), c.Width, c.Width/2))
		m.backward = append(m.backward, b.gru(fmt.Sprintf("encoder.backward.%d", i), c.Width, c.Width/2))
		m.initial = append(m.initial, b.Linear(fmt.Sprintf("initial.%d", i), c.Width, c.Width))
		in := c.Width
		if i == 0 {
			in = 2 * c.Width // the token and the context
		}
		m.decoder = append(m.decoder, b.gru(fmt.Sprintf("decoder.%d", i), in, c.Width))
	}
	b.order(from, "encoder.forward.", "encoder.backward.", "initial.", "decoder.")
	if c.Heads > 0 {
		m.cross = b.scoredHeads(c, "cross", crossName(0))
	} else {
		m.score = b.score(c.Score, "score", c.Width)
	}
	m.readout = b.Linear("readout", 3*c.Width, c.Width)
	return m
}

// gru returns a layer of gated recurrent units: name.weight_ih and so on.
func (b *Builder) gru(name string, in, hidden int) *nn.GRU {
	g := &nn.GRU{CellWeights: nn.CellWeights{
		WeightIH: b.Tensor(name+".weight_ih", 3*hidden, in), WeightHH: b.Tensor(name+".weight_hh", 3*hidden, hidden),
		BiasIH: b.Tensor(name+".bias_ih", 3*hidden), BiasHH: b.Tensor(name+".bias_hh", 3*hidden),
	}}
	b.draw(g, func(rng *rand.Rand) nn.Module { return nn.NewGRU(in, hidden, rng) })
	return g
}

// recurrentState is the keys and values of the source, and the state of each decoder layer.
type recurrentState struct {
	lens   []int            // of the sources
	source *tensor.Tensor   // [B Ls D]; nil before it is read
	score  attn.Score       // with its work on the source done
	kv     attn.KV          // the source's keys and values, with heads only
	h      []*tensor.Tensor // [B D], one per layer
	read   []int            // tokens read of each target
}

// NewState returns the state of a decoder that has read nothing.
func (m *recurrent) NewState() State { return new(recurrentState) }

// Lens returns how many tokens of each sequence have been read.
func (s *recurrentState) Lens() []int { return slices.Clone(s.read) }

// Select returns the state of the given sequences.
func (s *recurrentState) Select(sequences []int) State {
	if slices.Equal(sequences, stats.Numbers(len(s.read))) {
		same := *s // vectors can be shared, because a step makes new ones
		same.h, same.read = slices.Clone(s.h), slices.Clone(s.read)
		return &same
	}
	// The score's precomputation cannot be split by sequence; it is repeated when needed.
	n := &recurrentState{
		lens: stats.Pick(s.lens, sequences), read: stats.Pick(s.read, sequences),
		source: tensor.Gather(nil, s.source, sequences), kv: s.kv.Select(nil, sequences),
	}
	for _, h := range s.h {
		n.h = append(n.h, tensor.Gather(nil, h, sequences))
	}
	return n
}

// Hidden returns the vectors that predict the tokens after those of x.Targets. Targets that
// continue a state must have equal lengths.
func (m *recurrent) Hidden(t *tensor.Tape, x Batch, r Run) *tensor.Tensor {
	r.wantWhole()
	s, kept := r.State.(*recurrentState)
	if !kept {
		s = new(recurrentState)
	}
	y := Batch{IDs: x.Targets}
	wantTargets(x, s.read)
	if kept && y.lens() != nil {
		panic(&tensor.ValueError{
			Op: "models: Hidden", Arg: "targets", Got: "of different lengths", Want: "equal lengths, because a state is given",
		})
	}
	if s.source == nil {
		if kept {
			m.encode(lasting(t), x, s)
		} else {
			m.encode(t, x, s)
		}
		if y.IDs == nil {
			y.IDs = slices.Repeat([][]int{{seq2seq.BOS}}, len(x.IDs))
		}
	}
	for i, ids := range y.IDs {
		s.read[i] += len(ids)
	}
	if kept {
		t = nil // the state must outlive the tape's memory, and a step is short
	}
	return m.decode(t, y, s, r)
}

// encode reads the sources.
func (m *recurrent) encode(t *tensor.Tape, x Batch, s *recurrentState) {
	s.lens, s.read = x.Lens(), make([]int, len(x.IDs))
	h := tensor.Dropout(t, m.scaled(m.source).sum(t, x, nil, len(x.IDs), x.longest()), m.config.Dropout)
	for i := range m.forward {
		f, lastF := m.forward[i].Forward(t, h, nil, s.lens, nn.Forward)
		r, lastR := m.backward[i].Forward(t, h, nil, s.lens, nn.Backward)
		h = tensor.Dropout(t, tensor.Concat(t, 2, f, r), m.config.Dropout)
		last := tensor.Concat(t, 1, lastF, lastR)
		s.h = append(s.h, tensor.Tanh(t, m.initial[i].Forward(t, last)))
	}
	s.source = h
	if m.cross != nil {
		s.kv = m.cross.Project(t, h, h)
	}
}

// scaled returns √D times the vectors of tokens, as embeddings without positions.
func (m *recurrent) scaled(e words) *stack {
	return &stack{words: e, scale: float32(math.Sqrt(float64(m.config.Width)))}
}

// decode reads the next tokens of the targets.
func (m *recurrent) decode(t *tensor.Tape, y Batch, s *recurrentState, r Run) *tensor.Tensor {
	if m.cross == nil && s.score == nil {
		one := tensor.Reshape(t, s.source, s.source.Dim(0), 1, s.source.Dim(1), s.source.Dim(2)) // one head
		s.score = score.OnKeys(t, m.score, one)
	}
	b, l, d := len(y.IDs), y.longest(), m.config.Width
	o := attn.Options{Mask: r.mask(mask.Lengths(s.lens...), crossName(0)), Inspect: r.Inspect, Layer: crossName(0)}
	steps := make([]*stepwise, len(r.Observers))
	for i, observer := range r.Observers {
		steps[i] = &stepwise{Observer: observer, steps: l}
		o.Observers = append(o.Observers, steps[i])
	}
	o.Gates, o.Edits = r.gates(o.Layer), r.edits(o.Layer)
	embedded := tensor.Dropout(t, m.scaled(m.target).sum(t, y, nil, len(y.IDs), y.longest()), m.config.Dropout)
	features := make([]*tensor.Tensor, 0, l)
	for i := range l {
		query := tensor.Reshape(t, s.h[len(s.h)-1], b, 1, d)
		context := m.attend(t, query, s, o)
		x := tensor.Concat(t, 2, tensor.Slice(t, embedded, 1, i, i+1), context)
		in := x
		for j, unit := range m.decoder {
			in, s.h[j] = unit.Forward(t, in, s.h[j], nil, nn.Forward)
			in = tensor.Dropout(t, in, m.config.Dropout)
		}
		features = append(features, tensor.Concat(t, 2, x, in))
	}
	for _, w := range steps {
		if e, ok := w.Observer.(interface{ End() }); ok {
			e.End()
		}
	}
	out := tensor.Tanh(t, m.readout.Forward(t, tensor.Concat(t, 1, features...))) // [B l D]
	return tensor.Dropout(t, out, m.config.Dropout)
}

// stepwise makes one call of an observer of the calls of a layer that attends step by step.
type stepwise struct {
	attn.Observer
	steps, done int
}

func (w *stepwise) Begin(s attn.Sizes) {
	if w.done++; w.done == 1 {
		s.Lq = w.steps
		w.Observer.Begin(s)
	}
}

func (w *stepwise) Row(at attn.Row, weights []float32) {
	at.Query += w.done - 1
	w.Observer.Row(at, weights)
}

// Head returns the head that predicts the next token.
func (m *recurrent) Head() *TaskHead {
	return &TaskHead{Task: NextWord, Layer: m.logits}
}

func (m *recurrent) FinalNorm() Layer { return nil }

// Attention returns the layer with heads, if there is one.
func (m *recurrent) Attention() []*attn.MultiHead {
	if m.cross == nil {
		return nil
	}
	return []*attn.MultiHead{m.cross}
}

// Sizes returns the sizes of the two stacks.
func (m *recurrent) Sizes() Sizes {
	c := m.config
	z := Sizes{Layers: c.Layers, Heads: c.Heads, Width: c.Width, Vocabulary: c.SourceVocab}
	if c.Heads > 0 {
		z = z.oneToOne()
	}
	y := z
	y.Causal, y.Vocabulary = true, c.TargetVocab
	z.Decoder = &y
	return z
}

// Operations returns the multiply-adds for one sequence outside the attention layer, which is missing without heads.
// encoded is the number of source tokens that are encoded now: source, or 0 if the state has them already.
func (m *recurrent) Operations(encoded, source, target float64) float64 {
	d, layers := float64(m.config.Width), float64(m.config.Layers)
	// A unit of h states and n inputs takes 3h(n+h) per token.
	unit := func(in, h float64) float64 { return 3 * h * (in + h) }
	all := 0.
	if m.cross == nil {
		all = 2 * target * source * d
	}
	if encoded > 0 {
		all += layers * (encoded*2*unit(d, d/2) + d*d)
	}
	return all + target*(unit(2*d, d)+(layers-1)*unit(d, d)+3*d*d+d*float64(m.config.TargetVocab))
}

// StartToken returns the first token of a target.
func (m *recurrent) StartToken() int { return seq2seq.BOS }

// attend returns the context [B 1 D] of a query [B 1 D].
func (m *recurrent) attend(t *tensor.Tape, query *tensor.Tensor, s *recurrentState, o attn.Options) *tensor.Tensor {
	if m.cross != nil {
		return m.cross.Query(t, query, s.kv, o).Out
	}
	o.Score = s.score
	return attn.Attend(t, query, s.source, s.source, o).Out
}
