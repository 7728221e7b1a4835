package models

import (
	"math"

	"github.com/attn-go/attn"
)

// ministral3Family is Ministral 3: Mistral with YaRN, whose queries grow with their position.
//
// Source: Mistral AI, "Introducing Mistral 3", 2025, https://mistral.ai/news/mistral-3; Ministral3Attention of transformers.
var ministral3Family = Family{Type: "ministral3", Name: "Ministral 3", New: newMinistral3, Pruning: HeadCounts}

func newMinistral3(b *Builder) Network {
	m := ministral3(b)
	return m.build(b.Within("model"), b)
}

// ministral3 returns the settings of Ministral 3, in files with and without images.
func ministral3(b *Builder) rotaryDecoder {
	s := b.Config
	m := llamaLike(b, Sizes{Hidden: 14336, Vocabulary: 131072, Heads: 32, KVHeads: 8, HeadSize: 128, Positions: 262144})
	m.norm, m.pad = s.rmsNorm(1e-5), []int{11}
	m.slide(s.SizeOr("sliding_window", 0), nil)
	m.rope(b, 10000)
	const beta, every = "llama_4_scaling_beta", "original_max_position_embeddings"
	rope := s.Part("rope_parameters")
	if rope == nil || !rope.Has(beta) || !rope.Has(every) {
		s.Fail("rope_parameters", "is missing, want %s and %s in it", beta, every)
		return m
	}
	rope.Ignore("max_position_embeddings")
	rotate, growth := m.position, growing{beta: rope.Float(beta, 0), every: float64(rope.SizeOr(every, 1))}
	if !(math.Abs(growth.beta) <= 100) {
		rope.Fail(beta, "is %v, want -100 to 100", growth.beta)
	}
	m.position = func(i int) attn.Position { return growing{rotate(i), growth.beta, growth.every} }
	return m
}

// growing is a position that also multiplies the queries at position p by 1 + β·ln(1 + ⌊p/every⌋).
//
// Source: get_llama_4_attn_scale of transformers.
type growing struct {
	attn.Position
	beta, every float64
}

// scaled returns a vector times the factor of its position, if it is a query.
func (g growing) scaled(x []float32, p int, of attn.Projections) []float32 {
	if of != attn.Query {
		return x
	}
	y, factor := make([]float32, len(x)), float32(1+float64(g.beta*math.Log1p(math.Floor(float64(p)/g.every))))
	for i, v := range x {
		y[i] = factor * v
	}
	return y
}

func (g growing) Apply(dst, x []float32, p int, of attn.Projections) {
	g.Position.Apply(dst, g.scaled(x, p, of), p, of)
}

func (g growing) Back(dx, dy []float32, p int, of attn.Projections) {
	g.Position.Back(dx, g.scaled(dy, p, of), p, of)
}
