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

// Other settings that mean the same give the same bits.
func TestSettingsThatMeanTheSame(t *testing.T) {
	x := models.Batch{IDs: [][]int{{2, 7, 9, 4, 11, 5, 8, 6, 10, 12, 3}}}
	old := func(settings map[string]any) map[string]any { // without rope_parameters
		settings["rope_parameters"] = nil
		return settings
	}
	for _, c := range []struct {
		dir           string
		change, equal map[string]any
	}{
		{"decoders/mixtral", old(map[string]any{}), old(map[string]any{"rope_theta": 1e6})},
		{"modernbert", old(map[string]any{"local_rope_theta": nil, "global_rope_theta": 5000}), old(map[string]any{"local_rope_theta": 5000, "global_rope_theta": 5000})},
		{"decoders/olmo3", map[string]any{"rope_parameters": map[string]any{"rope_type": "default", "rope_theta": 500000}}, old(map[string]any{"rope_theta": 500000})},
		{"decoders/gemma3", map[string]any{"rope_parameters": map[string]any{"rope_type": "default", "rope_theta": 1e6}}, old(map[string]any{"rope_theta": 1e6, "rope_local_base_freq": 1e4})},
		{"seq2seq/umt5_tied", map[string]any{"scale_decoder_outputs": true}, map[string]any{}},
	} {
		logits := func(change map[string]any) []float32 {
			m, err := models.Load(copyWith(t, filepath.Join("testdata", c.dir), change), models.Options{})
			if err != nil {
				t.Fatalf("%s: %v: %v", c.dir, change, err)
			}
			hidden := m.Hidden(nil, x, models.Run{})
			if h := m.Head(); h != nil {
				hidden = h.Of(nil, hidden, x)
			}
			return hidden.Data()
		}
		if !slices.Equal(logits(c.change), logits(c.equal)) {
			t.Errorf("%s: other results with %v than with %v", c.dir, c.change, c.equal)
		}
	}
}

// Settings on which versions of transformers disagree are refused.
func TestSettingsOfDoubtfulMeaning(t *testing.T) {
	for _, c := range []struct {
		dir    string
		change map[string]any
		want   string
	}{
		{"decoders/olmo3", map[string]any{"rope_parameters": nil}, "rope_theta is missing, want 500000: versions of transformers differ in its default"},
		{"decoders/olmo3", map[string]any{"rope_parameters": nil, "rope_theta": 10000}, "rope_theta is 10000, want 500000 or none"},
		{"decoders/gemma3", map[string]any{"rope_parameters": nil, "rope_scaling": map[string]any{"type": "linear", "factor": 2}}, `rope_scaling.type is "linear", want "default" or none`},
		{"modernbert", map[string]any{"rope_parameters": nil, "rope_scaling": map[string]any{"rope_type": "linear", "factor": 2}}, "rope_scaling is"},
		{"modernbert", map[string]any{"global_attn_every_n_layers": 2}, "layer_types of layer 2 differs from global_attn_every_n_layers"},
		{"bert", map[string]any{"position_embedding_type": nil}, `position_embedding_type is null, want "absolute" or none`},
		{"seq2seq/mt5", map[string]any{"scale_decoder_outputs": true}, "scale_decoder_outputs is true, want false or none"},
		{"seq2seq/mt5", map[string]any{"transformers_version": "4.57.3"}, "tie_word_embeddings is true, want false in a file from transformers 4"},
	} {
		_, err := models.Load(copyWith(t, filepath.Join("testdata", c.dir), c.change), models.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v: error %v, want %s", c.dir, c.change, err, c.want)
		}
	}
}

// mT5 may be tied: transformers 5 then saves no lm_head, and does not scale the states.
func TestTiedMT5(t *testing.T) {
	dir := copyWith(t, "testdata/seq2seq/mt5", map[string]any{"tie_word_embeddings": true})
	path := filepath.Join(dir, models.WeightsFile)
	file, err := safetensors.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	x := models.Batch{IDs: [][]int{{2, 7, 9, 4}}, Targets: [][]int{{0, 5}}}
	logits := func() []float32 {
		if err := file.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		m, err := models.Load(dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return m.Head().Of(nil, m.Hidden(nil, x, models.Run{}), x).Data()
	}
	i := slices.IndexFunc(file.Tensors, func(x safetensors.Tensor) bool { return x.Name == "lm_head.weight" })
	shared := file.Lookup("shared.weight")
	if i < 0 || shared == nil {
		t.Fatal("no lm_head.weight or no shared.weight")
	}
	own := *shared
	own.Name = "lm_head.weight"
	file.Tensors[i] = own
	want := logits()
	file.Tensors = slices.Delete(file.Tensors, i, i+1)
	if got := logits(); !slices.Equal(got, want) {
		t.Errorf("logits %v, want %v as with an equal lm_head", got[:4], want[:4])
	}
}
