package attn_test

import (
	"errors"
	"math"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// toldCall records a call of attention: the weights that an observer receives, and the parts that
// an inspector receives.
type toldCall struct {
	weights *tensor.Tensor
	parts   attn.Parts
}

// watch adds observers to o that fill w.
func (w *toldCall) watch(o attn.Options) attn.Options {
	o.Observers = append(o.Observers, observe.Weights(func(_ string, x *tensor.Tensor) { w.weights = x }))
	o.Inspect = func(_ string, p attn.Parts) { w.parts = p }
	return o
}

// same fails the test unless the weights recomputed after the call are equal to the observed
// weights, bit for bit.
func (w *toldCall) same(t *testing.T) {
	t.Helper()
	p := w.parts
	n := p.Sizes.Lq * p.Sizes.Lk
	if w.weights.Len() != p.Sizes.B*p.Sizes.H*n || p.RetainedBytes <= 0 {
		t.Fatalf("weights %v of sizes %+v, with %d bytes held", w.weights.Shape(), p.Sizes, p.RetainedBytes)
	}
	for z := range p.Sizes.B * p.Sizes.H {
		got := p.Weights(z/p.Sizes.H, z%p.Sizes.H)
		for i, want := range w.weights.Data()[z*n:][:n] {
			if g := got[i]; math.Float32bits(g) != math.Float32bits(want) && (g == g || want == want) {
				t.Fatalf("weight %d of head %d of %d is %v, want %v", i, z, p.Sizes.B*p.Sizes.H, g, want)
			}
		}
	}
}

// sameAgain runs a call and compares recomputed weights with the returned weights.
func sameAgain(t *testing.T, o attn.Options, run func(o attn.Options)) {
	t.Helper()
	var w toldCall
	run(w.watch(o))
	w.same(t)
}

// For any combination of features, the recomputed weights of one head have the same bits as in
// the call.
func TestWeightsAgain(t *testing.T) {
	given := func(_ string, x *tensor.Tensor) *tensor.Tensor { return x }
	for seed := range seeds(3) {
		c := drawCombination(uint64(seed))
		l := drawLayerCombination(t, uint64(seed))
		t.Run(c.name, func(t *testing.T) {
			o := c.options.options(given)
			o.Score = c.score()
			c.backend.run(func() {
				sameAgain(t, o, func(o attn.Options) { attn.Attend(tensortest.Tape(tensor.Train), c.q, c.k, c.v, o) })
			})
		})
		t.Run(l.name, func(t *testing.T) {
			o := l.options.options(given)
			o.KeyLens = l.keyLens
			l.backend.run(func() {
				sameAgain(t, o, func(o attn.Options) { l.layer(nil, l.q, l.k, l.v, o) })
			})
		})
	}
	rng := newRand(7)
	q, k, v := tensor.Randn(rng, 2, 6, 5, 7), tensor.Randn(rng, 2, 3, 11, 7), tensor.Randn(rng, 2, 3, 11, 13)
	sameAgain(t, attn.Options{Score: new(score.L1)}, func(o attn.Options) { attn.Attend(nil, q, k, v, o) })
}

// After a cache has grown, recomputed weights are still the weights of the earlier step.
func TestWeightsAgainOfCache(t *testing.T) {
	for name, c := range map[string]attn.CacheConfig{
		"float32": {}, "int8": {Storage: tensor.Int8}, "window": {Window: 5, Sinks: 1}, "long": {},
	} {
		rng := newRand(7)
		layer := mustMultiHead(t, attn.MultiHeadConfig{Width: 22, Heads: 6, KVHeads: 3, HeadSize: 7})
		cache, err := layer.NewCache(2, c)
		if err != nil {
			t.Fatal(err)
		}
		lens := []int{7, 1, 1, 3, 1, 9}
		if name == "long" { // beyond the end of a page
			lens = []int{509, 1, 5, 2}
		}
		steps := make([]toldCall, len(lens))
		for i, n := range lens {
			layer.Extend(nil, tensor.Randn(rng, 2, n, 22), cache, steps[i].watch(attn.Options{Mask: mask.Causal()}))
			if want := 4 * 2 * n * (6*7 + 2*3*7); steps[i].parts.RetainedBytes < want {
				t.Errorf("%s: %d bytes are held of %d positions, want at least %d", name, steps[i].parts.RetainedBytes, n, want)
			}
		}
		for i := range steps {
			steps[i].same(t)
		}
	}
}

// A head that does not exist is rejected.
func TestWeightsAgainRefused(t *testing.T) {
	rng := newRand(7)
	var p attn.Parts
	q, k, v := tensor.Randn(rng, 2, 6, 5, 7), tensor.Randn(rng, 2, 3, 11, 7), tensor.Randn(rng, 2, 3, 11, 13)
	attn.Attend(nil, q, k, v, attn.Options{Inspect: func(_ string, told attn.Parts) { p = told }})
	for _, z := range [][2]int{{2, 0}, {0, 6}, {-1, 0}, {0, -1}} {
		var wrong *tensor.ValueError
		if err := tensor.Catch(func() { p.Weights(z[0], z[1]) }); !errors.As(err, &wrong) {
			t.Errorf("head %d of sequence %d: %v", z[1], z[0], err)
		}
	}
}
