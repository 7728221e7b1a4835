package models_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// The adapter of a task is added to the weights: the states are those of transformers for W + alpha/rank·B·A.
func TestAdapterOfTask(t *testing.T) {
	const dir = "testdata/jina_lora"
	m, err := models.Load(dir, models.Options{Route: "classification"})
	if err != nil {
		t.Fatal(err)
	}
	wholeBatch(m, openGolden(t, filepath.Join(dir, "task")))
	oneByOne(m, openGolden(t, filepath.Join(dir, "task")))
	x := models.Batch{IDs: [][]int{{2, 17, 29, 5, 41, 11, 3}}}
	want := m.Hidden(nil, x, models.Run{}).Data()
	for _, route := range []string{"", "text-matching"} {
		other, err := models.Load(dir, models.Options{Route: route})
		if err != nil {
			t.Fatal(err)
		}
		if d := largestDifference(want, other.Hidden(nil, x, models.Run{}).Data()); d < 0.1 {
			t.Errorf("task %q: states differ by %v, want those of other weights", route, d)
		}
	}
	for _, format := range []tensor.Format{tensor.BFloat16Weights, tensor.BFloat16, tensor.Int8} {
		packed, err := models.Load(dir, models.Options{Route: "classification", Format: format})
		if err != nil {
			t.Fatal(err)
		}
		if d := largestDifference(want, packed.Hidden(nil, x, models.Run{}).Data()); d > 0.2 {
			t.Errorf("%v: states differ by %v", format, d)
		}
	}
}

func largestDifference(a, b []float32) (most float32) {
	for i := range a {
		most = max(most, a[i]-b[i], b[i]-a[i])
	}
	return most
}

// copyFiles copies files between directories.
func copyFiles(t *testing.T, to, from string, names ...string) {
	t.Helper()
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(to, name), string(data))
	}
}

// taskPipeline returns a pipeline with adapters for tasks, as it is published.
func taskPipeline(t *testing.T) string {
	t.Helper()
	dir := copyDir(t, "testdata/jina_lora")
	copyFiles(t, dir, "testdata/sentence_mean", "tokenizer.json", "tokenizer_config.json")
	if err := os.Mkdir(filepath.Join(dir, "1_Pooling"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "1_Pooling", "config.json"), `{"word_embedding_dimension": 12, "pooling_mode_mean_tokens": true}`)
	write(t, filepath.Join(dir, "modules.json"), `[
		{"idx": 0, "name": "transformer", "path": "", "type": "custom_st.Transformer", "kwargs": ["task"]},
		{"idx": 1, "name": "pooler", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
		{"idx": 2, "name": "normalizer", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]`)
	write(t, filepath.Join(dir, "config_sentence_transformers.json"),
		`{"prompts": {"retrieval.query": "find: ", "classification": "", "text-matching": "same: "}, "default_prompt_name": null}`)
	return dir
}

func TestPipelineOfTasks(t *testing.T) {
	dir := taskPipeline(t)
	for _, c := range []struct{ route, prompt string }{{"", ""}, {"retrieval.query", "find: "}, {"classification", ""}} {
		for _, o := range []models.Options{{Route: c.route}, {Route: c.route, Pooling: "mean"}} {
			e, err := models.LoadEmbedder(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			if e.Prompt != c.prompt {
				t.Errorf("task %q: prompt %q, want %q", c.route, e.Prompt, c.prompt)
			}
			m, err := models.Load(dir, models.Options{Route: c.route})
			if err != nil {
				t.Fatal(err)
			}
			by := models.NewEmbedder(m, e.Poolings, e.Layers...)
			by.Prompt = c.prompt
			got, err := e.Embed(t.Context(), "the cat")
			want, err2 := by.Embed(t.Context(), "the cat")
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			if !slices.Equal(got.Data(), want.Data()) {
				t.Errorf("task %q: other vectors than those of the model", c.route)
			}
		}
	}
	if _, err := models.LoadEmbedder(dir, models.Options{Route: "retrieval"}); err == nil ||
		!strings.Contains(err.Error(), `lora_adaptations has no task "retrieval", want one of "retrieval.query", "classification", "text-matching"`) {
		t.Errorf("error %v, want one with the names of the tasks", err)
	}
	if _, err := models.Load(dir, models.Options{Route: "classification", Trainable: true}); err == nil || !strings.Contains(err.Error(), "cannot be trained") {
		t.Errorf("error %v for a trainable model with an adapter", err)
	}
	other := copyDir(t, "testdata/sentence_mean")
	copyFiles(t, other, dir, "modules.json")
	if _, err := models.LoadEmbedder(other, models.Options{}); err == nil || !strings.Contains(err.Error(), "custom_st.Transformer, which is custom code") {
		t.Errorf("error %v for custom code of another model", err)
	}
}

// Settings and tensors of adapters that do not fit are refused by name.
func TestAdapterSettings(t *testing.T) {
	for _, c := range []struct {
		change map[string]any
		want   string
	}{
		{map[string]any{"load_trained_adapters": false}, "load_trained_adapters is false, want true or none"},
		{map[string]any{"lora_adaptations": []string{}}, `lora_adaptations has , but task_instructions has "classification", "retrieval.query", "text-matching", want the same tasks`},
		{map[string]any{"lora_adaptations": []string{"classification"}}, `lora_adaptations has "classification", but task_instructions has "classification", "retrieval.query", `},
		{map[string]any{"task_instructions": map[string]any{"classification": ""}}, `but task_instructions has "classification", want the same tasks`},
		{map[string]any{"lora_rank": 3}, "lora_A"},
		{map[string]any{"lora_rank": 0}, "lora_rank is 0, want 1 to"},
		{map[string]any{"position_embedding_type": "absolute"}, `position_embedding_type is "absolute", want "rotary" or none`},
		{map[string]any{"truncate_dim": 5}, "setting truncate_dim = 5"},
		{map[string]any{"rotary_emb_interleaved": true}, "setting rotary_emb_interleaved = true"},
		{map[string]any{"lora_adaptations": nil}, "lora_adaptations has , but task_instructions has"},
		{map[string]any{"auto_map": map[string]any{"AutoModel": "x.XLMRobertaModel"}}, "setting auto_map = "},
	} {
		if got := refused(t, edit(t, "jina_lora", c.change)); !strings.Contains(got, c.want) {
			t.Errorf("%v: %s, want %s", c.change, got, c.want)
		}
	}
	for _, c := range []struct{ from, to, want string }{
		{"roberta.emb_ln.weight", "roberta.emb_ln.parametrizations.weight.original", "want one for matrices only"},
		{"roberta.encoder.layers.1.mlp.fc1.parametrizations.weight.0.lora_B", "other", "fc1.parametrizations.weight.0.lora_B"},
	} {
		dir := copyDir(t, "testdata/jina_lora")
		path := filepath.Join(dir, "model.safetensors")
		file, err := safetensors.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		file.Lookup(c.from).Name = c.to
		if err := file.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		if got := refused(t, dir); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.to, got, c.want)
		}
	}
}
