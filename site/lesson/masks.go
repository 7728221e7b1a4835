package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

func init() {
	handle("masks.build", masksBuild)
	handle("masks.layouts", masksLayouts)
	handle("masks.cache", masksCache)
}

// hidden returns the cells of a mask that no query may see, [B Lq Lk].
func hidden(m attn.Mask, s attn.Sizes) []bool {
	s.H, s.G = 1, 1
	list := m.Array(s)
	for i := range list {
		list[i] = !list[i]
	}
	return list
}

// masking describes a mask and a relative position. A part that is nil is off.
type masking struct {
	Length    int      `json:"length"`
	Causal    bool     `json:"causal"`
	Window    *[2]int  `json:"window"`    // left, right
	Valid     *int     `json:"valid"`     // the length of the sequence without padding
	Documents []int    `json:"documents"` // where documents end
	Prefix    *int     `json:"prefix"`
	ALiBi     *float32 `json:"alibi"` // slope
	T5        bool     `json:"t5"`
	Random    bool     `json:"random"` // random queries and keys; otherwise all scores are 0 before the position
	Seed      uint64   `json:"seed"`
}

// masksBuild returns the weights of one head under masks and a relative position, and the Go
// expression of the mask.
func masksBuild(_ context.Context, a masking, _ func(any)) (any, error) {
	if a.Length < 1 || a.Length > 64 {
		return nil, fmt.Errorf("length %d, want 1 to 64", a.Length)
	}
	const size, buckets = 8, 8
	var masks []attn.Mask
	var code []string
	add := func(m attn.Mask, format string, values ...any) {
		masks, code = append(masks, m), append(code, fmt.Sprintf(format, values...))
	}
	if a.Prefix != nil { // contains the causal mask
		add(mask.Prefix(*a.Prefix), "mask.Prefix(%d)", *a.Prefix)
	} else if a.Causal {
		add(mask.Causal(), "mask.Causal()")
	}
	if w := a.Window; w != nil {
		add(mask.Window(w[0], w[1]), "mask.Window(%d, %d)", w[0], w[1])
	}
	if a.Documents != nil {
		ends := strings.Trim(strings.ReplaceAll(fmt.Sprint(a.Documents), " ", ", "), "[]")
		add(mask.Documents(a.Documents), "mask.Documents([]int{%s})", ends)
	}
	if a.Valid != nil {
		add(mask.Lengths(*a.Valid), "mask.Lengths(%d)", *a.Valid)
	}
	o := attn.Options{Mask: attn.And(masks...), Score: score.ScaledDot(), Weights: true}
	expression := strings.Join(code, ", ")
	if len(code) > 1 {
		expression = "attn.And(" + expression + ")"
	}
	rng := rand.New(rand.NewPCG(a.Seed, 5))
	table := tensor.Randn(rng, buckets, 1)
	q, k := tensor.Zeros(1, a.Length, size), tensor.Zeros(1, a.Length, size)
	if a.Random {
		q, k = tensor.Randn(rng, 1, a.Length, size), tensor.Randn(rng, 1, a.Length, size)
	}
	change, scoring := "", ""
	switch {
	case a.ALiBi != nil:
		o.Changes, change = []attn.ScoreChange{position.ALiBi(*a.ALiBi)}, fmt.Sprintf("position.ALiBi(%g)", *a.ALiBi)
	case a.T5:
		config := position.T5Config{Causal: a.Causal || a.Prefix != nil, MaxDistance: 16}
		o.Score, scoring = score.Dot(), "score.Dot()" // T5 does not scale
		o.Changes = []attn.ScoreChange{position.T5Bias(table, config)}
		change = fmt.Sprintf("position.T5Bias(table, position.T5Config{Causal: %v, MaxDistance: 16})", config.Causal)
	}
	out := attn.Attend(nil, q, k, k, o)
	scores := o
	scores.Mask, scores.Weights = attn.Mask{}, false
	return map[string]any{
		"weights": reals(out.Weights.Data()),
		"scores":  reals(attn.Scores(nil, q, k, scores).Data()),
		"hidden":  hidden(o.Mask, attn.Sizes{B: 1, Lq: a.Length, Lk: a.Length}),
		"mask":    expression,
		"change":  change,
		"score":   scoring,
	}, nil
}

