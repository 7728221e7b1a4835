package attn_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// Padding after the keys of a call changes no bit, because the extra keys come first.
func TestExtraKeysAndPadding(t *testing.T) {
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 24, Heads: 6, KVHeads: 2, BiasKV: true, ZeroKV: true, Sinks: true})
	rng := newRand(367)
	q, k := tensor.Randn(rng, 2, 5, 24), tensor.Randn(rng, 2, 1100, 24)
	for _, n := range []int{0, 7, 509, 510, 511, 512, 600} {
		short := pick(k, 1, 0, n)
		want := m.Forward(nil, q, short, short, attn.Options{LogSumExp: true})
		got := m.Forward(nil, q, k, k, attn.Options{Mask: mask.Lengths(n, n), LogSumExp: true})
		tensortest.Same(t, fmt.Sprint("out of ", n), got.Out.Data(), want.Out.Data())
		tensortest.Same(t, fmt.Sprint("log-sum-exp of ", n), got.LogSumExp.Data(), want.LogSumExp.Data())
		got = m.Forward(nil, q, k, k, attn.Options{KeyLens: []int{n, n}})
		tensortest.Same(t, fmt.Sprint("out of lengths ", n), got.Out.Data(), want.Out.Data())
	}
}

// Requesting weights or using more threads changes no bit.
func TestExtraKeysAndWeights(t *testing.T) {
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 24, Heads: 6, BiasKV: true})
	x := tensor.Randn(newRand(373), 3, 70, 24)
	o := attn.Options{Mask: mask.Window(5, 0)}
	want := m.Forward(nil, x, x, x, o).Out
	o.Weights = true
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	y := m.Forward(nil, x, x, x, o)
	tensortest.Same(t, "out", y.Out.Data(), want.Data())
	each(y.Weights, func(b, h, i, j int, w *float32) {
		if (*w > 0) != (j <= i && j >= i-5) {
			t.Fatalf("query %d attends to key %d with weight %v", i, j, *w)
		}
	})
}

// If all scores are below the range of float32, the query attends to the nearest key, which may
// be an extra key.
func TestExtraKeysFarAway(t *testing.T) {
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 1, Heads: 1, BiasKV: true, Score: &score.Gaussian{}})
	for _, x := range []*tensor.Tensor{m.Q.Weight, m.K.Weight, m.V.Weight, m.Out.Weight} {
		x.Data()[0] = 1
	}
	m.BiasK.Data()[0], m.BiasV.Data()[0] = 3e25, 7
	q, k := tensor.New([]float32{9e25, 2.9e25, 1.1e25}, 1, 3, 1), tensor.New([]float32{1e25, 2e25, 8e25}, 1, 3, 1)
	v := tensor.New([]float32{1, 2, 3}, 1, 3, 1)
	out := m.Forward(nil, q, k, v, attn.Options{}).Out.Data()
	tensortest.Same(t, "out", out, []float32{3, 7, 1})
}

func TestExtraKeysRefused(t *testing.T) {
	plain := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3})
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, ZeroKV: true})
	_, err := m.NewCache(2, attn.CacheConfig{})
	wantError(t, err, `attn: NewCache: a layer with BiasKV or ZeroKV cannot use a cache, want a layer without them`)
	x := tensor.Zeros(2, 5, 12)
	wantError(t, tensor.Catch(func() { m.Extend(nil, x, mustCache(t, plain, 2, attn.CacheConfig{}), attn.Options{}) }),
		`attn: MultiHead: cache is for a layer with BiasKV or ZeroKV, want a layer without them`)
	wantError(t, tensor.Catch(func() { m.Query(nil, x, plain.Project(nil, x, x), attn.Options{}) }),
		`attn: MultiHead: kv is from a layer with different BiasKV or ZeroKV, want one from Project of this layer`)
	wantError(t, tensor.Catch(func() { m.Forward(nil, x, x, x, attn.Options{Mask: mask.Lengths(6, 1)}) }),
		`attn: MultiHead: mask has valid length 6, want 0 to Lk=5`)
	if n := m.Project(nil, x, x).Len(); n != 5 {
		t.Errorf("%d keys, want 5", n)
	}
}
