package models_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
)

// copyWith copies a model directory and changes its config.json; a value of nil is null, which means the default.
func copyWith(t *testing.T, from string, settings map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	setJSON(t, filepath.Join(dir, "config.json"), settings)
	return dir
}

// Without layer_types, every third layer of ModernBERT, the first included, attends to all tokens.
func TestModernBERTWithoutLayerTypes(t *testing.T) {
	x := models.Batch{IDs: [][]int{{2, 7, 9, 4, 11, 5, 8, 6, 10, 12, 3}}}
	hidden := func(settings map[string]any) []float32 {
		m, err := models.Load(copyWith(t, "testdata/modernbert", settings), models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return m.Hidden(nil, x, models.Run{}).Data()
	}
	for every, types := range map[int][]string{
		3: {"full_attention", "sliding_attention", "sliding_attention", "full_attention"},
		2: {"full_attention", "sliding_attention", "full_attention", "sliding_attention"},
	} {
		without := map[string]any{"layer_types": nil, "global_attn_every_n_layers": every}
		if !slices.Equal(hidden(without), hidden(map[string]any{"layer_types": types})) {
			t.Errorf("global_attn_every_n_layers %d: other states than with layer_types %v", every, types)
		}
	}
}

// A token may use all experts of a block, and not more.
func TestAllExperts(t *testing.T) {
	if _, err := models.Load(copyWith(t, "testdata/decoders/mixtral", map[string]any{"num_experts_per_tok": 5}), models.Options{}); err != nil {
		t.Error(err)
	}
	_, err := models.Load(copyWith(t, "testdata/decoders/mixtral", map[string]any{"num_experts_per_tok": 6}), models.Options{})
	if want := "num_experts_per_tok is 6, want at most num_local_experts, which is 5"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A base that does not say whether its embeddings are tied may have tied ones.
func TestMergeAdapterIntoTiedByDefault(t *testing.T) {
	base, adapter := copyLoRA(t, "gpt2", nil, func(f *safetensors.File) {
		f.Tensors = append(f.Tensors, safetensors.FromFloat32s("base_model.model.transformer.wte.weight", []int{20, 16}, make([]float32, 320)))
	})
	for _, value := range []any{true, nil} {
		setJSON(t, filepath.Join(base, "config.json"), map[string]any{"tie_word_embeddings": value})
		err := models.MergeAdapter(t.Context(), base, adapter, filepath.Join(t.TempDir(), "out"))
		if want := "which may be tied"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("tie_word_embeddings %v: error %v, want one with %s", value, err, want)
		}
	}
}
