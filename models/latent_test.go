package models_test

import (
	"math"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// A cache of latent attention stores the latent vector and the rotated part of a key for each token, whatever the heads.
func TestLatentCache(t *testing.T) {
	m, err := models.Load("testdata/decoders/deepseek_v3", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []tensor.Format{tensor.Float32, tensor.BFloat16} {
		cache, err := models.NewCache(m, 1, attn.CacheConfig{Format: f})
		if err != nil {
			t.Fatal(err)
		}
		const tokens, numbers = 16, 9 + 6 // kv_lora_rank and qk_rope_head_dim
		m.Hidden(nil, models.Batch{IDs: [][]int{make([]int, tokens)}}, models.Run{State: cache})
		for i, layer := range cache.Layers {
			if got, want := layer.Bytes(), tokens*f.Bytes(numbers); got != want {
				t.Errorf("%v: layer %d takes %d bytes, want %d", f, i, got, want)
			}
		}
	}
}

// Outputs and norms of values that an inspector gets are those of the heads, not the latent vectors.
func TestLatentParts(t *testing.T) {
	const heads, size = 4, 3
	trainable, _ := openDecoder(t, "deepseek_v3")
	dict, err := models.StateDict(trainable)
	if err != nil {
		t.Fatal(err)
	}
	var w *tensor.Tensor // [D H·V]
	for _, e := range dict {
		if e.Name == "model.layers.0.self_attn.o_proj.weight" {
			w = e.Parts[0]
		}
	}
	packed, err := models.Load(trainable.Dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*models.Model{trainable, packed} {
		seen := 0
		m.Hidden(nil, models.Batch{IDs: [][]int{{3}, {8}}}, models.Run{Inspect: func(layer string, p attn.Parts) {
			if seen++; layer != "decoder.0.self" {
				return
			}
			out, norms := p.Outputs(), p.ValueNorms() // of one token: the values
			for b := range 2 {
				for h := range heads {
					squares := 0.
					for d := range w.Dim(0) {
						sum := 0.
						for i := range size {
							sum += float64(w.At(d, h*size+i)) * float64(out.At(b, h, 0, i))
						}
						squares += sum * sum
					}
					if got, want := float64(norms.At(b, h, 0)), math.Sqrt(squares); math.Abs(got-want) > 1e-5*want {
						t.Errorf("sequence %d, head %d: norm %v, want %v", b, h, got, want)
					}
				}
			}
		}})
		if seen != 2 {
			t.Errorf("%d layers, want 2", seen)
		}
	}
}
