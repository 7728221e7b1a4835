package models

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// rotaryDecoder is the parameters of a decoder, or of an encoder, with rotary positions, such as Llama and its successors.
// Each family sets them, and build makes the layers. Blocks are counted from 0. What differs from Llama is a value in its
// place: a function that makes a part, or the names of its tensors.
type rotaryDecoder struct {
	Sizes
	position func(block int) attn.Position // nil means that of rope, with a base of 10,000
	windows  []int                         // for each block, keys that a query attends to, 0 for all; nil for all of them

	norm        func(b *Builder, name string, width int) nn.Norm // makes a norm
	norms       blockNorms                                       // where there are norms
	normsOf     func(b *Builder, block int) blockNorms           // in place of norms, where blocks differ
	headNorms   headNorms                                        // of queries and keys, before rotation
	normNames   [3]string                                        // of those of queries, keys and the last states
	maps        Maps                                             // of attention
	attends     func(b *Builder, block int, c *attn.MultiHeadConfig, maps *Maps)
	bias        attn.Projections
	outputGate  attn.OutputGate
	score       attn.Score // nil means the dot product divided by √E
	linear      newMap     // makes a map of the feed-forward network
	activation  Activation
	feedForward func(m *rotaryDecoder, b *Builder, block int) Layer
	mixer       func(m *rotaryDecoder, b *Builder, block int) mixer // in place of attention; nil, or a nil result, means none
	beside      func(p *block, b *Builder, block int)               // adds to a block: a mixer beside attention
	branch      float32                                             // of the output of each part of a block, 0 means 1

	softCap  float32 // of the scores, 0 means none
	tied     bool    // the map to logits is the embedding matrix
	logitCap float32 // of the logits, 0 means none
	scale    float32 // of the embeddings, 0 means 1
	shrink   float32 // of the states for logits, 0 means 1
	pad      []int   // pad_token_id if config.json has none
}

// blockNorms are the names of the norms of a block: before and after attention, before and after the feed-forward network.
// There is none where the name is empty.
type blockNorms struct{ self, selfAfter, ff, ffAfter string }

var (
	normsBefore = blockNorms{self: "input_layernorm", ff: "post_attention_layernorm"}
	normsAfter  = blockNorms{selfAfter: "post_attention_layernorm", ffAfter: "post_feedforward_layernorm"}
	normsAround = blockNorms{
		self: "input_layernorm", selfAfter: "post_attention_layernorm",
		ff: "pre_feedforward_layernorm", ffAfter: "post_feedforward_layernorm",
	}
)

// headNorms are the vectors of a token that are normalised as one.
type headNorms uint8

const (
	noHeadNorms  headNorms = iota
	eachHead               // the query and the key of each head
	headsAsWhole           // the queries of all heads, and the keys of all heads
)

// newMap makes a map: Builder.Matrix or Builder.Linear.
type newMap = func(b *Builder, name string, in, out int) *nn.Linear

// biased returns what makes maps with a bias if a setting says so.
func (s *Settings) biased(key string, usual bool) newMap {
	if s.Bool(key, usual) {
		return (*Builder).Linear
	}
	return (*Builder).Matrix
}

// rmsNorm makes norms without a shift, with the eps of a setting.
func (s *Settings) rmsNorm(usual float32) func(b *Builder, name string, width int) nn.Norm {
	eps := s.Eps("rms_norm_eps", usual)
	return func(b *Builder, name string, width int) nn.Norm { return b.RMSNorm(name, width, eps) }
}

// rotarySizes reads the sizes from config.json. Non-zero sizes in usual are defaults; the default
// size of a head is the width divided by the number of heads.
func rotarySizes(b *Builder, usual Sizes) Sizes {
	s := b.Config
	oneWay(s)
	z := Sizes{
		Causal:     true,
		Layers:     b.Count("num_hidden_layers"),
		Heads:      s.sizeOr("num_attention_heads", usual.Heads),
		Width:      s.Size("hidden_size"),
		Vocabulary: s.sizeOr("vocab_size", usual.Vocabulary),
		Positions:  s.sizeOr("max_position_embeddings", usual.Positions),
	}
	if usual.Hidden >= 0 { // or else the family reads it
		z.Hidden = s.sizeOr("intermediate_size", usual.Hidden)
	}
	z.HeadSize = s.rotated("head_dim", s.SizeOr("head_dim", cmp.Or(usual.HeadSize, max(1, z.Width/z.Heads))))
	z.KVHeads = s.SizeOr("num_key_value_heads", cmp.Or(usual.KVHeads, z.Heads))
	return z
}

