package attn_test

import (
	"fmt"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// BenchmarkAttend measures typical shapes: sentences of a translator, a block of a language
// model, and a single step of a decoder. On a reused tape a call allocates almost nothing.
func BenchmarkAttend(b *testing.B) {
	for _, c := range []struct {
		name         string
		b, h, g      int
		lq, lk, e, v int
		o            attn.Options
	}{
		{"sentences", 32, 8, 8, 24, 24, 32, 32, attn.Options{Mask: mask.Lengths(lengths(32, 24)...)}},
		{"block", 1, 8, 8, 512, 512, 64, 64, attn.Options{Mask: mask.Causal()}},
		{"step", 8, 8, 2, 1, 512, 64, 64, attn.Options{Mask: mask.Causal()}},
		{"additive", 32, 1, 1, 24, 24, 64, 64, attn.Options{
			Score: score.NewAdditive(64, 64, 64, newRand(1)), Mask: mask.Lengths(lengths(32, 24)...),
		}},
		{"gaussian", 32, 1, 1, 24, 24, 64, 64, attn.Options{Score: &score.Gaussian{W: tensor.Full(0.1, 1).Param()}}},
	} {
		rng := newRand(1)
		q := tensor.Randn(rng, c.b, c.h, c.lq, c.e).Param()
		k := tensor.Randn(rng, c.b, c.g, c.lk, c.e).Param()
		v := tensor.Randn(rng, c.b, c.g, c.lk, c.v).Param()
		b.Run(c.name, func(b *testing.B) {
			forward := func(t *tensor.Tape) *tensor.Tensor { return attn.Attend(t, q, k, v, c.o).Out }
			measure(b, forward)
		})
	}
}

func BenchmarkMultiHead(b *testing.B) {
	for _, c := range []struct {
		name   string
		config attn.MultiHeadConfig
		b, l   int
	}{
		{"translator", attn.MultiHeadConfig{Width: 256, Heads: 8, Bias: attn.AllProjections, Dropout: 0.1}, 32, 24},
		{"course", attn.MultiHeadConfig{Width: 100, Heads: 5, Dropout: 0.5}, 2, 6},
		{"block", attn.MultiHeadConfig{Width: 512, Heads: 8, KVHeads: 2}, 1, 256},
	} {
		m := mustMultiHead(b, c.config)
		x := tensor.Randn(newRand(1), c.b, c.l, c.config.Width).Param()
		o := attn.Options{Mask: mask.Causal()}
		b.Run(c.name, func(b *testing.B) {
			measure(b, func(t *tensor.Tape) *tensor.Tensor {
				optim.ZeroGrad(m)
				return m.Forward(t, x, x, x, o).Out
			})
		})
	}
}

// measure runs f forward alone and with its backward pass.
func measure(b *testing.B, f func(*tensor.Tape) *tensor.Tensor) {
	b.Run("forward", func(b *testing.B) {
		t := tensor.NewTape(tensor.Infer)
		f(t) // allocates the memory of the tape
		b.ReportAllocs()
		for b.Loop() {
			t.Reset()
			f(t)
		}
	})
	b.Run("training", func(b *testing.B) {
		t := tensor.NewTape(tensor.Train)
		t.Seed(1, 0)
		y := f(t)
		dout := tensor.Randn(newRand(2), y.Shape()...)
		t.Backward(y, dout)
		b.ReportAllocs()
		for b.Loop() {
			t.Reset()
			t.Backward(f(t), dout)
		}
	})
}

// lengths returns n lengths from most/2 to most.
func lengths(n, most int) []int {
	lens := make([]int, n)
	for i := range lens {
		lens[i] = most - i*most/(2*n)
	}
	return lens
}

// BenchmarkDecode measures a step of a decoder for several cache lengths. The step appends its
// token to the cache, or attends to existing keys only.
func BenchmarkDecode(b *testing.B) {
	const h, g, e = 32, 8, 128
	for _, s := range storages {
		for _, keys := range []int{1, 64, 512, 2048, 8192} {
			rng := newRand(1)
			cache, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: g, KeySize: e, Format: s.storage})
			if err != nil {
				b.Fatal(err)
			}
			for at := 0; at < keys-1; at += 512 {
				n := min(512, keys-1-at)
				cache.Append(tensor.Randn(rng, 1, g, n, e), tensor.Randn(rng, 1, g, n, e), nil)
			}
			q, kv := tensor.Randn(rng, 1, h, 1, e), tensor.Randn(rng, 1, g, 1, e)
			tape, o := tensor.NewTape(tensor.Infer), attn.Options{Mask: mask.Causal()}
			step := func(b *testing.B, add bool) {
				b.ReportAllocs()
				for b.Loop() {
					tape.Reset()
					if add {
						cache.Truncate(keys - 1)
						cache.Append(kv, kv, nil)
					}
					cache.Attend(tape, q, o)
				}
				b.ReportMetric(float64(b.N)*float64(keys*g*2*s.storage.Bytes(e))/b.Elapsed().Seconds()/1e9, "GB/s")
			}
			cache.Append(kv, kv, nil)
			b.Run(fmt.Sprintf("%s/%d/fixed", s.name, keys), func(b *testing.B) { step(b, false) })
			b.Run(fmt.Sprintf("%s/%d/append", s.name, keys), func(b *testing.B) { step(b, true) })
		}
	}
}

