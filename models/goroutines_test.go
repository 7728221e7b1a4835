package models_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
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
			if _, err := e.Model.Record(t.Context(), texts[0], "", heads.RecorderOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