// rotated returns a size of heads that a setting makes, or records an error if positions cannot rotate them.
func (s *Settings) rotated(key string, size int) int {
	const largest = 1 << 16 // frequencies are computed before the shapes of tensors are checked
	if size > largest {
		s.Fail(key, "makes heads of size %d, want at most %d", size, largest)
		return 2
	}
	if size%2 != 0 { // positions rotate pairs
		s.Fail(key, "makes heads of size %d, want an even number", size)
		return size + 1
	}
	return size
}

// llamaLike returns the settings that Llama and its variants have in common.
func llamaLike(b *Builder, usual Sizes) rotaryDecoder {
	s, m := b.Config, newRotary(b, usual)
	m.norm, m.activation, m.tied = s.rmsNorm(1e-6), s.Activation("hidden_act", "silu"), s.Bool("tie_word_embeddings", false)
	return m
}

// newRotary returns the parameters that most families have in common; norm, activation and tied are not set.
func newRotary(b *Builder, usual Sizes) rotaryDecoder {
	return rotaryDecoder{
		Sizes:       rotarySizes(b, usual),
		norms:       normsBefore,
		maps:        Maps{Q: "self_attn.q_proj", K: "self_attn.k_proj", V: "self_attn.v_proj", Out: "self_attn.o_proj"},
		linear:      (*Builder).Matrix,
		normNames:   [3]string{"self_attn.q_norm", "self_attn.k_norm", "norm"},
		feedForward: (*rotaryDecoder).gated,
	}
}

// attentionBias returns which maps of attention have biases: all or none.
func (s *Settings) attentionBias(usual bool) attn.Projections {
	if s.Bool("attention_bias", usual) {
		return attn.AllProjections
	}
	return 0
}

// build makes the layers from the tensors of base, and the map to logits from those of top.
func (m *rotaryDecoder) build(base, top *Builder) Network {
	if m.position == nil {
		m.rope(base, 10000)
	}
	z := m.Sizes
	d := &stack{
		sizes:   z,
		scale:   m.scale,
		norm:    m.norm(base, m.normNames[2], z.Width),
		shrink:  m.shrink,
		softCap: m.logitCap,
	}
	d.words, d.logits = base.Words("embed_tokens", z.Vocabulary, z.Width)
	for i := range z.Layers {
		at := base.At(fmt.Sprintf("layers.%d", i))
		d.blocks = append(d.blocks, m.block(at, i))
		at.Unread(at.Name("self_attn.rotary_emb.inv_freq")) // the frequencies, which follow from the settings
	}
	if !z.Causal { // an encoder, whose family has the head
		return d
	}
	d.makeLogits(top, "lm_head", m.tied, base.Name("embed_tokens.weight"), m.pad...)
	return d
}

// block makes block number i.
func (m *rotaryDecoder) block(b *Builder, i int) *block {
	z := m.Sizes
	c := attn.MultiHeadConfig{
		Name: decoderName(i), Width: z.Width, Heads: z.Heads, KVHeads: z.KVHeads, HeadSize: z.HeadSize,
		Bias: m.bias, Score: m.score, Position: m.position(i), OutputGate: m.outputGate,
	}
	window, mask := 0, decoderMask
	if m.windows != nil {
		window = m.windows[i]
	}
	if !z.Causal {
		c.Name, mask = encoderName(i), encoderMask
		window = oddWindow(window)
	}
	norm := func(name string) Layer {
		if name == "" {
			return nil
		}
		return m.norm(b, name, z.Width)
	}
	norms := m.norms
	if m.normsOf != nil {
		norms = m.normsOf(b, i)
	}
	p := &block{window: window, options: attn.Options{Mask: mask(window), SoftCap: m.softCap}, selfNorm: norm(norms.self)}
	if m.mixer != nil {
		p.mixer = m.mixer(m, b, i)
	}
	if p.mixer == nil {
		maps := m.maps
		if m.normHeads(b, &c); m.attends != nil {
			m.attends(b, i, &c, &maps)
		}
		if !c.NormProjections { // which are over all heads together
			c = b.Kept(i, c)
		}
		p.self = b.MultiHead(c, maps)
	}
	if m.beside != nil {
		m.beside(p, b, i)
	}
	p.ff = m.feedForward(m, b, i)
	p.selfAfter, p.ffNorm, p.ffAfter = norm(norms.selfAfter), norm(norms.ff), norm(norms.ffAfter)
	if m.branch != 0 {
		scaled := Activation(func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Scale(t, x, m.branch) })
		p.selfAfter, p.ffAfter = scaled, scaled
	}
	return p
}

