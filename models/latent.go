package models

import (
	"cmp"
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// latentAttention is multi-head latent attention: keys and values of all heads are maps of one vector c of a token, and the
// keys have a rotated part r in common.
//
//	c, r  = norm(x·W_c), rope(x·W_r)
//	q, p  = x·W_q, p rotated                        of each head
//	score = scale·(q·(W_k·c) + p·r)    = scale·[W_kᵀ·q, p]·[c, r]
//	out   = W_o·(Σ weights·(W_v·c))    = W_o·W_v·(Σ weights·c)
//
// The right sides are computed, so that all heads share one head of keys, [c, r], whose first elements are its values: a
// cache stores R+P numbers of a token, and a step reads no others. Whole sequences are computed in the same way, to have
// the bits of steps, although a head then multiplies 2R+P numbers for a pair of tokens, in place of N+P+V.
//
// Source: DeepSeek-AI, "DeepSeek-V2", 2024, https://arxiv.org/abs/2405.04434, section 2.1 and appendix C.
type latentAttention struct {
	latentSizes
	options      attn.Options
	position     attn.Position
	query        Layer          // to q and p of each head
	down         []*nn.Linear   // to c and r
	norm         Layer          // of c
	keys, values *tensor.Tensor // W_k [H·N R] and W_v [H·V R]
	out          *nn.Linear
}

// latentSizes are the sizes of heads H, of c, of the parts of a query, and of a value.
type latentSizes struct{ heads, rank, plain, rotary, value int }

func (*latentAttention) kind() string { return "latent_attention" }

// Heads describes the heads.
func (m *latentAttention) Heads() attn.LayerHeads {
	return attn.LayerHeads{Name: m.options.Layer, Heads: m.heads, KeyHeads: 1, Group: 1, Fused: true, Out: m.out, Vectors: (m.heads + 1) * (m.rank + m.rotary)}
}

func (m *latentAttention) mix(t *tensor.Tape, h *tensor.Tensor, r *Run, kept LayerCache, lens []int) *tensor.Tensor {
	b, l := h.Dim(0), h.Dim(1)
	o := r.options(m.options, m.options.Layer, lens)
	if inspect := o.Inspect; inspect != nil {
		o.Inspect = func(layer string, p attn.Parts) { inspect(layer, m.parts(p)) }
	}
	edit := o.Edits.Outputs
	o.Edits.Outputs = nil
	cache, cached := kept.(CacheOf[*attn.Cache])
	var at attn.Positions
	if cached {
		at.Offsets = cache.Lens()
	}
	in := nn.Linears(t, h, m.down...)
	c := tensor.Reshape(t, m.norm.Forward(t, in[0]), b, 1, l, m.rank)
	k := tensor.Concat(t, 3, c, attn.ApplyPosition(t, m.position, tensor.Reshape(t, in[1], b, 1, l, m.rotary), attn.Key, at))

	both := tensor.Transpose(t, tensor.Reshape(t, m.query.Forward(t, h), b*l, m.heads, m.plain+m.rotary), 1, 0, 2)
	perHead := func(x *tensor.Tensor) *tensor.Tensor { // [B H L …] of [H B·L …]
		return tensor.Transpose(t, tensor.Reshape(t, x, m.heads, b, l, x.Dim(2)), 1, 0, 2, 3)
	}
	absorbed := tensor.MatMul(t, tensor.Slice(t, both, 2, 0, m.plain), tensor.Reshape(t, m.keys, m.heads, m.plain, m.rank))
	p := perHead(tensor.Slice(t, both, 2, m.plain, m.plain+m.rotary))
	q := tensor.Concat(t, 3, perHead(absorbed), attn.ApplyPosition(t, m.position, p, attn.Query, at))

	var y *tensor.Tensor
	if cached {
		cache.Cache.Append(k, nil, lens)
		y = cache.Cache.Attend(t, q, o).Out
	} else {
		y = attn.Attend(t, q, k, c, o).Out
	}
	if y = m.expand(t, y); edit != nil {
		y = edit(t, y)
	}
	return m.out.Forward(t, tensor.Reshape(t, tensor.Transpose(t, y, 0, 2, 1, 3), b, l, m.heads*m.value))
}

// expand returns W_v times the vectors c of each head. Shapes: c [B H L R], out [B H L V].
func (m *latentAttention) expand(t *tensor.Tape, c *tensor.Tensor) *tensor.Tensor {
	b, l := c.Dim(0), c.Dim(2)
	c = tensor.Reshape(t, tensor.Transpose(t, c, 1, 0, 2, 3), m.heads, b*l, m.rank)
	y := tensor.MatMulT(t, c, tensor.Reshape(t, m.values, m.heads, m.value, m.rank))
	return tensor.Transpose(t, tensor.Reshape(t, y, m.heads, b, l, m.value), 1, 0, 2, 3)
}

// parts returns the parts of a call with the outputs and the values of this layer in place of those of Attend, which are
// vectors c.
func (m *latentAttention) parts(p attn.Parts) attn.Parts {
	outputs, k := p.Outputs, p.Keys
	p.Outputs = func() *tensor.Tensor { return m.expand(nil, outputs()) }
	p.ValueNorms = func() *tensor.Tensor {
		b, l, w := k.Dim(0), k.Dim(2), m.out.Weight
		if w == nil {
			w = m.out.Packed.Rows(nil, stats.Numbers(m.out.Packed.Shape()[0]))
		}
		v := tensor.MatMulT(nil, tensor.Reshape(nil, tensor.Slice(nil, k, 3, 0, m.rank), b*l, m.rank), m.values)
		perHead := func(x *tensor.Tensor) *tensor.Tensor { // [H N V] of [N H·V]
			return tensor.Transpose(nil, tensor.Reshape(nil, x, x.Dim(0), m.heads, m.value), 1, 0, 2)
		}
		norms := tensor.Sqrt(nil, tensor.SumAxis(nil, tensor.Square(nil, tensor.MatMulT(nil, perHead(v), perHead(w))), 2))
		return tensor.Transpose(nil, tensor.Reshape(nil, norms, m.heads, b, l), 1, 0, 2)
	}
	return p
}

func (m *latentAttention) newCache(batch int, c attn.CacheConfig) (LayerCache, error) {
	c.Batch, c.Heads, c.KeySize, c.ValueSize, c.Shared = batch, 1, m.rank+m.rotary, m.rank, true
	c.Format = cmp.Or(c.Format, m.options.Format)
	return keysAndValues(attn.NewCache(c))
}

// latentDecoder returns the settings of a decoder with latent attention in all blocks. usual and z have the defaults;
// without a default size of values, they are as wide as heads of equal parts. rank is the default of q_lora_rank, the size
// of a vector between x and the queries; null means that there is none.
func latentDecoder(b *Builder, usual Sizes, z latentSizes, rank int, pairs position.Pairing) rotaryDecoder {
	const eps = 1e-6 // of the norms between maps, whatever rms_norm_eps is
	s := b.Config
	z.rank, z.plain = s.SizeOr("kv_lora_rank", z.rank), s.SizeOr("qk_nope_head_dim", z.plain)
	z.rotary = s.rotated("qk_rope_head_dim", s.SizeOr("qk_rope_head_dim", z.rotary))
	s.Only("head_dim", z.rotary)
	usual.HeadSize = z.rotary
	m := llamaLike(b, usual)
	z.heads, z.value = m.Heads, s.SizeOr("v_head_dim", cmp.Or(z.value, max(1, m.Width/m.Heads)))
	if rank = s.SizeOr("q_lora_rank", rank); s.null("q_lora_rank") {
		rank = 0
	}
	s.Only("qk_head_dim", z.plain+z.rotary)
	if n := s.SizeOr("num_key_value_heads", m.Heads); n != m.Heads {
		s.Fail("num_key_value_heads", "is %d, want %d, as num_attention_heads, or none", n, m.Heads)
	}
	r := newRotation(s, m.Sizes, 10000)
	r.pairs = pairs
	m.rotate(r, b)
	m.HeadSize, m.KVHeads = z.plain+z.rotary, m.Heads
	scale := 1 / math.Sqrt(float64(m.HeadSize))
	if y := r.scaling; y != nil && y.Text("rope_type", y.Text("type", "")) == "yarn" && r.factor() > 1 {
		x := float64(0.1*y.Float("mscale_all_dim", 0)*math.Log(r.factor())) + 1 // yarn_apply_mscale of transformers
		if scale *= x * x; !(scale <= 1e30) {
			y.Fail("mscale_all_dim", "makes scores %v times as large, want at most 1e30", scale)
			scale = 1
		}
	}
	o := attn.Options{Mask: decoderMask(0), Score: score.DotScale(float32(scale))}
	if b.format == tensor.BFloat16 || b.format == tensor.Int8 {
		o.Format = tensor.BFloat16
	}
	biased, bias := s.biased("attention_bias", false), s.Bool("attention_bias", false)
	m.mixer = func(m *rotaryDecoder, b *Builder, i int) mixer {
		b = b.At("self_attn")
		o.Layer = decoderName(i)
		layer := &latentAttention{
			latentSizes: z, options: o, position: m.position(i),
			down: b.joined("kv_a_proj_with_mqa", bias, m.Width, z.rank, z.rotary),
			norm: b.RMSNorm("kv_a_layernorm", z.rank, eps), out: biased(b, "o_proj", z.heads*z.value, m.Width),
		}
		if queries := z.heads * m.HeadSize; rank == 0 {
			layer.query = b.Matrix("q_proj", m.Width, queries)
		} else {
			layer.query = inTurn{
				biased(b, "q_a_proj", m.Width, rank), b.RMSNorm("q_a_layernorm", rank, eps), b.Matrix("q_b_proj", rank, queries),
			}
		}
		if name := "kv_b_proj.weight"; b.want(name, z.heads*(z.plain+z.value), z.rank) && !b.plan {
			layer.keys, layer.values = tensor.Zeros(z.heads*z.plain, z.rank).Param(), tensor.Zeros(z.heads*z.value, z.rank).Param()
			b.entry(name, false, layer.keys, layer.values)
			b.dict[len(b.dict)-1].Interleaved = z.heads
		}
		return layer
	}
	return m
}

// miniCPM3Family is MiniCPM3: latent attention, with factors of the embeddings, of the parts of blocks and of the last
// states.
//
// Source: Hu et al., "MiniCPM", 2024, https://arxiv.org/abs/2404.06395; MiniCPM3Model of transformers.
var miniCPM3Family = Family{
	Type: "minicpm3", Name: "MiniCPM3", New: newMiniCPM3,
	Harmless: []string{"pretraining_tp"},
	Code:     []string{"MiniCPM3Model", "MiniCPM3ForCausalLM", "MiniCPM3ForSequenceClassification"},
}

func newMiniCPM3(b *Builder) Network {
	s := b.Config
	usual := Sizes{Hidden: 6400, Vocabulary: 73448, Positions: 32768}
	m := latentDecoder(b, usual, latentSizes{rank: 256, plain: 64, rotary: 32}, 768, position.HalfPairs)
	m.norm, m.tied = s.rmsNorm(1e-5), s.Bool("tie_word_embeddings", true)
	m.linear = s.biased("mlp_bias", false)
	m.scale, m.branch = float32(s.multiplier("scale_emb", 12)), 1
	if depth := s.multiplier("scale_depth", 1.4); !s.null("scale_depth") {
		m.branch = float32(depth / math.Sqrt(float64(m.Layers)))
	}
	if base := s.multiplier("dim_model_base", 256); !s.null("dim_model_base") {
		m.shrink = float32(base / float64(m.Width))
	}
	return m.build(b.Within("model"), b)
}
