package seq2seq

import (
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// recurrent is the translator of Bahdanau et al., "Neural Machine Translation by
// Jointly Learning to Align and Translate", 2015,
// https://arxiv.org/abs/1409.0473: a bidirectional encoder, and a decoder whose
// state is the query at every step. Any score can be used; with "additive" it is
// the paper's. With heads, the context is that of a multi-head layer.
type recurrent struct {
	config         Config
	source, target *nn.Embedding
	// Each encoder layer has a unit for either direction, of half the width.
	forward, backward []*nn.GRU
	initial           []*nn.Linear // the encoder's last states to the decoder's first, one a layer
	decoder           []*nn.GRU
	score             attn.Score      // for attention without heads
	cross             *attn.MultiHead // for attention with heads, else nil
	readout           *nn.Linear
}

func newRecurrent(c Config, rng *rand.Rand) *recurrent {
	m := &recurrent{config: c}
	m.source, m.target = newEmbeddings(c, rng)
	for i := range c.Layers {
		m.forward = append(m.forward, nn.NewGRU(c.Width, c.Width/2, rng))
		m.backward = append(m.backward, nn.NewGRU(c.Width, c.Width/2, rng))
		m.initial = append(m.initial, nn.NewLinear(c.Width, c.Width, true, rng))
		in := c.Width
		if i == 0 {
			in = 2 * c.Width // the token and the context
		}
		m.decoder = append(m.decoder, nn.NewGRU(in, c.Width, rng))
	}
	if c.Heads > 0 {
		m.cross = newHeads(c, decoderCross(0), rng)
	} else {
		m.score = c.newScore(c.Width, rng)
	}
	m.readout = nn.NewLinear(3*c.Width, c.Width, true, rng)
	return m
}

func (m *recurrent) Params() nn.Params {
	parts := []nn.Named{{Name: "source", Module: m.source}, {Name: "target", Module: m.target}}
	parts = append(parts, nn.Numbered("encoder.forward", m.forward)...)
	parts = append(parts, nn.Numbered("encoder.backward", m.backward)...)
	parts = append(parts, nn.Numbered("initial", m.initial)...)
	parts = append(parts, nn.Numbered("decoder", m.decoder)...)
	if m.cross != nil {
		parts = append(parts, nn.Named{Name: "cross", Module: m.cross})
	} else if score, ok := m.score.(nn.Module); ok {
		parts = append(parts, nn.Named{Name: "score", Module: score})
	}
	return nn.Join(append(parts, nn.Named{Name: "readout", Module: m.readout})...)
}

// recurrentState is the source as keys and values, and the state of each
// decoder layer.
type recurrentState struct {
	lens   []int
	source *tensor.Tensor   // [B Ls D]
	score  attn.Score       // with its work on the source done
	kv     attn.KV          // the source in heads, where there are heads
	h      []*tensor.Tensor // [B D], one a layer
}

func (s *recurrentState) choose(t *tensor.Tape, sequences []int) state {
	// The score's work on the keys is not divisible; it is done again when it
	// is needed.
	n := &recurrentState{
		lens: make([]int, len(sequences)), source: tensor.Gather(t, s.source, sequences),
		kv: s.kv.Select(t, sequences),
	}
	for i, seq := range sequences {
		n.lens[i] = s.lens[seq]
	}
	for _, h := range s.h {
		n.h = append(n.h, tensor.Gather(t, h, sequences))
	}
	return n
}

func (m *recurrent) encode(t *tensor.Tape, src batch, _ hooks) state {
	b := len(src.lens)
	x := tensor.Dropout(t, embed(t, m.source, src.ids, b, src.l), m.config.Dropout)
	s := &recurrentState{lens: src.lens}
	for i := range m.forward {
		f, lastF := m.forward[i].Forward(t, x, nil, src.lens, nn.Forward)
		r, lastR := m.backward[i].Forward(t, x, nil, src.lens, nn.Backward)
		x = tensor.Dropout(t, tensor.Concat(t, 2, f, r), m.config.Dropout)
		last := tensor.Concat(t, 1, lastF, lastR)
		s.h = append(s.h, tensor.Tanh(t, m.initial[i].Forward(t, last)))
	}
	s.source = x
	if m.cross != nil {
		s.kv = m.cross.Project(t, x, x)
	}
	return s
}

func (m *recurrent) read(t *tensor.Tape, s state, tokens []int, l int, hooks hooks) (*tensor.Tensor, state) {
	old := s.(*recurrentState)
	st := *old
	st.h = append([]*tensor.Tensor(nil), old.h...)
	if m.cross == nil && st.score == nil {
		st.score = m.keyed(t, st.source)
	}
	b, d := len(st.lens), m.config.Width
	o := hooks.options(decoderCross(0), mask.Lengths(st.lens...))
	var steps *stackedWeights
	if o.Observe != nil && l > 1 {
		// A layer that attends step by step tells of all its steps at once.
		steps = &stackedWeights{}
		o.Observe = steps.add
	}

	embedded := tensor.Dropout(t, embed(t, m.target, tokens, b, l), m.config.Dropout)
	features := make([]*tensor.Tensor, 0, l)
	for i := range l {
		query := tensor.Reshape(t, st.h[len(st.h)-1], b, 1, d)
		context := m.attend(t, query, &st, o)
		x := tensor.Concat(t, 2, tensor.Slice(t, embedded, 1, i, i+1), context)
		in := x
		for j, unit := range m.decoder {
			in, st.h[j] = unit.Forward(t, in, st.h[j], nil, nn.Forward)
			in = tensor.Dropout(t, in, m.config.Dropout)
		}
		features = append(features, tensor.Concat(t, 2, x, in))
	}
	if steps != nil {
		hooks.observe(o.Layer, steps.all())
	}
	out := tensor.Tanh(t, m.readout.Forward(t, tensor.Concat(t, 1, features...))) // [B l D]
	return tensor.Dropout(t, out, m.config.Dropout), &st
}

func (m *recurrent) logits(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.Linear(t, x, m.target.Weight, nil)
}

func (m *recurrent) layers() []*attn.MultiHead {
	if m.cross == nil {
		return nil
	}
	return []*attn.MultiHead{m.cross}
}

// keyed returns the score with its work on the source done. The source has one
// head here.
func (m *recurrent) keyed(t *tensor.Tape, source *tensor.Tensor) attn.Score {
	k := tensor.Reshape(t, source, source.Dim(0), 1, source.Dim(1), source.Dim(2))
	return score.OnKeys(t, m.score, k)
}

// attend returns the context [B 1 D] of a query [B 1 D].
func (m *recurrent) attend(t *tensor.Tape, query *tensor.Tensor, s *recurrentState, o attn.Options) *tensor.Tensor {
	if m.cross != nil {
		return m.cross.Query(t, query, s.kv, o).Out
	}
	o.Score = s.score
	return attn.Attend(t, query, s.source, s.source, o).Out
}

// stackedWeights gathers the weights [B H 1 Lk] of successive steps.
type stackedWeights struct{ steps []*tensor.Tensor }

func (s *stackedWeights) add(_ string, w *tensor.Tensor) {
	s.steps = append(s.steps, w)
}

// all returns the weights of all steps, [B H L Lk].
func (s *stackedWeights) all() *tensor.Tensor { return tensor.Concat(nil, 2, s.steps...) }
