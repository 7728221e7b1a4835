package attn_test

import (
	"fmt"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// layers are configurations whose queries are computed in different ways.
func layers(t *testing.T) map[string]*attn.MultiHead {
	return map[string]*attn.MultiHead{
		"scaled dot": mustMultiHead(t, attn.MultiHeadConfig{Width: 24, Heads: 3, Bias: attn.AllProjections}),
		"grouped":    mustMultiHead(t, attn.MultiHeadConfig{Width: 24, Heads: 6, KVHeads: 2}),
		"additive": mustMultiHead(t, attn.MultiHeadConfig{
			Width: 24, Heads: 3, Score: score.NewAdditive(8, 8, 5, newRand(3)),
		}),
		"gaussian": mustMultiHead(t, attn.MultiHeadConfig{Width: 24, Heads: 3, Score: &score.Gaussian{W: tensor.Full(0.7, 1)}}),
	}
}

// A sequence has the same result alone and in a batch with a longer one of any length, although
// few queries with many keys are computed in a different way than many queries.
func TestLongerSequencesChangeNothing(t *testing.T) {
	rng := newRand(211)
	const keys = 600
	for name, m := range layers(t) {
		for _, n := range []struct{ alone, beside int }{{40, 60}, {8, 17}, {1, 49}} {
			q, kv := tensor.Randn(rng, 1, n.alone, 24), tensor.Randn(rng, 1, keys, 24)
			alone := m.Forward(nil, q, kv, kv, attn.Options{Weights: true})

			longer := tensor.Randn(rng, 1, n.beside, 24)
			padded := tensor.Concat(nil, 1, q, tensor.Randn(rng, 1, n.beside-n.alone, 24))
			more := tensor.Concat(nil, 1, kv, tensor.Randn(rng, 1, 13, 24))
			both := m.Forward(nil, tensor.Concat(nil, 0, padded, longer),
				tensor.Concat(nil, 0, more, tensor.Randn(rng, 1, keys+13, 24)),
				tensor.Concat(nil, 0, more, tensor.Randn(rng, 1, keys+13, 24)),
				attn.Options{Weights: true, Mask: mask.Lengths(keys, keys+13)})
			// In the second sequence, values differ from keys; in the first, they are equal.
			what := fmt.Sprintf("%s, %d queries beside %d", name, n.alone, n.beside)
			first := pick(pick(both.Out, 0, 0, 1), 1, 0, n.alone)
			tensortest.Same(t, what+": out", first.Data(), alone.Out.Data())
			weights := pick(pick(pick(both.Weights, 0, 0, 1), 2, 0, n.alone), 3, 0, keys)
			tensortest.Same(t, what+": weights", weights.Data(), alone.Weights.Data())
		}
	}
}

// A decoder with cached keys and values computes, step by step, the result for all positions at
// once, also with more keys than a block has.
func TestLongDecoding(t *testing.T) {
	const length, steps = 1031, 5
	rng := newRand(223)
	for name, m := range layers(t) {
		x := tensor.Randn(rng, 2, length, 24)
		want := m.Forward(nil, x, x, x, attn.Options{Mask: mask.Causal()}).Out
		cache := mustCache(t, m, 2, attn.CacheConfig{})
		m.Extend(nil, pick(x, 1, 0, length-steps), cache, attn.Options{Mask: mask.Causal()})
		for i := length - steps; i < length; i++ {
			y := m.Extend(nil, pick(x, 1, i, i+1), cache, attn.Options{Mask: mask.Causal()})
			tensortest.Same(t, fmt.Sprint(name, ", position ", i), y.Out.Data(), pick(want, 1, i, i+1).Data())
		}
	}
}
