package attn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// Storage errors are within the documented bounds.
func TestStorageErrors(t *testing.T) {
	rng := newRand(311)
	const n, size = 97, 64
	for _, s := range storages {
		for _, scale := range []float32{1, 1e-20, 1e20} {
			c, err := attn.NewCache(attn.CacheConfig{Batch: n, Heads: 1, KeySize: 2, ValueSize: size, Storage: s.storage})
			if err != nil {
				t.Fatal(err)
			}
			v := tensor.Scale(nil, tensor.Randn(rng, n, 1, 1, size), scale)
			c.Append(tensor.Zeros(n, 1, 1, 2), v, nil)
			got := c.Attend(nil, tensor.Zeros(n, 1, 1, 2), attn.Options{}).Out.Data() // of the only key
			for b := range n {
				most, worst, relative := 0.0, 0.0, 0.0
				for i, x := range v.Data()[b*size:][:size] {
					d := math.Abs(float64(got[b*size+i]) - float64(x))
					most, worst = max(most, math.Abs(float64(x))), max(worst, d)
					relative = max(relative, d/math.Abs(float64(x)))
				}
				switch s.storage {
				case tensor.Float32:
					if worst > 0 {
						t.Errorf("float32: an error of %v", worst)
					}
				case tensor.Float16:
					switch {
					case most > 65504:
						if !math.IsInf(worst, 1) && worst < most {
							t.Errorf("float16: %v of at most %v is finite", worst, most)
						}
					case scale == 1 && worst > 0x1p-25 && relative > 0x1p-11 || worst > max(0x1p-25, most*0x1p-11):
						t.Errorf("float16: an error of %v, %v of the element", worst, relative)
					}
				case tensor.BFloat16:
					if relative > 0x1p-8 {
						t.Errorf("bfloat16: an error of %v of the element", relative)
					}
				case tensor.Int8:
					if worst > most/254*(1+1e-5) {
						t.Errorf("int8: an error of %v of the largest element", worst/most)
					}
				}
			}
		}
	}
}