// BenchmarkGenerate measures all steps of a decoder from its first token on, with a growing
// cache, and the same queries over existing caches of the same lengths.
func BenchmarkGenerate(b *testing.B) {
	const h, g, e = 32, 8, 128
	for _, s := range storages {
		for _, tokens := range []int{16, 64, 512, 2048} {
			rng := newRand(1)
			q, kv := tensor.Randn(rng, 1, h, 1, e), tensor.Randn(rng, 1, g, 1, e)
			tape, o := tensor.NewTape(tensor.Infer), attn.Options{Mask: mask.Causal()}
			config := attn.CacheConfig{Batch: 1, Heads: g, KeySize: e, Format: s.storage}
			b.Run(fmt.Sprintf("%s/%d/append", s.name, tokens), func(b *testing.B) {
				for b.Loop() {
					cache, err := attn.NewCache(config)
					if err != nil {
						b.Fatal(err)
					}
					for range tokens {
						tape.Reset()
						cache.Append(kv, kv, nil)
						cache.Attend(tape, q, o)
					}
				}
			})
			full, err := attn.NewCache(config)
			if err != nil {
				b.Fatal(err)
			}
			for range tokens {
				full.Append(kv, kv, nil)
			}
			b.Run(fmt.Sprintf("%s/%d/fixed", s.name, tokens), func(b *testing.B) {
				for b.Loop() {
					cache := full.Fork()
					for n := tokens; n > 0; n-- {
						tape.Reset()
						cache.Truncate(n)
						cache.Attend(tape, q, o)
					}
				}
			})
		}
	}
}

// BenchmarkLatent measures a step with the shape of MiniCPM3-4B: latent attention with one head of shared keys and values,
// and the same with keys and values of all heads.
func BenchmarkLatent(b *testing.B) {
	for _, keys := range []int{1024, 4096} {
		for name, c := range map[string]attn.CacheConfig{
			"latent":   {Batch: 1, Heads: 1, KeySize: 256 + 32, ValueSize: 256, Shared: true},
			"expanded": {Batch: 1, Heads: 40, KeySize: 64 + 32, ValueSize: 64},
		} {
			cache, err := attn.NewCache(c)
			if err != nil {
				b.Fatal(err)
			}
			rng := newRand(1)
			for range keys / 512 {
				k, v := tensor.Randn(rng, 1, c.Heads, 512, c.KeySize), tensor.Randn(rng, 1, c.Heads, 512, c.ValueSize)
				if c.Shared {
					v = nil
				}
				cache.Append(k, v, nil)
			}
			q, tape := tensor.Randn(rng, 1, 40, 1, c.KeySize), tensor.NewTape(tensor.Infer)
			b.Run(fmt.Sprintf("%s/%d", name, keys), func(b *testing.B) {
				for b.Loop() {
					tape.Reset()
					cache.Attend(tape, q, attn.Options{})
				}
				b.ReportMetric(float64(cache.Bytes()/keys), "B/token")
			})
		}
	}
}
