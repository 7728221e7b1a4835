package models

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// Transformer is the architecture of transformers.
const Transformer = "transformer"

var transformerFamily = translatorFamily{
	Family:  Family{Type: Transformer, Name: "transformer of attn train", Pruning: PrunedHeads, Search: bestSearch},
	network: func(c TranslatorConfig, rng *rand.Rand) trainable { return newTransformer(c, rng) },
	check: func(c TranslatorConfig) error {
		switch {
		case c.Heads == 0:
			return errors.New("heads 0, want at least 1")
		case c.Hidden < 1 || c.Hidden > maxHidden:
			return fmt.Errorf("hidden %d, want 1 to %d", c.Hidden, maxHidden)
		}
		return nil
	},
	params: func(c TranslatorConfig) int64 {
		width := int64(c.Width)
		return int64(c.Layers) * (12*width*width + 4*width*int64(c.Hidden))
	},
	layers: func(c TranslatorConfig) (names []string) {
		for i := range c.Layers {
			names = append(names, encoderName(i))
		}
		for i := range c.Layers {
			names = append(names, decoderName(i), crossName(i))
		}
		return names
	},
	matrices: func(c TranslatorConfig) (list []namedRows) {
		for i := range c.Layers { // a pruned layer may have few heads or none, so matrices of every layer are listed
			for _, layer := range []string{encoderName(i), decoderName(i), crossName(i)} {
				list = append(list, namedRows{layer + ".q.weight", len(c.Kept(layer)) * (c.Width / c.Heads)})
			}
			list = append(list, namedRows{fmt.Sprintf("encoder.%d.ff.in.weight", i), c.Hidden})
		}
		return list
	},
}

// transformer is the encoder–decoder of Vaswani et al., "Attention Is All You Need", 2017, as
// attn train makes it. Unlike the paper's, it normalises before each sublayer instead of after,
// which trains without a delicate warm-up (Xiong et al., "On Layer Normalization in the
// Transformer Architecture", 2020, https://arxiv.org/abs/2002.04745).
type transformer struct{ *encoderDecoder }

func newTransformer(c TranslatorConfig, rng *rand.Rand) transformer {
	empty := func(kind heads.Kind, table *nn.Embedding) *stack {
		z := Sizes{
			Kind: kind, Layers: c.Layers, Heads: c.Heads, Width: c.Width, Hidden: c.Hidden,
			Vocabulary: table.Weight.Dim(0),
		}.oneToOne()
		return &stack{
			sizes: z, words: table, scale: float32(math.Sqrt(float64(c.Width))), positions: &sinusoids{width: c.Width},
			dropout: c.Dropout, norm: nn.NewLayerNorm(c.Width),
		}
	}
	source, target := newEmbeddings(c, rng)
	e := &encoderDecoder{source: empty(heads.Encoder, source), target: empty(heads.Decoder, target), start: seq2seq.BOS}
	e.target.logits = &nn.Linear{Weight: target.Weight}
	add := func(s *stack, name string) *block {
		s.blocks = append(s.blocks, &block{
			selfNorm: nn.NewLayerNorm(c.Width), ffNorm: nn.NewLayerNorm(c.Width), dropout: c.Dropout,
			self: newHeads(c, name, rng),
		})
		return s.blocks[len(s.blocks)-1]
	}
	for i := range c.Layers {
		add(e.source, encoderName(i)).ff = nn.NewFeedForward(c.Width, c.Hidden, c.Dropout, rng)
	}
	for i := range c.Layers {
		b := add(e.target, decoderName(i))
		b.options.Mask, b.crossNorm, b.cross = mask.Causal(), nn.NewLayerNorm(c.Width), newHeads(c, crossName(i), rng)
		b.ff = nn.NewFeedForward(c.Width, c.Hidden, c.Dropout, rng)
	}
	return transformer{e}
}

// Operations returns the multiply-adds for one sequence outside the attention layers. encoded is the number of
// source tokens that are encoded now: source, or 0 if the state has them already.
func (m transformer) Operations(encoded, _, target float64) float64 {
	z := m.Sizes()
	width, hidden, layers := float64(z.Width), float64(z.Hidden), float64(z.Layers)
	return layers*2*width*hidden*(encoded+target) + target*width*float64(z.Decoder.Vocabulary)
}

// VectorNumbers returns the number of elements of all queries and keys, for the given numbers of source
// and target tokens.
func (m transformer) VectorNumbers(source, target int) int64 {
	z := m.Sizes()
	return 3 * int64(z.Layers) * int64(z.Width) * int64(source+target) // encoder: 2 source, decoder: 2 target, cross: both
}

// newEmbeddings returns tables for source and target whose vectors, multiplied
// by √D, have unit variance. The target's table is used twice, as embedding and
// as the last linear map: it maps unit states to unit logits.
//
// Source: Press and Wolf, "Using the Output Embedding to Improve Language
// Models", 2017, https://arxiv.org/abs/1608.05859; Vaswani et al. 2017,
// section 3.4.
func newEmbeddings(c TranslatorConfig, rng *rand.Rand) (source, target *nn.Embedding) {
	std := float32(1 / math.Sqrt(float64(c.Width)))
	return nn.NewEmbedding(c.SourceVocab, c.Width, std, rng), nn.NewEmbedding(c.TargetVocab, c.Width, std, rng)
}

// newHeads returns a multi-head layer of the network without the heads that c lists as pruned; c
// must be valid.
func newHeads(c TranslatorConfig, name string, rng *rand.Rand) *attn.MultiHead {
	size := c.Width / c.Heads
	config := attn.MultiHeadConfig{
		Name: name, Width: c.Width, Heads: len(c.Kept(name)), HeadSize: size,
		Bias: attn.AllProjections, Dropout: c.Dropout,
	}
	if config.Heads > 0 {
		config.Score = c.newScore(size, rng)
	} else {
		config.Heads = attn.NoHeads // and so no score
	}
	m, err := attn.NewMultiHead(config, rng)
	if err != nil {
		panic(err) // a valid TranslatorConfig makes a valid MultiHeadConfig
	}
	return m
}

// Params returns the parameters.
func (m transformer) Params() nn.Params {
	var parts []nn.Named
	add := func(name string, module any) { parts = append(parts, nn.Named{Name: name, Module: module.(nn.Module)}) }
	add("source", m.source.words)
	add("target", m.target.words)
	for _, s := range []struct {
		name string
		*stack
	}{{"encoder", m.source}, {"decoder", m.target}} {
		for i, b := range s.blocks {
			at, last := fmt.Sprintf("%s.%d.", s.name, i), "norm2"
			add(at+"norm1", b.selfNorm)
			add(at+"self", b.self)
			if b.cross != nil {
				add(at+"norm2", b.crossNorm)
				add(at+"cross", b.cross)
				last = "norm3"
			}
			add(at+last, b.ffNorm)
			add(at+"ff", b.ff)
		}
		add(s.name+".norm", s.norm)
	}
	return nn.Join(parts...)
}

// sinusoids are nn.Sinusoids of the given width. If halves is true, all sines are before all cosines.
type sinusoids struct {
	width  int
	halves bool

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
	table := nn.Sinusoids(nil, 0, rows, s.width)
	if s.halves {
		sines := (s.width + 1) / 2
		for n := range rows {
			row := table.Data()[n*s.width:][:s.width]
			for i, v := range slices.Clone(row) {
				row[i%2*sines+i/2] = v
			}
		}
	}
	s.table = table
	return table
}
