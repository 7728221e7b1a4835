package seq2seq

import (
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// transformer is the encoder–decoder of Vaswani et al., "Attention Is All You
// Need", 2017. It differs in normalising in front of each sublayer instead of
// behind, which trains without a delicate warm-up (Xiong et al., "On Layer
// Normalization in the Transformer Architecture", 2020,
// https://arxiv.org/abs/2002.04745).
type transformer struct {
	config         Config
	source, target *nn.Embedding
	encoder        []*encoderLayer
	decoder        []*decoderLayer
	encoderNorm    *nn.LayerNorm
	decoderNorm    *nn.LayerNorm
}

type encoderLayer struct {
	norm1, norm2 *nn.LayerNorm
	self         *attn.MultiHead
	ff           *nn.FeedForward
}

type decoderLayer struct {
	norm1, norm2, norm3 *nn.LayerNorm
	self, cross         *attn.MultiHead
	ff                  *nn.FeedForward
}

func newTransformer(c Config, rng *rand.Rand) *transformer {
	m := &transformer{config: c}
	m.source, m.target = newEmbeddings(c, rng)
	for i := range c.Layers {
		m.encoder = append(m.encoder, &encoderLayer{
			norm1: nn.NewLayerNorm(c.Width), norm2: nn.NewLayerNorm(c.Width),
			self: newHeads(c, encoderSelf(i), rng),
			ff:   nn.NewFeedForward(c.Width, c.Hidden, c.Dropout, rng),
		})
	}
	for i := range c.Layers {
		m.decoder = append(m.decoder, &decoderLayer{
			norm1: nn.NewLayerNorm(c.Width), norm2: nn.NewLayerNorm(c.Width), norm3: nn.NewLayerNorm(c.Width),
			self:  newHeads(c, decoderSelf(i), rng),
			cross: newHeads(c, decoderCross(i), rng),
			ff:    nn.NewFeedForward(c.Width, c.Hidden, c.Dropout, rng),
		})
	}
	m.encoderNorm, m.decoderNorm = nn.NewLayerNorm(c.Width), nn.NewLayerNorm(c.Width)
	return m
}

// newHeads returns a multi-head layer of the network, with the heads that the
// configuration leaves it; c must be valid.
func newHeads(c Config, name string, rng *rand.Rand) *attn.MultiHead {
	size := c.Width / c.Heads
	config := attn.MultiHeadConfig{
		Name: name, Width: c.Width, Heads: len(c.Kept(name)), HeadSize: size,
		Bias: attn.AllProjections, Dropout: c.Dropout,
	}
	if config.Heads > 0 {
		config.Score = c.newScore(size, rng)
	} else {
		config.Heads = attn.NoHeads // and nothing that a score could compare
	}
	m, err := attn.NewMultiHead(config, rng)
	if err != nil {
		panic(err) // a valid Config makes a valid MultiHeadConfig
	}
	return m
}

func (l *encoderLayer) Params() nn.Params {
	return nn.Join(nn.Named{Name: "norm1", Module: l.norm1}, nn.Named{Name: "self", Module: l.self},
		nn.Named{Name: "norm2", Module: l.norm2}, nn.Named{Name: "ff", Module: l.ff})
}

func (l *decoderLayer) Params() nn.Params {
	return nn.Join(nn.Named{Name: "norm1", Module: l.norm1}, nn.Named{Name: "self", Module: l.self},
		nn.Named{Name: "norm2", Module: l.norm2}, nn.Named{Name: "cross", Module: l.cross},
		nn.Named{Name: "norm3", Module: l.norm3}, nn.Named{Name: "ff", Module: l.ff})
}

func (m *transformer) Params() nn.Params {
	parts := []nn.Named{{Name: "source", Module: m.source}, {Name: "target", Module: m.target}}
	parts = append(parts, nn.Numbered("encoder", m.encoder)...)
	parts = append(parts, nn.Named{Name: "encoder.norm", Module: m.encoderNorm})
	parts = append(parts, nn.Numbered("decoder", m.decoder)...)
	parts = append(parts, nn.Named{Name: "decoder.norm", Module: m.decoderNorm})
	return nn.Join(parts...)
}

// transformerState is a decoder's view of the source, and the keys and values
// of the tokens that it has read itself.
type transformerState struct {
	lens  []int
	cross []attn.KV     // one a layer
	self  []*attn.Cache // one a layer; none once a tape has recorded, from where nobody goes on
	read  int
}

func (s *transformerState) choose(t *tensor.Tape, sequences []int) state {
	n := &transformerState{read: s.read, lens: make([]int, len(sequences))}
	for i, seq := range sequences {
		n.lens[i] = s.lens[seq]
	}
	for i := range s.cross {
		n.cross = append(n.cross, s.cross[i].Select(t, sequences))
		n.self = append(n.self, s.self[i].Select(sequences))
	}
	return n
}

func (m *transformer) encode(t *tensor.Tape, src batch, hooks hooks) state {
	b := len(src.lens)
	x := m.positioned(t, m.source, src.ids, b, src.l, 0)
	visible := mask.Lengths(src.lens...)
	for _, l := range m.encoder {
		h := l.norm1.Forward(t, x)
		x = m.residual(t, x, l.self.Forward(t, h, h, h, hooks.options(l.self.Config().Name, visible)).Out)
		x = m.residual(t, x, l.ff.Forward(t, l.norm2.Forward(t, x)))
	}
	x = m.encoderNorm.Forward(t, x)
	s := &transformerState{lens: src.lens}
	for _, l := range m.decoder {
		s.cross = append(s.cross, l.cross.Project(t, x, x))
		cache, err := l.self.NewCache(b, attn.CacheConfig{})
		if err != nil {
			panic(err) // a valid MultiHead has a valid cache
		}
		s.self = append(s.self, cache)
	}
	return s
}

func (m *transformer) read(t *tensor.Tape, s state, tokens []int, l int, hooks hooks) (*tensor.Tensor, state) {
	st := s.(*transformerState)
	if t.Recording() && st.read > 0 {
		panic("seq2seq: a decoder goes on from a state with a tape that records")
	}
	next := &transformerState{lens: st.lens, cross: st.cross, read: st.read + l}
	x := m.positioned(t, m.target, tokens, len(st.lens), l, st.read)
	earlier, visible := mask.Causal(), mask.Lengths(st.lens...)
	for i, l := range m.decoder {
		h := l.norm1.Forward(t, x)
		o := hooks.options(l.self.Config().Name, earlier)
		if t.Recording() { // the whole target at once: no gradient passes through a cache
			x = m.residual(t, x, l.self.Forward(t, h, h, h, o).Out)
		} else {
			cache := st.self[i].Fork() // leaves the old state as it was, and copies nothing
			next.self = append(next.self, cache)
			x = m.residual(t, x, l.self.Extend(t, h, cache, o).Out)
		}
		z := l.cross.Query(t, l.norm2.Forward(t, x), st.cross[i], hooks.options(l.cross.Config().Name, visible))
		x = m.residual(t, x, z.Out)
		x = m.residual(t, x, l.ff.Forward(t, l.norm3.Forward(t, x)))
	}
	return m.decoderNorm.Forward(t, x), next
}

func (m *transformer) logits(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.Linear(t, x, m.target.Weight, nil)
}

func (m *transformer) layers() []*attn.MultiHead {
	var all []*attn.MultiHead
	for _, l := range m.encoder {
		all = append(all, l.self)
	}
	for _, l := range m.decoder {
		all = append(all, l.self, l.cross)
	}
	return all
}

// residual returns x + dropout(y).
func (m *transformer) residual(t *tensor.Tape, x, y *tensor.Tensor) *tensor.Tensor {
	return tensor.AddDropout(t, x, y, m.config.Dropout)
}

// positioned embeds b·l tokens that stand at positions from, from+1, ….
func (m *transformer) positioned(t *tensor.Tape, e *nn.Embedding, ids []int, b, l, from int) *tensor.Tensor {
	x := embed(t, e, ids, b, l)
	return tensor.Dropout(t, tensor.Add(t, x, nn.Sinusoids(t, from, l, m.config.Width)), m.config.Dropout)
}
