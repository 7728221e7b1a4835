package attn_test

import (
	"errors"
	"math"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// sameAgain runs a call and fails the test unless the weights that an inspector computes again,
// when the call is over, are those that an observer is told of, to the bit.
func sameAgain(t *testing.T, o attn.Options, run func(o attn.Options)) {
	t.Helper()
	var want *tensor.Tensor
	var p attn.Parts
	o.Observe = func(_ string, w *tensor.Tensor) { want = w.Clone() }
	o.Inspect = func(_ string, told attn.Parts) { p = told }
	run(o)
	n := p.Sizes.Lq * p.Sizes.Lk
	if want.Len() != p.Sizes.B*p.Sizes.H*n || p.Held < 4*p.Sizes.G*p.Sizes.Lk {
		t.Fatalf("weights %v of sizes %+v, with %d bytes held", want.Shape(), p.Sizes, p.Held)
	}
	for z := range p.Sizes.B * p.Sizes.H {
		got := p.Weights(z/p.Sizes.H, z%p.Sizes.H)
		for i, w := range want.Data()[z*n:][:n] {
			if g := got[i]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
				t.Fatalf("weight %d of head %d of %d is %v, want %v", i, z, p.Sizes.B*p.Sizes.H, g, w)
			}
		}
	}
}

// Whatever is combined with whatever, the weights of one head computed again have the bits
// that they had among all.
func TestWeightsAgain(t *testing.T) {
	given := func(_ string, x *tensor.Tensor) *tensor.Tensor { return x }
	for seed := range seeds(3) {
		c := drawCombination(uint64(seed))
		l := drawLayerCombination(t, uint64(seed))
		t.Run(c.name, func(t *testing.T) {
			o := c.options.of(given)
			o.Score = c.score()
			c.backend.run(func() {
				sameAgain(t, o, func(o attn.Options) { attn.Attend(tensortest.Tape(tensor.Train), c.q, c.k, c.v, o) })
			})
		})
		t.Run(l.name, func(t *testing.T) {
			o := l.options.of(given)
			o.KeyLens = l.keyLens
			l.backend.run(func() {
				sameAgain(t, o, func(o attn.Options) { l.layer(nil, l.q, l.k, l.v, o) })
			})
		})
	}
	rng := newRand(7)
	q, k, v := tensor.Randn(rng, 2, 6, 5, 7), tensor.Randn(rng, 2, 3, 11, 7), tensor.Randn(rng, 2, 3, 11, 13)
	sameAgain(t, attn.Options{Score: new(attn.L1)}, func(o attn.Options) { attn.Attend(nil, q, k, v, o) })
}

// A cache goes on, and so its weights cannot be computed later; nor can those of no head.
func TestWeightsAgainRefused(t *testing.T) {
	rng := newRand(7)
	var p attn.Parts
	o := attn.Options{Inspect: func(_ string, told attn.Parts) { p = told }}
	q, k, v := tensor.Randn(rng, 2, 6, 5, 7), tensor.Randn(rng, 2, 3, 11, 7), tensor.Randn(rng, 2, 3, 11, 13)
	attn.Attend(nil, q, k, v, o)
	for _, z := range [][2]int{{2, 0}, {0, 6}, {-1, 0}, {0, -1}} {
		var wrong *tensor.ValueError
		if err := tensor.Catch(func() { p.Weights(z[0], z[1]) }); !errors.As(err, &wrong) {
			t.Errorf("head %d of sequence %d: %v", z[1], z[0], err)
		}
	}
	layer := mustMultiHead(t, attn.MultiHeadConfig{Width: 14, Heads: 2})
	cache, err := layer.NewCache(1, attn.CacheConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if layer.Extend(nil, tensor.Randn(rng, 1, 3, 14), cache, o); p.Weights != nil {
		t.Error("weights of a cache can be computed later")
	}
}