func TestCacheErrors(t *testing.T) {
	good := attn.CacheConfig{Batch: 2, Heads: 3, KeySize: 5, ValueSize: 7, Capacity: 11}
	for _, c := range []struct {
		want  string
		spoil func(*attn.CacheConfig)
	}{
		{`attn: NewCache: batch -1, want at least 0`, func(c *attn.CacheConfig) { c.Batch = -1 }},
		{`attn: NewCache: heads 0, want at least 1`, func(c *attn.CacheConfig) { c.Heads = 0 }},
		{`attn: NewCache: key size 0, want at least 1`, func(c *attn.CacheConfig) { c.KeySize = 0 }},
		{`attn: NewCache: storage is Numbers\(9\), want float32, float16, bfloat16, int8`, func(c *attn.CacheConfig) { c.Storage = 9 }},
		{`attn: NewCache: capacity -3, want at least 0`, func(c *attn.CacheConfig) { c.Capacity = -3 }},
		{`attn: NewCache: capacity 1048577 takes 4\.4e\+12 bytes, want at most .*`, func(c *attn.CacheConfig) {
			c.Batch, c.Heads, c.KeySize, c.ValueSize, c.Capacity = 1, 1<<10, 512, 512, 1<<20+1 // 4 TiB and 4 MiB
		}},
		{`attn: NewCache: 4 sinks without a window, want 0: a cache without a window keeps all keys`, func(c *attn.CacheConfig) { c.Sinks = 4 }},
	} {
		config := good
		c.spoil(&config)
		_, err := attn.NewCache(config)
		wantError(t, err, c.want)
	}
	_, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1 << 10, KeySize: 512, Capacity: 1 << 30, Window: 5})
	if err != nil { // its memory depends on the window
		t.Error(err)
	}
	_, err = mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3}).NewCache(2, attn.CacheConfig{KeySize: 5})
	wantError(t, err, `attn: NewCache: key size 5, want 0 or 4`)
	layer := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, Score: &score.Cosine{}})
	_, err = layer.NewCache(2, attn.CacheConfig{Score: score.NewAdditive(4, 4, 3, newRand(1))})
	wantError(t, err, `attn: NewCache: score has type \*score.Additive, want nil or the layer's score`)
	_, err = attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: 5, Score: score.NewAdditive(4, 4, 3, newRand(1))})
	wantError(t, err, `attn: .*key.*`)
	_, err = attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: 5, Score: score.OnKeys(nil, &score.Cosine{}, shaped(1, 1, 3, 5))})
	wantError(t, err, `attn: NewCache: score is bound to the keys of one call by OnKeys, want one that also applies to keys appended later`)
	mapped, err := attn.NewCache(attn.CacheConfig{Batch: 1, Heads: 1, KeySize: 5, Score: &score.Cosine{}})
	if err != nil {
		t.Fatal(err)
	}

	plain := mustCache(t, mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3}), 2, attn.CacheConfig{})
	c, err := attn.NewCache(good)
	if err != nil {
		t.Fatal(err)
	}
	k, v, q := shaped(2, 3, 8, 5), shaped(2, 3, 8, 7), shaped(2, 6, 1, 5)
	c.Append(k, v, nil)
	for _, f := range []struct {
		want string
		f    func()
	}{
		{`attn: Append: key has shape \[2 3 8 7\], want \[B=2 G=3 L E=5\]`, func() { c.Append(v, v, nil) }},
		{`attn: Append: value has shape \[2 3 8 5\], want \[B=2 G=3 L=8 V=7\]`, func() { c.Append(k, k, nil) }},
		{`attn: Append: value is nil, want a tensor`, func() { c.Append(k, nil, nil) }},
		{`attn: Append: cache has 16 keys, want at most its capacity of 11`, func() { c.Append(k, v, nil) }},
		{`attn: Append: lengths has 1 values, want one for each of B=2 sequences`, func() { c.Append(k, v, []int{1}) }},
		{`attn: Append: lengths has 9 positions, want 0 to L=8`, func() { c.Append(k, v, []int{1, 9}) }},
		{`attn: Select: sequence is 2, want 0 to 1`, func() { c.Select([]int{0, 2}) }},
		{`attn: Truncate: lengths has 3 values, want one, or one for each of B=2 sequences`, func() { c.Truncate(1, 2, 3) }},
		{`attn: Truncate: sequence 1 has length 9, want 0, or 0 to 8`, func() { c.Truncate(8, 9) }},
		{`attn: Attend: query has shape \[2 4 1 5\], want \[B=2 H Lq E\] with H a multiple of G=3`, func() { c.Attend(nil, shaped(2, 4, 1, 5), attn.Options{}) }},
		{`attn: Attend: query has head size 7, want E=5`, func() { c.Attend(nil, shaped(2, 6, 1, 7), attn.Options{}) }},
		{`attn: Attend: tape is one that records, .*`, func() { c.Attend(tensortest.Tape(tensor.Train), q, attn.Options{}) }},
		{`attn: Attend: key lengths is given, .*`, func() { c.Attend(nil, q, attn.Options{KeyLens: []int{1, 1}}) }},
		{`attn: Attend: score is a \*score.Cosine, want nil: the cache uses the score of its CacheConfig`, func() {
			mapped.Attend(nil, shaped(1, 1, 1, 5), attn.Options{Score: &score.Cosine{}})
		}},
		{`attn: Attend: bias is one that depends on the keys, want none: the cache stores keys that its score has mapped`, func() {
			mapped.Attend(nil, shaped(1, 1, 1, 5), attn.Options{Changes: position.TransformerXLBias(shaped(3, 5), shaped(1, 5), shaped(1, 5))})
		}},
		{`attn: MultiHead: cache is one that stores keys for a score of type <nil>, want one from this layer's NewCache`, func() {
			layer.Extend(nil, shaped(2, 1, 12), plain, attn.Options{})
		}},
		{`attn: Attend: mask has valid length 9, want 0 to Lk=8`, func() { c.Attend(nil, q, attn.Options{Mask: mask.Lengths(9, 9)}) }},
	} {
		wantError(t, tensor.Catch(f.f), f.want)
		if !slices.Equal(c.Lens(), []int{8, 8}) {
			t.Fatalf("after %q the lengths are %v", f.want, c.Lens())
		}
	}
	c.Append(tensor.Slice(nil, k, 2, 0, 3), tensor.Slice(nil, v, 2, 0, 3), nil)
	if !slices.Equal(c.Lens(), []int{11, 11}) {
		t.Errorf("a cache filled to its capacity of 11 has lengths %v", c.Lens())
	}
}

// A cache takes the documented memory, and a fork takes no additional memory until it grows.
func TestCacheBytes(t *testing.T) {
	for _, s := range storages {
		c, err := attn.NewCache(attn.CacheConfig{Batch: 2, Heads: 3, KeySize: 64, ValueSize: 128, Storage: s.storage, Capacity: 1024})
		if err != nil {
			t.Fatal(err)
		}
		each := 3 * (s.storage.Bytes(64) + s.storage.Bytes(128))
		if got, want := c.Bytes(), 2*1024*each; got != want {
			t.Errorf("%s: %d bytes, want %d", s.name, got, want)
		}
		c.Append(tensor.Zeros(2, 3, 520, 64), tensor.Zeros(2, 3, 520, 128), nil)
		if got := c.Select([]int{1, 1, 1}).Bytes(); got != 1024*each {
			t.Errorf("%s: three forks of a sequence take %d bytes, want %d", s.name, got, 1024*each)
		}
	}
}
