package bench

import (
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// prepare returns a function that does the work once, on random numbers and with
// memory that is used again. w must be complete.
func (w Work) prepare() func() {
	rng := rand.New(rand.NewPCG(1, 2))
	switch w.base() {
	case "gemm":
		a, b, c := tensor.Randn(rng, w.Lq, w.E), tensor.Randn(rng, w.E, w.Lk), tensor.Zeros(w.Lq, w.Lk)
		p := &simd.Product{
			M: w.Lq, N: w.Lk, K: w.E,
			A: simd.RowMajor(a.Data(), w.E), B: simd.RowMajor(b.Data(), w.Lk), C: simd.RowMajor(c.Data(), w.Lk),
		}
		return func() { simd.Multiply(p) }
	case "mha":
		return w.prepareLayer(rng)
	case "decode":
		return w.prepareStep(rng)
	}
	q := tensor.Randn(rng, w.B, w.H, w.Lq, w.E)
	k := tensor.Randn(rng, w.B, w.G, w.Lk, w.E)
	v := tensor.Randn(rng, w.B, w.G, w.Lk, w.V)
	o := w.options(rng)
	params := []*tensor.Tensor{q, k, v}
	if w.base() == "additive" {
		s := attn.NewAdditive(w.E, w.E, w.Width, rng)
		o.Score = s
		params = append(params, s.WQ, s.WK, s.WV)
	}
	return w.passes(rng, params, func(t *tensor.Tape) *tensor.Tensor { return attn.Attend(t, q, k, v, o).Out })
}

// prepareLayer is prepare for a multi-head layer: self-attention, unless the
// lengths differ.
func (w Work) prepareLayer(rng *rand.Rand) func() {
	m, err := attn.NewMultiHead(attn.MultiHeadConfig{
		Width: w.Width, Heads: w.H, KVHeads: w.G, HeadSize: w.E, ValueSize: w.V, Bias: attn.AllProjections,
	}, rng)
	if err != nil {
		panic(err) // Complete has seen to it
	}
	x := tensor.Randn(rng, w.B, w.Lq, w.Width)
	kv, params := x, []*tensor.Tensor{x}
	if w.Lk != w.Lq {
		kv = tensor.Randn(rng, w.B, w.Lk, w.Width)
		params = append(params, kv)
	}
	for _, p := range m.Params() {
		params = append(params, p)
	}
	o := w.options(rng)
	return w.passes(rng, params, func(t *tensor.Tape) *tensor.Tensor { return m.Forward(t, x, kv, kv, o).Out })
}

// prepareStep is prepare for a step of a decoder: its keys and values are added to those
// of a cache, Lk with them, and its queries attend to all.
func (w Work) prepareStep(rng *rand.Rand) func() {
	cache, err := attn.NewCache(attn.CacheConfig{Batch: w.B, Heads: w.G, KeySize: w.E, ValueSize: w.V, Storage: w.storage()})
	if err != nil {
		panic(err) // Complete has seen to it
	}
	before := w.Lk - w.Lq
	for at := 0; at < before; at += step { // not all at once, which would take the memory twice
		n := min(step, before-at)
		cache.Append(tensor.Randn(rng, w.B, w.G, n, w.E), tensor.Randn(rng, w.B, w.G, n, w.V), nil)
	}
	q := tensor.Randn(rng, w.B, w.H, w.Lq, w.E)
	k, v := tensor.Randn(rng, w.B, w.G, w.Lq, w.E), tensor.Randn(rng, w.B, w.G, w.Lq, w.V)
	o := w.options(rng)
	t := tensor.NewTape(tensor.Infer)
	return func() {
		t.Reset()
		cache.Truncate(before) // of the last step, whose place is written again
		cache.Append(k, v, nil)
		cache.Attend(t, q, o)
	}
}

// step is how many positions a cache is filled with at a time.
const step = 512

// passes returns the forward pass, or, for training, forward and backward with
// the gradients of params.
func (w Work) passes(rng *rand.Rand, params []*tensor.Tensor, forward func(*tensor.Tape) *tensor.Tensor) func() {
	mode := tensor.Infer
	if w.Training() || w.Dropout > 0 { // which drops only in training
		mode = tensor.Train
	}
	t := tensor.NewTape(mode)
	t.Seed(1, 0)
	if !w.Training() {
		return func() {
			t.Reset()
			forward(t)
		}
	}
	var vars nn.Vars
	for _, p := range params {
		vars = append(vars, nn.Var{Tensor: p.Param()})
	}
	dout := tensor.Randn(rng, forward(t).Shape()...)
	return func() {
		t.Reset()
		nn.ZeroGrad(vars)
		t.Backward(forward(t), dout)
	}
}

// options returns how to attend.
func (w Work) options(rng *rand.Rand) attn.Options {
	o := attn.Options{Dropout: float32(w.Dropout), Weights: w.Weights}
	switch w.Mask {
	case "padding":
		o.Mask = attn.ValidLens(w.lengths()...)
	case "bool":
		seen := make([]bool, w.B*w.Lq*w.Lk)
		for i := range seen {
			seen[i] = i%w.Lk == 0 || rng.IntN(4) > 0 // every query sees a key
		}
		o.Mask = attn.Allow(seen, w.B, 1, w.Lq, w.Lk)
	}
	if w.Causal {
		o.Mask = attn.And(o.Mask, attn.Causal())
	}
	return o
}
