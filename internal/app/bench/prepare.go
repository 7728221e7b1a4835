package bench

import (
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// Prepare returns a function that does the work once on random numbers, with memory that is
// reused. w must be complete.
func (w Work) Prepare() func() {
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
	case "linear":
		return w.prepareLinear(rng)
	case "decode":
		return w.prepareStep(rng)
	case "generate":
		return w.prepareGeneration(rng)
	case "read":
		return reading(int(w.CacheBytes()))
	}
	q := tensor.Randn(rng, w.B, w.H, w.Lq, w.E)
	k := tensor.Randn(rng, w.B, w.G, w.Lk, w.E)
	v := tensor.Randn(rng, w.B, w.G, w.Lk, w.V)
	o := w.options(rng)
	params := []*tensor.Tensor{q, k, v}
	switch w.base() {
	case "additive":
		s := score.NewAdditive(w.E, w.E, w.Width, rng)
		o.Score = s
		params = append(params, s.WQ, s.WK, s.WV)
	case "gaussian":
		factors := tensor.Randn(rng, w.E)
		for i, x := range factors.Data() {
			factors.Data()[i] = (1 + 0.1*x) / float32(math.Sqrt(float64(w.E)))
		}
		o.Score = &score.Gaussian{W: factors}
		params = append(params, factors)
	}
	return w.passes(rng, params, func(t *tensor.Tape) *tensor.Tensor { return attn.Attend(t, q, k, v, o).Out })
}

// prepareLayer is Prepare for a multi-head layer. It is self-attention unless the lengths
// differ.
func (w Work) prepareLayer(rng *rand.Rand) func() {
	c := attn.MultiHeadConfig{
		Width: w.Width, Heads: w.H, KVHeads: w.G, HeadSize: w.E, ValueSize: w.V, Bias: attn.AllProjections,
	}
	for _, x := range w.extras() {
		if x.layer != nil {
			x.layer(&c)
		}
	}
	m, err := attn.NewMultiHead(c, rng)
	if err != nil {
		panic(err) // Complete has checked it
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

// prepareLinear is Prepare for linear attention.
func (w Work) prepareLinear(rng *rand.Rand) func() {
	q, k := tensor.Randn(rng, w.B, w.H, w.Lq, w.E), linear.Unit(nil, tensor.Randn(rng, w.B, w.G, w.Lq, w.E))
	v := tensor.Randn(rng, w.B, w.G, w.Lq, w.V)
	params := []*tensor.Tensor{q, k, v}
	var o linear.Options
	if w.gated() {
		shape := map[string][]int{"head": {w.G}, "token": {w.B, w.G, w.Lq}, "element": {w.B, w.G, w.Lq, w.E}}[w.Decay]
		o.Decay = tensor.Uniform(rng, -0.2, 0, shape...)
		params = append(params, o.Decay)
	}
	if w.erases() {
		o.Beta = tensor.Uniform(rng, 0, 1, w.B, w.G, w.Lq)
		params = append(params, o.Beta)
	}
	return w.passes(rng, params, func(t *tensor.Tape) *tensor.Tensor { return linear.Attend(t, q, k, v, o).Out })
}

// newCache returns an empty cache.
func (w Work) newCache() *attn.Cache {
	cache, err := attn.NewCache(attn.CacheConfig{Batch: w.B, Heads: w.G, KeySize: w.E, ValueSize: w.V, Format: w.Storage})
	if err != nil {
		panic(err) // Complete has checked it
	}
	return cache
}

// fill appends n random positions in steps, since a single call would need twice the memory.
func (w Work) fill(cache *attn.Cache, n int, rng *rand.Rand) {
	for at := 0; at < n; at += step {
		n := min(step, n-at)
		cache.Append(tensor.Randn(rng, w.B, w.G, n, w.E), tensor.Randn(rng, w.B, w.G, n, w.V), nil)
	}
}

// prepareStep is Prepare for a decoder's step: it appends the step's keys and values to a cache,
// which then has Lk of them, and its queries attend to all. A fixed cache contains them
// already.
func (w Work) prepareStep(rng *rand.Rand) func() {
	cache := w.newCache()
	before := w.Lk - w.Lq
	w.fill(cache, before, rng)
	q := tensor.Randn(rng, w.B, w.H, w.Lq, w.E)
	k, v := tensor.Randn(rng, w.B, w.G, w.Lq, w.E), tensor.Randn(rng, w.B, w.G, w.Lq, w.V)
	o := w.options(rng)
	t := tensor.NewTape(tensor.Infer)
	t.SetFormat(w.format())
	if w.fixed() {
		cache.Append(k, v, nil)
		return func() {
			t.Reset()
			cache.Attend(t, q, o)
		}
	}
	return func() {
		t.Reset()
		cache.Truncate(before) // remove the last step, so that it is written again
		cache.Append(k, v, nil)
		cache.Attend(t, q, o)
	}
}

// prepareGeneration is Prepare for Lk steps of one token, starting with an empty cache; with a fixed
// cache, it only attends to as many keys as these steps do.
func (w Work) prepareGeneration(rng *rand.Rand) func() {
	q := tensor.Randn(rng, w.B, w.H, 1, w.E)
	k, v := tensor.Randn(rng, w.B, w.G, 1, w.E), tensor.Randn(rng, w.B, w.G, 1, w.V)
	t := tensor.NewTape(tensor.Infer)
	if w.fixed() {
		full := w.newCache()
		w.fill(full, w.Lk, rng)
		return func() {
			cache := full.Fork()
			for n := w.Lk; n > 0; n-- {
				t.Reset()
				cache.Truncate(n)
				cache.Attend(t, q, attn.Options{})
			}
		}
	}
	return func() {
		cache := w.newCache()
		for range w.Lk {
			t.Reset()
			cache.Append(k, v, nil)
			cache.Attend(t, q, attn.Options{})
		}
	}
}

// reading returns a function that reads the given number of bytes on all threads, in many
// pieces that are long enough for the overhead of distributing them.
func reading(bytes int) func() {
	floats := make([]float32, bytes/4)
	for i := range floats {
		floats[i] = 1 // unwritten memory may be a single page of zeros
	}
	const piece = 1 << 16
	return func() { par.For(len(floats), piece, func(lo, hi int) { sink(simd.Sum(floats[lo:hi])) }) }
}

// sink prevents the compiler from removing the computation of x.
//
//go:noinline
func sink(float32) {}

// step is the number of positions that are appended to a cache at a time.
const step = 512

// passes returns the forward pass or, for training, the forward and backward passes with the
// gradients of params.
func (w Work) passes(rng *rand.Rand, params []*tensor.Tensor, forward func(*tensor.Tape) *tensor.Tensor) func() {
	mode := tensor.Infer
	if w.Training() || w.Dropout > 0 { // dropout is active only in training
		mode = tensor.Train
	}
	t := tensor.NewTape(mode)
	t.SetFormat(w.format())
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
		optim.ZeroGrad(vars)
		t.Backward(forward(t), dout)
	}
}

// options returns the options of the attention.
func (w Work) options(rng *rand.Rand) attn.Options {
	o := attn.Options{Dropout: float32(w.Dropout), Weights: w.Weights}
	if m := findMask(w.Mask); m.mask != nil {
		o.Mask = m.mask(w, rng)
	}
	if w.Causal {
		o.Mask = attn.And(o.Mask, mask.Causal())
	}
	for _, x := range w.extras() {
		if x.options != nil {
			x.options(w, &o)
		}
	}
	return o
}