// normHeads adds the norms of queries and keys to a layer.
func (m *rotaryDecoder) normHeads(b *Builder, c *attn.MultiHeadConfig) {
	q, k := c.HeadSize, c.HeadSize
	switch m.headNorms {
	case noHeadNorms:
		return
	case headsAsWhole:
		q, k, c.NormProjections = q*c.Heads, k*c.KVHeads, true
	}
	c.QueryNorm, c.KeyNorm = m.norm(b, m.normNames[0], q), m.norm(b, m.normNames[1], k)
}

// gated is a feed-forward network with gates.
func (m *rotaryDecoder) gated(b *Builder, _ int) Layer {
	return newGated(b.At("mlp"), m.linear, "gate_proj", "up_proj", "down_proj", m.Width, m.Hidden, m.activation)
}

// rope gives all blocks the same rotary positions; theta is the default base.
func (m *rotaryDecoder) rope(b *Builder, theta float64) {
	m.rotate(newRotation(b.Config, m.Sizes, theta), b)
}

// rotate gives all blocks the same rotary positions.
func (m *rotaryDecoder) rotate(r rotation, b *Builder) {
	position, tokens := r.position(b.tokens)
	m.Positions, m.position = tokens, func(int) attn.Position { return position }
}

// twoRopes gives the blocks with a sliding window other rotary positions than those with full attention.
func (m *rotaryDecoder) twoRopes(b *Builder, wide Sizes, fullBase, localBase float64) {
	full, local, tokens := twoRopes(b, wide, m.Sizes, fullBase, localBase)
	m.Positions, m.position = tokens, func(i int) attn.Position {
		if m.windows[i] != 0 {
			return local
		}
		return full
	}
}

// slide gives blocks a sliding window, all of them if slides is nil.
func (m *rotaryDecoder) slide(window int, slides func(block int) bool) {
	m.windows = make([]int, m.Layers)
	for i := range m.windows {
		if slides == nil || slides(i) {
			m.windows[i] = window
		}
	}
}

// slides returns which blocks have a sliding window, according to layer_types or, if that is
// absent, to usual.
func slides(s *Settings, layers int, usual func(block int) bool) func(block int) bool {
	types := s.layerTypes(layers, nil, "full_attention", "sliding_attention")
	if types == nil {
		return usual
	}
	return func(i int) bool { return types[i] == "sliding_attention" }
}

// layerTypes returns layer_types, the kind of each layer, of which known are accepted. usual is the result if it is absent
// or invalid.
func (s *Settings) layerTypes(layers int, usual []string, known ...string) []string {
	types := s.Texts("layer_types")
	if types == nil {
		return usual
	}
	if len(types) != layers {
		s.Fail("layer_types", "has %d types, want %d, one for each layer", len(types), layers)
		return usual
	}
	for _, kind := range types {
		if !slices.Contains(known, kind) {
			s.Fail("layer_types", "has %s, want %s", quote.Text(kind), strings.Join(known, " or "))
			return usual
		}
	}
	return types
}

// null reports whether a key has the value null, which for some keys differs from an absent key.
func (s *Settings) null(key string) bool {
	v, ok := s.values[key]
	return ok && string(v) == "null"
}

// softCap returns a soft-cap: 0 (none) if the key is null, and usual if it is absent.
func (s *Settings) softCap(key string, usual float64) float32 {
	if s.null(key) {
		s.Ignore(key)
		return 0
	}
	x := s.Float(key, usual)
	if s.Has(key) && !(x >= 0x1p-126 && x <= math.MaxFloat32) { // so that its inverse is finite
		s.Fail(key, "is %v, want a positive number in the range of float32, or null", x)
		return 0
	}
	return float32(x)
}