// inMemory is one layout of a batch: for each vector in memory order, its sequence and position.
type inMemory struct {
	Shape   []int    `json:"shape"`
	Vectors [][2]int `json:"vectors"`
	Weights reals    `json:"weights"` // [B L L]
}

// masksLayouts runs one layer on the same batch in both layouts.
func masksLayouts(_ context.Context, a struct {
	Batch  int    `json:"batch"`
	Length int    `json:"length"`
	Seed   uint64 `json:"seed"`
}, _ func(any)) (any, error) {
	if a.Batch < 1 || a.Batch > 8 || a.Length < 1 || a.Length > 16 {
		return nil, fmt.Errorf("%d sequences of %d vectors, want at most 8 of 16", a.Batch, a.Length)
	}
	const width = 8
	var list []inMemory
	var outs [2]*tensor.Tensor
	x := tensor.Randn(rand.New(rand.NewPCG(a.Seed, 3)), a.Batch, a.Length, width)
	for which, layout := range []attn.Layout{attn.BatchFirst, attn.SequenceFirst} {
		config := attn.MultiHeadConfig{Width: width, Heads: 1, Layout: layout}
		layer, err := attn.NewMultiHead(config, rand.New(rand.NewPCG(a.Seed, 4)))
		if err != nil {
			return nil, err
		}
		in, m := x, inMemory{}
		if layout == attn.SequenceFirst {
			in = tensor.Transpose(nil, x, 1, 0, 2)
		}
		out := layer.Forward(nil, in, in, in, attn.Options{Mask: mask.Causal(), Weights: true})
		m.Shape, m.Weights = in.Shape(), out.Weights.Data()
		for i := range a.Batch * a.Length {
			if layout == attn.SequenceFirst {
				m.Vectors = append(m.Vectors, [2]int{i % a.Batch, i / a.Batch})
			} else {
				m.Vectors = append(m.Vectors, [2]int{i / a.Length, i % a.Length})
			}
		}
		outs[which] = out.Out
		list = append(list, m)
	}
	difference := 0.0
	back := tensor.Transpose(nil, outs[1], 1, 0, 2)
	for i, v := range outs[0].Data() {
		difference = max(difference, math.Abs(float64(v)-float64(back.Data()[i])))
	}
	return map[string]any{"layouts": list, "difference": real(difference)}, nil
}

// masksCache runs steps of a decoder with a cache, and compares them with the whole sequence under
// a causal mask.
func masksCache(_ context.Context, a struct {
	Steps int    `json:"steps"`
	Seed  uint64 `json:"seed"`
}, _ func(any)) (any, error) {
	const width, most = 8, 64
	if a.Steps < 1 || a.Steps > most {
		return nil, fmt.Errorf("%d steps, want 1 to %d", a.Steps, most)
	}
	rng := rand.New(rand.NewPCG(a.Seed, 6))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: width, Heads: 1}, rng)
	if err != nil {
		return nil, err
	}
	cache, err := layer.NewCache(1, attn.CacheConfig{})
	if err != nil {
		return nil, err
	}
	tokens := tensor.Randn(rng, 1, most, width)
	o := attn.Options{Mask: mask.Causal(), Weights: true}
	whole := tensor.Slice(nil, tokens, 1, 0, a.Steps)
	reference := layer.Forward(nil, whole, whole, whole, o)
	weights, same := make(reals, a.Steps*a.Steps), true
	for i := range a.Steps {
		y := layer.Extend(nil, tensor.Slice(nil, tokens, 1, i, i+1), cache, o)
		copy(weights[i*a.Steps:], y.Weights.Data())
		for j, v := range y.Out.Data() {
			same = same && math.Float32bits(v) == math.Float32bits(reference.Out.At(0, i, j))
		}
	}
	return map[string]any{
		"weights": weights,
		"hidden":  hidden(o.Mask, attn.Sizes{B: 1, Lq: a.Steps, Lk: a.Steps}),
		"same":    same,
		// Scores computed so far: with the cache one row a step, without it a triangle a step.
		"with":    a.Steps * (a.Steps + 1) / 2,
		"without": a.Steps * (a.Steps + 1) * (a.Steps + 2) / 6,
	}, nil
}
