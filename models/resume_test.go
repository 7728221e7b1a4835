package models_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// A run from block to block has the bits of a whole run; what cannot begin at a block refuses to.
func TestRunFromBlock(t *testing.T) {
	x := models.Batch{IDs: [][]int{{3, 9, 4}}}
	load := func(dir string) *models.Model {
		m, err := models.Load("testdata/"+dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, dir := range []string{"decoders/gpt2", "decoders/qwen3_5", "bert", "modernbert"} {
		m := load(dir)
		want := m.Hidden(nil, x, models.Run{}).Data()
		h := m.Hidden(nil, x, models.Run{To: 1})
		for i := 1; i < m.Sizes().Layers-1; i++ {
			h = m.Hidden(nil, x, models.Run{From: i, To: i + 1, Input: h})
		}
		if got := m.Hidden(nil, x, models.Run{From: m.Sizes().Layers - 1, Input: h}).Data(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", dir, got[:4], want[:4])
		}
		err := tensor.Catch(func() { m.Hidden(nil, x, models.Run{From: 1}) })
		if err == nil || !strings.Contains(err.Error(), "without Input") {
			t.Errorf("%s without Input: %v", dir, err)
		}
	}
	for _, dir := range []string{"decoders/gemma4", "decoders/gemma3n", "seq2seq/bart"} {
		m := load(dir)
		if models.Resumes(m) {
			t.Errorf("%s resumes", dir)
		}
		if err := tensor.Catch(func() { m.Hidden(nil, x, models.Run{To: 1}) }); err == nil || !strings.Contains(err.Error(), "does not resume") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	g := models.Generation{Tokens: 1, Run: models.Run{To: 1}}
	if _, err := load("decoders/gpt2").Generate(t.Context(), []int{3}, g); err == nil || !strings.Contains(err.Error(), "want a whole run") {
		t.Errorf("Generate: %v", err)
	}
}
