package models

import (
	"cmp"
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// diffLlamaFamily is Llama with differential attention. Two heads of its settings are a head here.
//
// Source: Ye et al., "Differential Transformer", 2024, https://arxiv.org/abs/2410.05258; DiffLlamaAttention of transformers.
var diffLlamaFamily = Family{Type: "diffllama", Name: "DiffLlama", New: newDiffLlama, Harmless: []string{"lambda_std_dev"}}

func newDiffLlama(b *Builder) Network {
	s := b.Config
	m := llamaLike(b, Sizes{})
	m.norm = s.rmsNorm(1e-5)
	m.rope(b, 10000)
	if m.KVHeads%2 != 0 || m.Heads%m.KVHeads != 0 {
		s.Fail("num_key_value_heads", "is %d, want an even number that divides num_attention_heads, which is %d", m.KVHeads, m.Heads)
		return new(stack)
	}
	m.Heads, m.KVHeads, m.HeadSize = m.Heads/2, m.KVHeads/2, 2*m.HeadSize
	bias, eps := s.attentionBias(false) != 0, s.Eps("rms_norm_eps", 1e-5)
	m.mixer = func(m *rotaryDecoder, b *Builder, i int) mixer {
		at, all := b.At("self_attn"), m.Heads*m.HeadSize
		d := &differential{m.Sizes, decoderName(i), nil, nil, m.position(i), nil, float32(0.8 - float64(0.6*math.Exp(-0.3*float64(i)))), eps, b.attentionFormat()}
		d.in = []*nn.Linear{
			at.joined("q_proj", bias, m.Width, all)[0], at.joined("k_proj", bias, m.Width, m.KVHeads*m.HeadSize)[0],
			at.joined("v_proj", bias, m.Width, m.KVHeads*m.HeadSize)[0],
		}
		d.out = at.joined("o_proj", bias, all, m.Width)[0]
		for _, name := range []string{"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"} {
			d.lambdas = append(d.lambdas, at.Tensor(name, m.HeadSize/2))
		}
		return d
	}
	return m.build(b.Within("model"), b)
}

// differential mixes tokens with the difference of two softmaxes. Its head h is made from heads h and h + H of the maps:
//
//	w   = softmax(q_h·k_g/√E) − λ·softmax(q_(h+H)·k_(g+G)/√E)    the weights of observers, which are signed
//	out = (1 − λ₀)·norm(w·[v_g v_(g+G)])
//	λ   = e^(λ_q1·λ_k1) − e^(λ_q2·λ_k2) + λ₀,    λ₀ = 0.8 − 0.6·e^(−0.3·layer)
//
// One call of attention computes both softmaxes: its keys are [k_g k_(g+G)], its queries [q_h 0] and [0 q_(h+H)].
type differential struct {
	sizes    Sizes // HeadSize is 2E
	name     string
	in       []*nn.Linear // of queries, keys and values
	out      *nn.Linear
	position attn.Position
	lambdas  []*tensor.Tensor // [E]: λ_q1, λ_k1, λ_q2 and λ_k2
	initial  float32          // λ₀
	eps      float32
	format   tensor.Format
}

func (*differential) kind() string { return "differential_attention" }

// Heads describes the heads.
func (d *differential) Heads() attn.LayerHeads {
	z := d.sizes
	return attn.LayerHeads{Name: d.name, Heads: z.Heads, KeyHeads: z.KVHeads, Group: z.Heads / z.KVHeads, Signed: true, Fused: true, Out: d.out, Vectors: (2*z.Heads + z.KVHeads) * z.HeadSize}
}

func (d *differential) mix(t *tensor.Tape, h *tensor.Tensor, r *Run, kept LayerCache, lens []int) *tensor.Tensor {
	b, l, e, g, share := h.Dim(0), h.Dim(1), d.sizes.HeadSize/2, d.sizes.KVHeads, d.sizes.Heads/d.sizes.KVHeads
	var at attn.Positions
	if kept != nil {
		at.Offsets = kept.Lens()
	}
	in := nn.Linears(t, h, d.in...)
	// halves returns the first and the second half of the heads, each [B 1 G n·L E].
	halves := func(x *tensor.Tensor, heads int, of attn.Projections) (one, two *tensor.Tensor) {
		x = tensor.Transpose(t, tensor.Reshape(t, x, b, l, 2*heads, e), 0, 2, 1, 3)
		if of != attn.Value {
			x = attn.ApplyPosition(t, d.position, x, of, at)
		}
		x = tensor.Reshape(t, x, b, 2, g, heads/g*l, e)
		return tensor.Slice(t, x, 1, 0, 1), tensor.Slice(t, x, 1, 1, 2)
	}
	paired := func(one, two *tensor.Tensor) *tensor.Tensor {
		return tensor.Reshape(t, tensor.Concat(t, 4, one, two), b, g, l, 2*e)
	}
	q1, q2 := halves(in[0], d.sizes.Heads, attn.Query)
	none := tensor.Zeros(q1.Shape()...)
	q := tensor.Concat(t, 1, tensor.Concat(t, 4, q1, none), tensor.Concat(t, 4, none, q2))
	q = tensor.Reshape(t, tensor.Transpose(t, q, 0, 2, 1, 3, 4), b, 2*d.sizes.Heads, l, 2*e)
	k, v := paired(halves(in[1], g, attn.Key)), paired(halves(in[2], g, attn.Value))

	var p attn.Parts
	o := attn.Options{Mask: r.mask(decoderMask(0), d.name), QueryLens: lens, Score: score.DotScale(float32(1 / math.Sqrt(float64(e)))), Layer: d.name, Format: d.format}
	if r.Observers != nil || r.Inspect != nil {
		o.Inspect = func(_ string, of attn.Parts) { p = of }
	}
	var read attn.Output
	if kept == nil {
		o.KeyLens = lens
		read = attn.Attend(t, q, k, v, o)
	} else {
		cache := kept.(CacheOf[*attn.Cache]).Cache
		cache.Append(k, v, lens)
		read = cache.Attend(t, q, o)
	}
	half := func(x *tensor.Tensor, n int) *tensor.Tensor { // of [B 2H L 2E]
		x = tensor.Slice(t, tensor.Reshape(t, x, b, g, 2, share, l, 2*e), 2, n, n+1)
		return tensor.Reshape(t, x, b, d.sizes.Heads, l, 2*e)
	}
	exp := func(a, b *tensor.Tensor) *tensor.Tensor { return tensor.Exp(t, tensor.Sum(t, tensor.Mul(t, a, b))) }
	lambda := tensor.Shift(t, tensor.Sub(t, exp(d.lambdas[0], d.lambdas[1]), exp(d.lambdas[2], d.lambdas[3])), d.initial)
	x, y := half(read.Out, 0), half(read.Out, 1)
	x = tensor.Sub(t, x, tensor.Mul(t, y, tensor.BroadcastTo(t, tensor.Reshape(t, lambda, 1, 1, 1, 1), y.Shape()...)))
	x = tensor.RMSNorm(t, x, tensor.Shift(nil, tensor.Zeros(2*e), 1-d.initial), d.eps)
	if edit := r.edits(d.name).Outputs; edit != nil {
		x = edit(t, x)
	}
	if o.Inspect != nil {
		d.observe(r, p, x, lambda.Data()[0])
	}
	if gates := r.gates(d.name); gates != nil {
		x = attn.GateHeads(t, x, gates)
	}
	return d.out.Forward(t, tensor.Reshape(t, tensor.Transpose(t, x, 0, 2, 1, 3), b, l, d.sizes.Heads*2*e))
}

// observe calls the observers and Inspect of a run. p are the parts of the call with 2·H heads, x the outputs of the heads.
func (d *differential) observe(r *Run, p attn.Parts, x *tensor.Tensor, lambda float32) {
	share := d.sizes.Heads / d.sizes.KVHeads
	first := func(h int) int { return h + h/share*share }
	s, weights, norms := p.Sizes, p.Weights, p.ValueNorms
	s.H, s.Signed = d.sizes.Heads, true
	p = attn.Parts{Sizes: s, RetainedBytes: p.RetainedBytes, Outputs: func() *tensor.Tensor { return x }}
	p.Weights = func(b, h int) []float32 {
		one, two := weights(b, first(h)), weights(b, first(h)+share)
		for i := range one {
			one[i] -= float32(lambda * two[i])
		}
		return one
	}
	p.ValueNorms = func() *tensor.Tensor {
		all := tensor.Reshape(nil, norms(), s.B, d.sizes.KVHeads, 2, share*s.Lk)
		return tensor.Reshape(nil, tensor.Slice(nil, all, 2, 0, 1), s.B, s.H, s.Lk)
	}
	for _, o := range r.Observers {
		o.Begin(s)
		for n := range s.B * s.H {
			b, h := n/s.H, n%s.H
			rows := p.Weights(b, h)
			for i := range s.Lq {
				o.Row(attn.Row{Batch: b, Head: h, Query: i, Position: i + s.Offset(b)}, rows[i*s.Lk:][:s.Lk])
			}
		}
		if e, ok := o.(interface{ End() }); ok {
			e.End()
		}
	}
	if r.Inspect != nil {
		r.Inspect(d.name, p)
	}
}

func (d *differential) newCache(batch int, c attn.CacheConfig) (LayerCache, error) {
	c.Batch, c.Heads, c.KeySize, c.ValueSize, c.Format = batch, d.sizes.KVHeads, d.sizes.HeadSize, d.sizes.HeadSize, cmp.Or(c.Format, d.format)
	return keysAndValues(attn.NewCache(c))
}
