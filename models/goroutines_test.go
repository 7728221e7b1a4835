package models_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/tensor"
)

// TestGoroutines: several goroutines use an embedder and a model at the same time. The race detector checks their
// memory, this test their results.
func TestGoroutines(t *testing.T) {
	e, err := models.LoadEmbedder("testdata/sentence_mean", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.Load("testdata/decoders/llama3", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	texts := slices.Repeat([]string{"the cat sat on the mat.", "who?"}, 20)
	prompt, g := []int{10, 25, 8, 14, 6, 13}, models.Generation{Tokens: 6, Ends: []int{}}
	vectors, err := e.Embed(t.Context(), texts...)
	if err != nil {
		t.Fatal(err)
	}
	tokens := generate(t, m, prompt, g)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if y, err := e.Embed(t.Context(), texts...); err != nil || !slices.Equal(y.Data(), vectors.Data()) {
				t.Errorf("Embed: %v, or other vectors", err)
			}
		})
		all.Go(func() {
			if next, err := m.Generate(t.Context(), prompt, g); err != nil || !slices.Equal(slices.Collect(next), tokens) {
				t.Errorf("Generate: %v, or other tokens", err)
			}
		})
		all.Go(func() {
			s, err := m.NewSession(attn.CacheConfig{})
			if err != nil {
				t.Error(err)
				return
			}
			if next, err := s.Generate(t.Context(), prompt, g); err != nil || !slices.Equal(slices.Collect(next), tokens) {
				t.Errorf("Session: %v, or other tokens", err)
			}
		})
		all.Go(func() {
			if _, err := probe.RecordTexts(t.Context(), e.Model, texts[0], "", heads.RecorderOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestHiddenAtOnce: several goroutines run an encoder of every family at the same time, with batches of several sizes,
// while contexts end. Each result is the one alone.
func TestHiddenAtOnce(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*/config.json")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, config := range dirs {
		m, err := models.Load(filepath.Dir(config), models.Options{})
		if err != nil || m.Sizes().Causal || m.Sizes().Decoder != nil || seen[m.Family.Name] {
			continue
		}
		seen[m.Family.Name] = true
		var all sync.WaitGroup
		for n := range 6 {
			rng := rand.New(rand.NewPCG(7, uint64(n)))
			var x models.Batch
			for range 1 + n%3 {
				ids := make([]int, 1+rng.IntN(7))
				for i := range ids {
					ids[i] = rng.IntN(m.Sizes().Vocabulary)
				}
				x.IDs = append(x.IDs, ids)
			}
			want := m.Hidden(nil, x, models.Run{})
			all.Go(func() {
				for range 4 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(1000))*time.Microsecond)
					for _, ctx := range []context.Context{ctx, t.Context()} {
						tape := tensor.NewTape(tensor.Infer)
						tape.SetContext(ctx)
						var got *tensor.Tensor
						err := tensor.Catch(func() { got = m.Hidden(tape, x, models.Run{}) })
						if err != nil && ctx.Err() == nil || err == nil && !slices.Equal(got.Data(), want.Data()) {
							t.Errorf("%s: %v, or other states than alone", m.Dir, err)
						}
					}
					cancel()
				}
			})
		}
		all.Wait()
	}
	if len(seen) < 7 {
		t.Errorf("%d families of encoders", len(seen))
	}
}
