package models

import (
	"cmp"
	"fmt"
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// rotaryDecoder is the parameters of a decoder, or of an encoder, with rotary positions and gated feed-forward
// networks, such as Llama and its successors. Each family sets them, and build makes the layers.
// Blocks are counted from 0.
type rotaryDecoder struct {
	Sizes
	position   func(block int) attn.Position // nil means that config.json has one for all blocks
	base       float64                       // … whose default base is this one, 0 means 10,000
	window     int                           // keys that a query attends to, 0 for all
	slides     []bool                        // which blocks have the window, nil for all of them
	eps        float32                       // of the norms
	activation Activation
	tied       bool // the map to logits is the embedding matrix

	bias      attn.Projections
	ffBias    bool
	fused     bool       // the maps of queries, keys and values are one tensor, and so are the gates and what they gate
	plain     bool       // feed-forward networks have no gates
	queryNorm bool       // queries and keys are normalised before rotation
	allHeads  bool       // … all heads together
	score     attn.Score // nil means the dot product divided by √E
	softCap   float32    // of the scores, 0 means none
	logitCap  float32    // of the logits, 0 means none
	scale     float32    // of the embeddings, 0 means 1
	shrink    float32    // of the states for logits, 0 means 1
	branch    float32    // of the output of each part of a block, 0 means 1
	plusOne   bool       // norms multiply by 1 + weight
	shifted   bool       // norms are LayerNorms
	normAfter bool       // there is a norm after each part of a block
	noBefore  bool       // … and none before it
	// mixture is in the place of the feed-forward network, unless it or its result is nil.
	mixture func(b *Builder, block int) Layer
}

// rotarySizes reads the sizes from config.json. Non-zero sizes in usual are defaults; the default
// size of a head is the width divided by the number of heads.
func rotarySizes(b *Builder, usual Sizes) Sizes {
	s := b.Config
	oneWay(s)
	size := func(key string, usual int) int {
		if usual == 0 {
			return s.Size(key)
		}
		return s.SizeOr(key, usual)
	}
	z := Sizes{
		Kind:       heads.Decoder,
		Layers:     b.Count("num_hidden_layers"),
		Heads:      size("num_attention_heads", usual.Heads),
		Width:      s.Size("hidden_size"),
		Hidden:     s.Size("intermediate_size"),
		Vocabulary: size("vocab_size", usual.Vocabulary),
		Positions:  size("max_position_embeddings", usual.Positions),
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
	s := b.Config
	return rotaryDecoder{
		Sizes:      rotarySizes(b, usual),
		eps:        s.Eps("rms_norm_eps", 1e-6),
		activation: s.Activation("hidden_act", "silu"),
		tied:       s.Bool("tie_word_embeddings", false),
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
func (m rotaryDecoder) build(base, top *Builder) Network {
	if m.position == nil {
		position, tokens := rope(base, m.Sizes, cmp.Or(m.base, 10000), m.fused)
		m.position, m.Positions = func(int) attn.Position { return position }, tokens
	}
	z := m.Sizes
	d := &stack{
		sizes:   z,
		scale:   m.scale,
		norm:    m.norm(base, "norm", z.Width),
		shrink:  m.shrink,
		softCap: m.logitCap,
	}
	d.words, d.logits = base.Words("embed_tokens", z.Vocabulary, z.Width)
	for i := range z.Layers {
		at := base.At(fmt.Sprintf("layers.%d", i))
		d.blocks = append(d.blocks, m.block(at, i))
		at.Unread(at.Name("self_attn.rotary_emb.inv_freq")) // the frequencies, which follow from the settings
	}
	if z.Kind == heads.Encoder {
		d.logits = nil
		return d
	}
	d.makeLogits(top, "lm_head", m.tied, base.Name("embed_tokens.weight"))
	return d
}

// block makes block number i.
func (m rotaryDecoder) block(b *Builder, i int) *block {
	z := m.Sizes
	c := attn.MultiHeadConfig{
		Name: decoderName(i), Width: z.Width, Heads: z.Heads, KVHeads: z.KVHeads, HeadSize: z.HeadSize,
		Bias: m.bias, Score: m.score, Position: m.position(i),
	}
	if m.queryNorm {
		q, k := z.HeadSize, z.HeadSize
		if c.NormProjections = m.allHeads; m.allHeads {
			q, k = q*z.Heads, k*z.KVHeads
		}
		c.QueryNorm, c.KeyNorm = m.norm(b, "self_attn.q_norm", q), m.norm(b, "self_attn.k_norm", k)
	}
	window, mask := m.window, decoderMask
	if m.slides != nil && !m.slides[i] {
		window = 0
	}
	if z.Kind == heads.Encoder {
		c.Name, mask = encoderName(i), encoderMask
		window = oddWindow(window)
	}
	maps := Maps{Q: "self_attn.q_proj", K: "self_attn.k_proj", V: "self_attn.v_proj", Out: "self_attn.o_proj"}
	if m.fused {
		maps = Maps{QKV: "self_attn.qkv_proj", Out: maps.Out}
	}
	p := &block{window: window, options: attn.Options{Mask: mask(window), SoftCap: m.softCap}}
	if !m.noBefore {
		p.selfNorm = m.norm(b, "input_layernorm", z.Width)
	}
	p.self = b.MultiHead(b.Kept(i, c), maps)
	if m.mixture != nil {
		p.ff = m.mixture(b, i)
	}
	if p.ff == nil {
		p.ff = m.feedForward(b)
	}
	switch {
	case !m.normAfter: // despite its name, this is the norm before the feed-forward network
		p.ffNorm = m.norm(b, "post_attention_layernorm", z.Width)
	case m.noBefore:
		p.selfAfter = m.norm(b, "post_attention_layernorm", z.Width)
		p.ffAfter = m.norm(b, "post_feedforward_layernorm", z.Width)
	default:
		p.selfAfter = m.norm(b, "post_attention_layernorm", z.Width)
		p.ffNorm = m.norm(b, "pre_feedforward_layernorm", z.Width)
		p.ffAfter = m.norm(b, "post_feedforward_layernorm", z.Width)
	}
	if m.branch != 0 {
		scaled := Activation(func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Scale(t, x, m.branch) })
		p.selfAfter, p.ffAfter = scaled, scaled
	}
	return p
}

// feedForward returns the feed-forward network of a block.
func (m rotaryDecoder) feedForward(b *Builder) Layer {
	z, linear := m.Sizes, b.Matrix
	if m.ffBias {
		linear = b.Linear
	}
	if m.plain {
		return &nn.FeedForward{
			In: linear("mlp.c_fc", z.Width, z.Hidden), Activation: m.activation, Out: linear("mlp.c_proj", z.Hidden, z.Width),
		}
	}
	ff := &GatedFeedForward{Activation: m.activation}
	if m.fused {
		both := b.matrices("mlp.gate_up_proj", z.Width, z.Hidden, z.Hidden)
		ff.Gate, ff.Up = both[0], both[1]
	} else {
		ff.Gate, ff.Up = linear("mlp.gate_proj", z.Width, z.Hidden), linear("mlp.up_proj", z.Width, z.Hidden)
	}
	ff.Down = linear("mlp.down_proj", z.Hidden, z.Width)
	return ff
}

// norm returns a norm of the family's kind.
func (m rotaryDecoder) norm(b *Builder, name string, width int) nn.Norm {
	if m.shifted {
		return b.LayerNorm(name, width, m.eps)
	}
	n := b.RMSNorm(name, width, m.eps)
	if m.plusOne {
		return plusOne{n}
	}
	return n
}

// plusOne is an RMSNorm that multiplies by 1 + weight.
type plusOne struct{ *nn.RMSNorm }

// Forward normalises x.
func (n plusOne) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.RMSNorm(t, x, tensor.Shift(t, n.Weight, 1), n.Eps)
}

// twoRopes gives the blocks with a sliding window other rotary positions than those with full attention.
func (m *rotaryDecoder) twoRopes(b *Builder, fullBase, localBase float64) {
	full, local, tokens := twoRopes(b, m.Sizes, fullBase, localBase)
	slides := m.slides
	m.Positions, m.position = tokens, func(i int) attn.Position {
		if slides[i] {
			return local
		}
		return full
	}
}

// slides returns which blocks have a sliding window, according to layer_types or, if that is
// absent, to usual.
func slides(s *Settings, layers int, usual func(block int) bool) []bool {
	types, all := s.Texts("layer_types"), make([]bool, layers)
	if types != nil && len(types) != layers {
		s.Fail("layer_types", "has %d types, want %d, one for each layer", len(types), layers)
		return all
	}
	for i := range all {
		switch {
		case types == nil:
			all[i] = usual(i)
		case types[i] == "sliding_attention":
			all[i] = true
		case types[i] != "full_attention":
			s.Fail("layer_types", "has %s, want full_attention or sliding_attention", quote.Text(types[i]))
		}
	}
	return all
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
