package models

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// Transformer is the architecture of transformers.
const Transformer = "transformer"

// transformerFamily is the encoder–decoder of Vaswani et al., "Attention Is All You Need", 2017, as
// attn train makes it. Unlike the paper's, it normalises before each sublayer instead of after,
// which trains without a delicate warm-up (Xiong et al., "On Layer Normalization in the
// Transformer Architecture", 2020, https://arxiv.org/abs/2002.04745).
var transformerFamily = Family{
	Type: translatorType + Transformer, Name: "transformer translator", New: newTransformer,
	Pruning: NamedHeads, Search: bestSearch,
}

// transformer is the network of transformerFamily.
type transformer struct{ *encoderDecoder }

func newTransformer(b *Builder) Network {
	const eps = 1e-5
	c, ok := b.translator(Transformer)
	if !ok {
		return nil
	}
	empty := func(causal bool, name string, vocabulary int) *stack {
		z := Sizes{
			Causal: causal, Layers: c.Layers, Heads: c.Heads, Width: c.Width, Hidden: c.Hidden, Vocabulary: vocabulary,
		}
		s := &stack{
			sizes: z.oneToOne(), scale: float32(math.Sqrt(float64(c.Width))), dropout: c.Dropout,
			positions: &sinusoids{width: c.Width, rows: func(n int) *tensor.Tensor { return nn.Sinusoids(nil, 0, n, c.Width) }},
		}
		s.words, s.logits = b.Words(name, vocabulary, c.Width)
		return s
	}
	e := &encoderDecoder{
		source: empty(false, "source", c.SourceVocab), target: empty(true, "target", c.TargetVocab),
		start: seq2seq.BOS,
	}
	e.source.logits = nil
	add := func(s *stack, at *Builder, self, cross string) {
		p := &block{dropout: c.Dropout, selfNorm: at.LayerNorm("norm1", c.Width, eps), self: at.scoredHeads(c, "self", self)}
		last := "norm2"
		if cross != "" {
			p.options.Mask = mask.Causal()
			p.crossNorm, p.cross = at.LayerNorm("norm2", c.Width, eps), at.scoredHeads(c, "cross", cross)
			last = "norm3"
		}
		p.ffNorm = at.LayerNorm(last, c.Width, eps)
		p.ff = &nn.FeedForward{
			In: at.Linear("ff.in", c.Width, c.Hidden), Out: at.Linear("ff.out", c.Hidden, c.Width),
			Activation: tensor.ReLU, Dropout: c.Dropout,
		}
		s.blocks = append(s.blocks, p)
	}
	for i := range c.Layers {
		add(e.source, b.At(fmt.Sprintf("encoder.%d", i)), encoderName(i), "")
	}
	e.source.norm = b.LayerNorm("encoder.norm", c.Width, eps)
	for i := range c.Layers {
		add(e.target, b.At(fmt.Sprintf("decoder.%d", i)), decoderName(i), crossName(i))
	}
	e.target.norm = b.LayerNorm("decoder.norm", c.Width, eps)
	return transformer{e}
}

// Operations returns the multiply-adds for one sequence outside the attention layers. encoded is the number of
// source tokens that are encoded now: source, or 0 if the state has them already.
func (m transformer) Operations(encoded, _, target float64) float64 {
	z := m.Sizes()
	width, hidden, layers := float64(z.Width), float64(z.Hidden), float64(z.Layers)
	return layers*2*width*hidden*(encoded+target) + target*width*float64(z.Decoder.Vocabulary)
}

// sinusoids are vectors of positions, of the given width. rows returns those of positions 0 to n−1.
type sinusoids struct {
	width int
	rows  func(n int) *tensor.Tensor

	lock  sync.Mutex
	table *tensor.Tensor // of positions 0, 1, 2, …; Forward extends it
}

// Forward returns the vectors of positions.
func (s *sinusoids) Forward(t *tensor.Tape, at []int, b, l int) *tensor.Tensor {
	if len(at) == 0 {
		return t.Make(b, l, s.width)
	}
	return tensor.Reshape(t, tensor.Gather(t, s.upTo(slices.Max(at)), at), b, l, s.width)
}

// upTo returns a table with a position and those before it.
func (s *sinusoids) upTo(position int) *tensor.Tensor {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.table != nil && position < s.table.Dim(0) {
		return s.table
	}
	rows := 64
	for rows <= position {
		rows *= 2
	}
	s.table = s.rows(rows)
	return s.table
}
